"""Another system's output, entered in the same comparison."""

import csv
import math
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

from abstag.classifiers.base import Classifier
from abstag.errors import ConfigError, DataError
from abstag.files import file_hash
from abstag.logistic import logit
from abstag.records import Documents, FloatArray, Targets
from abstag.taxonomy import Taxonomy

_MARGIN = 1e-9


class Scores(Classifier, BaseEstimator):
    """Reads scores from a CSV with the columns id, area, score (any finite scale, higher is surer).

    When all lie in [0, 1] they are taken for probabilities, and their log odds are the scores.

    They must cover the test papers, and the labelled training papers on which thresholds are fitted; there they
    should be out-of-fold, else the thresholds are too bold.

    Parameters
    ----------
    path
        The CSV file.
    """

    needs_labels = False

    def __init__(self, path: str = "") -> None:
        self.path = path

    def fingerprint(self) -> str:
        """Return the hash of the file."""
        if not self.path:
            raise ConfigError("no file is named", where="classifier.path", remedy="classifier.path=SCORES.csv")
        return file_hash(Path(self.path))

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:  # noqa: ARG002
        self.areas_ = taxonomy.ids
        self.table_ = _read(Path(self.path), frozenset(taxonomy.ids))
        self.probabilities_ = all(0 <= score <= 1 for score in self.table_.values())

    def decision_function(self, documents: Documents) -> FloatArray:
        """Return (n, k) scores; raises DataError when a paper or one of its areas has none."""
        missing = [(name, area) for name in documents.ids for area in self.areas_ if (name, area) not in self.table_]
        if missing:
            raise DataError(
                f"{len(missing)} of {len(documents) * len(self.areas_)} scores are missing, first id "
                f"{missing[0][0]!r}, area {missing[0][1]!r}",
                where=self.path,
            )
        rows = [[self.table_[name, area] for area in self.areas_] for name in documents.ids]
        scores = np.array(rows, dtype=np.float64).reshape(len(documents), len(self.areas_))
        return logit(np.clip(scores, _MARGIN, 1 - _MARGIN)) if self.probabilities_ else scores


def _read(path: Path, areas: frozenset[str]) -> dict[tuple[str, str], float]:
    table: dict[tuple[str, str], float] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.DictReader(stream)
            if not {"id", "area", "score"} <= set(rows.fieldnames or ()):
                raise DataError(f"columns id, area, score expected, found {rows.fieldnames}", where=path)
            for row in rows:
                cell, score = _parse(row, areas, f"{path}:{rows.line_num}")
                if cell in table:
                    raise DataError(f"a second score for {cell}", where=f"{path}:{rows.line_num}")
                table[cell] = score
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot be read: {error}", where=path) from error
    return table


def _parse(row: dict[str, str], areas: frozenset[str], where: str) -> tuple[tuple[str, str], float]:
    if None in row or None in row.values() or not row["id"]:
        raise DataError("the row has more or fewer cells than the header, or no id", where=where)
    if row["area"] not in areas:
        raise DataError(f"unknown area {row['area']!r}", where=where, remedy=f"known: {', '.join(sorted(areas))}")
    try:
        score = float(row["score"])
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise DataError(f"score {row['score']!r} is not a finite number", where=where)
    return (row["id"], row["area"]), score
