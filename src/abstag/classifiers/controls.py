"""Controls: logistic regression kept from something, to ask what a score is worth."""

import re
from collections.abc import Sequence

import numpy as np

from abstag.classifiers.base import Evidence, Scorer
from abstag.classifiers.linear import LogReg
from abstag.classifiers.scorers import phrase_pattern
from abstag.errors import ConfigError
from abstag.records import Documents, FloatArray, Targets
from abstag.taxonomy import Taxonomy


class Control(LogReg):
    """Base of the controls; parameters as for `LogReg`.

    A control runs and compares, but tags nothing: it leaves no ``scorer_``, so that no bundle is kept.
    """

    control_: Scorer

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:
        super()._fit(self._seen(documents), targets, taxonomy)
        self.control_ = self.scorer_
        del self.scorer_

    def decision_function(self, documents: Documents) -> FloatArray:
        return self.control_(self._seen(documents))

    def explain(self, documents: Documents) -> list[Evidence]:
        return self.control_.explain(self._seen(documents))

    def _seen(self, documents: Documents) -> Documents:
        """Return what of the n papers the control may see."""
        return documents


class Shuffled(Control):
    """Learns from labels dealt anew at random; parameters as for `LogReg`.

    Each of the n training papers gets the (k,) values, known cells and weights of another, by the seed of the run.
    What it reaches is what labels without meaning give: over several seeds, an average precision near the prevalence.
    """

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:
        dealt = np.random.default_rng(self.aid.seed).permutation(len(targets))
        super()._fit(documents, targets[dealt], taxonomy)


class Masked(Control):
    """Sees titles and abstracts without the keywords of any area; parameters as for `LogReg`.

    What it loses against `LogReg` is owed to these words alone. They are found as `Keywords` finds them, in training
    and in scoring, and leave blanks.
    """

    patterns_: Sequence[tuple[str, re.Pattern[str]]]

    def _fit(self, documents: Documents, targets: Targets, taxonomy: Taxonomy) -> None:
        phrases = sorted({phrase for area in taxonomy.areas for phrase in area.keywords})
        if not phrases:
            raise ConfigError("no area has keywords to mask", where=f"taxonomy {taxonomy.name}", remedy="add some")
        self.patterns_ = [(phrase.lower(), phrase_pattern(phrase)) for phrase in phrases]
        super()._fit(documents, targets, taxonomy)

    def _seen(self, documents: Documents) -> Documents:
        columns = (documents.titles, documents.abstracts)
        return Documents(documents.ids, *([_blanked(text, self.patterns_) for text in column] for column in columns))


class TitleOnly(Control):
    """Sees titles alone, in training and in scoring; parameters as for `LogReg`.

    What it loses against `LogReg` is owed to the abstracts. Papers without a title all get the same scores.
    """

    def _seen(self, documents: Documents) -> Documents:
        return Documents(documents.ids, documents.titles, [""] * len(documents))


def _blanked(text: str, patterns: Sequence[tuple[str, re.Pattern[str]]]) -> str:
    """Return the text with blanks for all phrases; all are looked for in the whole text, since they may overlap."""
    left, lower = list(text), text.lower()
    for phrase, pattern in patterns:
        for found in pattern.finditer(text) if phrase in lower else ():
            left[found.start() : found.end()] = " " * len(found[0])
    return "".join(left)
