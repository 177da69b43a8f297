"""The tagger as a Python object."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from abstag.bundle import Bundle, load_bundle
from abstag.errors import ConfigError
from abstag.ingest import UniqueIds
from abstag.records import FloatArray, Record, Reject
from abstag.resources import resource
from abstag.store import Store
from abstag.tagger.lines import Choice, Rule, Scored, named, score

_BATCH = 256
Text = str | tuple[str | None, str]
SINGLY = Choice(adjust=False)


class Tagger:
    """Tags papers in memory. Nothing in it changes after it is loaded, so that threads may share it.

    Attributes
    ----------
    areas
        Ids of the k areas, in order.
    """

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.areas = bundle.taxonomy.ids

    @classmethod
    def load(cls, name: str | Path | None = None, *, runs_dir: str | Path = "runs") -> Self:
        """Load the tagger that ships, or that of a run (id, unique prefix, folder), or a bundle's folder.

        Raises
        ------
        ArtifactError
            There is none, or it is damaged, changed or of a newer version.
        """
        return cls(find_bundle(name, runs_dir=runs_dir))

    def scores(self, texts: Iterable[Text]) -> FloatArray:
        """Return (n, k) float64 calibrated probabilities; NaN for a text that is too short to tag.

        Parameters
        ----------
        texts
            Abstracts, or pairs of title and abstract, as they are found: they are cleaned here.
        """
        unknown = [np.nan] * len(self.areas)
        rows = [item.probabilities or unknown for batch in self._scored(_records(texts)) for item in batch]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.areas))

    def tag(self, texts: Iterable[Text], choice: Choice = SINGLY) -> list[dict[str, Any]]:
        """Return the output line of each text, as docs/contracts.md says.

        Parameters
        ----------
        texts
            As for `scores`.
        choice
            What is told of the scores; where it looks at all texts (``adjust``, ``min_precision``), these are a dump.
        """
        batches = list(self._scored(_records(texts), explain=choice.explain))
        rule = Rule.fitted(batches, self.bundle, choice)
        return [line for batch in batches for line in rule.decide(batch, self.bundle).lines]

    def tag_stream(
        self, records: Iterable[Record | Reject | Mapping[str, Any]], choice: Choice = SINGLY
    ) -> Iterator[dict[str, Any]]:
        """Yield the output line of each record, in their order, at constant memory.

        Parameters
        ----------
        records
            Records as `readers.open_dump` gives them, or mappings with "abstract" and, where known, "title" and "id".
        choice
            What is told of the scores; nothing that looks at all records.

        Raises
        ------
        ConfigError
            The choice looks at all records.
        """
        if choice.looks_ahead:
            what = "a stream has no end to look at"
            raise ConfigError(what, where="adjust, min_precision", remedy="leave them out, or give all texts to `tag`")
        items = (
            Record("", n, None, **item) if isinstance(item, Mapping) else item
            for n, item in enumerate(records, start=1)
        )
        batches = self._scored(items, explain=choice.explain)
        return (line for batch in batches for line in Rule(choice).decide(batch, self.bundle).lines)

    def _scored(self, items: Iterator[Record | Reject], *, explain: bool = False) -> Iterator[list[Scored]]:
        unique = UniqueIds()
        for batch in iter(lambda: list(islice(items, _BATCH)), []):
            yield named(score(batch, self.bundle, explain=explain), unique)


def find_bundle(name: str | Path | None = None, *, runs_dir: str | Path = "runs") -> Bundle:
    """Load the bundle that ships (None), of a run (id, unique prefix, folder), or of a folder; raises ArtifactError."""
    if name is None:
        return load_bundle(resource("data/tagger"))
    if (Path(name) / "bundle.json").exists():
        return load_bundle(Path(name))
    return load_bundle(Store(Path(runs_dir)).find(str(name)) / "bundle")


def _records(texts: Iterable[Text]) -> Iterator[Record | Reject]:
    for n, text in enumerate(texts, start=1):
        title, abstract = (None, text) if isinstance(text, str) else text
        yield Record("", n, None, abstract, title)
