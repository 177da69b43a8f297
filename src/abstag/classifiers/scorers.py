"""What is left of a classifier at tagging time: numpy and scipy, and what runs an encoder or a tokenizer."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from abstag.classifiers.base import TOP_TERMS, Evidence, Member, Scorer, State
from abstag.classifiers.encoder import EncoderScorer
from abstag.errors import MissingExtraError
from abstag.logistic import logit
from abstag.records import Documents, FloatArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MARGIN = 1e-6
_TOKEN = re.compile(r"(?u)\b\w\w+\b")
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        an the this that these those it its itself we us our ours they them their you your he she his her who whom
        whose which what when where why how and or but nor so yet if then than thus hence while although though
        because since as at by for from in into of off on onto out over per to toward towards under until up upon
        via with within without about above across after again against along among around before below between
        beyond both down during either neither each every all any some such same own other others another is are was
        were be been being am do does did done has have had having can could may might must shall should will would
        not no only just also even very more most much many few less least further moreover however therefore here
        there often still too
        """,
    )
)


def tokens(text: str) -> list[str]:
    """Return lower-cased words of two or more letters or digits, without stop words, a plural s taken off."""
    return [_singular(word) for word in _TOKEN.findall(text.lower()) if word not in _STOP_WORDS]


def terms(text: str) -> list[str]:
    """Return the tokens of a text and its pairs of neighbouring tokens."""
    words = tokens(text)
    return words + [f"{first} {second}" for first, second in pairwise(words)]


def _singular(word: str) -> str:
    plural = len(word) > 3 and word[-1] == "s" and word[-2] not in "su" and word[-2:] != "is"
    return word[:-1] if plural else word


class PriorScorer(Scorer):
    """The same scores for every paper."""

    kind: ClassVar[str] = "prior"

    def __init__(self, logits: FloatArray) -> None:
        self.logits = logits

    def __call__(self, documents: Documents) -> FloatArray:
        return np.tile(self.logits, (len(documents), 1))

    def state(self) -> State:
        return State({"logits": self.logits}, [])

    @classmethod
    def restore(cls, state: State) -> Self:
        return cls(state.arrays["logits"])


class KeywordScorer(Scorer):
    """Number of distinct keyword phrases of each area in the text; one in the title counts ``title_weight``."""

    kind: ClassVar[str] = "keywords"

    def __init__(self, phrases: Sequence[Sequence[str]], *, title_weight: float) -> None:
        self.phrases, self.title_weight = phrases, title_weight
        self._patterns = [[(phrase, phrase_pattern(phrase)) for phrase in area] for area in phrases]

    def __call__(self, documents: Documents) -> FloatArray:
        rows = [[sum(weight for _, weight in area) for area in self._hits(*texts)] for texts in _texts(documents)]
        return np.array(rows, dtype=np.float64).reshape(len(documents), len(self.phrases))

    def explain(self, documents: Documents, *, top: int = TOP_TERMS) -> list[Evidence]:
        found = [self._hits(*texts) for texts in _texts(documents)]
        return [[sorted(area, key=lambda hit: -hit[1])[:top] for area in areas] for areas in found]

    def _hits(self, title: str, abstract: str) -> Evidence:
        """Return the phrases of each area that the texts hold; a regular expression looks only where it may find."""
        lower = f"{title}\n{abstract}".lower()
        return [
            [
                (phrase, self.title_weight if pattern.search(title) else 1.0)
                for phrase, pattern in area
                if phrase.lower() in lower and (pattern.search(title) or pattern.search(abstract))
            ]
            for area in self._patterns
        ]

    def state(self) -> State:
        sizes = np.array([len(area) for area in self.phrases], dtype=np.int64)
        strings = [phrase for area in self.phrases for phrase in area]
        return State({"sizes": sizes, "title_weight": np.array([self.title_weight])}, strings)

    @classmethod
    def restore(cls, state: State) -> Self:
        ends = np.cumsum(state.arrays["sizes"])
        phrases = [state.strings[end - size : end] for end, size in zip(ends, state.arrays["sizes"], strict=True)]
        return cls(phrases, title_weight=float(state.arrays["title_weight"][0]))


class Compiled(NamedTuple):
    """Compiled functions of a linear scorer: scores without intercept, and the share of words that it knows."""

    scores: Callable[[Documents], FloatArray]
    coverage: Callable[[Documents], FloatArray]


class LinearScorer(Scorer):
    """TF-IDF (1 + ln tf, smoothed idf, rows of length 1) times coefficients.

    Parameters
    ----------
    vocabulary
        v terms, see `terms`.
    idf
        (v,) float64.
    coef, intercept
        (k, v) and (k,) float64.
    title_weight
        How often a term of the title counts, against once in the abstract.

    Attributes
    ----------
    fast_from
        After how many texts, over all calls, compiled code takes over, where numba is installed. Scores are equal to
        rounding. The default is about what is scored without it while numba is imported and its code loaded.
    """

    kind: ClassVar[str] = "linear"
    fast_from: float = 2000

    def __init__(
        self, vocabulary: Sequence[str], idf: FloatArray, coef: FloatArray, intercept: FloatArray, title_weight: int
    ) -> None:
        self.vocabulary, self.idf, self.coef, self.intercept = vocabulary, idf, coef, intercept
        self.title_weight = title_weight
        self._seen = 0

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {term: column for column, term in enumerate(self.vocabulary)}

    @cached_property
    def _fast(self) -> Compiled | None:
        """Return compiled scoring; None without numba, or where two terms have the same hash."""
        try:
            from abstag.classifiers import _fast
        except ImportError:  # also raised by a numba that does not know this numpy
            return None
        model = _fast.fast_model(self.vocabulary, sorted(_STOP_WORDS), self.idf, self.coef)
        if model is None:
            return None
        scores = partial(_fast.scores, model, title_weight=self.title_weight)
        return Compiled(scores, partial(_fast.coverage, model))

    def _compiled(self) -> Compiled | None:
        return self._fast if self._seen >= self.fast_from else None

    def __call__(self, documents: Documents) -> FloatArray:
        self._seen += len(documents)
        fast = self._compiled()
        scores = self.features(documents) @ self.coef.T if fast is None else fast.scores(documents)
        return np.asarray(scores + self.intercept, dtype=np.float64)

    def features(self, documents: Documents) -> csr_array:
        """Return the (n, v) TF-IDF matrix; equal to scikit-learn's to rounding (tested)."""
        columns = self._columns
        found = [
            [columns[term] for term in row if term in columns] for row in weighted_terms(documents, self.title_weight)
        ]
        ends = np.cumsum([0, *map(len, found)])
        flat = np.fromiter((column for row in found for column in row), dtype=np.int64, count=int(ends[-1]))
        matrix = csr_array((np.ones(len(flat)), flat, ends), shape=(len(found), len(self.vocabulary)))
        matrix.sum_duplicates()
        matrix.data = (1.0 + np.log(matrix.data)) * self.idf[matrix.indices]
        return _unit_rows(matrix)

    def explain(self, documents: Documents, *, top: int = TOP_TERMS) -> list[Evidence]:
        matrix = self.features(documents)
        rows = [slice(start, end) for start, end in pairwise(matrix.indptr)]
        return [
            [self._strongest(matrix.indices[row], matrix.data[row], coef, top) for coef in self.coef] for row in rows
        ]

    def _strongest(
        self, columns: NDArray[Any], weights: FloatArray, coef: FloatArray, top: int
    ) -> list[tuple[str, float]]:
        shares = weights * coef[columns]
        order = np.argsort(-np.abs(shares), kind="stable")[:top]
        return [(self.vocabulary[columns[place]], float(shares[place])) for place in order if shares[place] != 0]

    def coverage(self, documents: Documents) -> FloatArray:
        fast = self._compiled()
        if fast is not None:
            return fast.coverage(documents)
        columns = self._columns
        papers = (tokens(f"{title}\n{abstract}") for title, abstract in _texts(documents))
        shares = (sum(word in columns for word in words) / max(len(words), 1) for words in papers)
        return np.fromiter(shares, dtype=np.float64, count=len(documents))

    def state(self) -> State:
        arrays = {"idf": self.idf, "coef": _short(self.coef), "intercept": self.intercept}
        return State({**arrays, "title_weight": np.array([self.title_weight])}, list(self.vocabulary))

    @classmethod
    def restore(cls, state: State) -> Self:
        idf, coef, intercept = (state.arrays[name].astype(np.float64) for name in ("idf", "coef", "intercept"))
        return cls(state.strings, idf, coef, intercept, int(state.arrays["title_weight"][0]))


def single_precision(array: FloatArray) -> FloatArray:
    """Return float64 numbers that single precision can hold, so that a scorer is half as large on disk and the same."""
    return array.astype(np.float32).astype(np.float64)


def _short(array: FloatArray) -> NDArray[Any]:
    """Return the array in single precision, where nothing is lost."""
    return array.astype(np.float32) if np.array_equal(single_precision(array), array) else array


def _texts(documents: Documents) -> Iterator[tuple[str, str]]:
    return zip(documents.titles, documents.abstracts, strict=True)


def weighted_terms(documents: Documents, title_weight: int) -> Iterator[list[str]]:
    """Yield the terms of each paper: those of the title ``title_weight`` times, and those of the abstract."""
    for title, abstract in _texts(documents):
        yield terms(title) * title_weight + terms(abstract)


class StaticScorer(Scorer):
    """Mean of static token vectors, of length 1, times a linear head.

    Parameters
    ----------
    tokenizer
        The tokenizer's own JSON.
    table
        (v, d) float16, a vector a token.
    coef, intercept
        (k, d) and (k,) float64.
    title_weight
        How often a token of the title counts, against once in the abstract.

    Raises
    ------
    MissingExtraError
        The tokenizers' package is not installed.
    """

    kind: ClassVar[str] = "static"

    def __init__(
        self, tokenizer: str, table: NDArray[np.float16], coef: FloatArray, intercept: FloatArray, title_weight: int
    ) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise MissingExtraError("tokenizers", "transformer") from error
        self.tokenizer, self.table = Tokenizer.from_str(tokenizer), table
        self.coef, self.intercept, self.title_weight = coef, intercept, title_weight

    def __call__(self, documents: Documents) -> FloatArray:
        rows = token_ids(self.tokenizer, documents, self.title_weight)
        means = [
            self.table[row].mean(axis=0, dtype=np.float64) if row else np.zeros(self.table.shape[1]) for row in rows
        ]
        found = np.array(means).reshape(len(rows), self.table.shape[1])
        lengths = np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return np.asarray(found / lengths @ self.coef.T + self.intercept, dtype=np.float64)

    def state(self) -> State:
        arrays: dict[str, NDArray[Any]] = {"table": self.table, "coef": self.coef, "intercept": self.intercept}
        return State({**arrays, "title_weight": np.array([self.title_weight])}, [self.tokenizer.to_str()])

    @classmethod
    def restore(cls, state: State) -> Self:
        table, coef, intercept = (state.arrays[name] for name in ("table", "coef", "intercept"))
        return cls(state.strings[0], table, coef, intercept, int(state.arrays["title_weight"][0]))


def token_ids(tokenizer: "Tokenizer", documents: Documents, title_weight: int) -> list[list[int]]:
    """Return the tokens of each paper, whole: those of the title ``title_weight`` times, and those of the abstract."""
    titles, abstracts = (
        tokenizer.encode_batch(list(texts), add_special_tokens=False) if texts else []
        for texts in (documents.titles, documents.abstracts)
    )
    return [[*title.ids * title_weight, *abstract.ids] for title, abstract in zip(titles, abstracts, strict=True)]


class EnsembleScorer(Scorer):
    """Log odds of the mean of the members' calibrated probabilities."""

    kind: ClassVar[str] = "ensemble"
    tolerance: ClassVar[float] = 1e-4  # that of an encoder, which may be a member

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members
        self.notice = "\n".join(sorted({member.scorer.notice for member in members} - {""}))

    def __call__(self, documents: Documents) -> FloatArray:
        mean = np.mean([member.probabilities(documents) for member in self.members], axis=0)
        return np.asarray(logit(np.clip(mean, _MARGIN, 1 - _MARGIN)), dtype=np.float64)

    def coverage(self, documents: Documents) -> FloatArray:
        """Return the mean over those members that have a vocabulary."""
        found = [member.scorer.coverage(documents) for member in self.members]
        defined = [shares for shares in found if not np.isnan(shares).any()]
        return np.asarray(np.mean(defined or found, axis=0), dtype=np.float64)

    def use_threads(self, number: int) -> bool:
        taken = [member.scorer.use_threads(number) for member in self.members]
        return any(taken)

    def state(self) -> State:
        states = [member.scorer.state() for member in self.members]
        arrays = {
            f"{number}.{name}": array
            for number, (member, state) in enumerate(zip(self.members, states, strict=True))
            for name, array in {**state.arrays, "slope": member.slope, "offset": member.offset}.items()
        }
        table = [(member.scorer.kind, len(state.strings)) for member, state in zip(self.members, states, strict=True)]
        return State(arrays, [json.dumps(table), *(string for state in states for string in state.strings)])

    @classmethod
    def restore(cls, state: State) -> Self:
        table, begin, members = json.loads(state.strings[0]), 1, []
        for number, (kind, strings) in enumerate(table):
            start = f"{number}."
            own = {name.removeprefix(start): value for name, value in state.arrays.items() if name.startswith(start)}
            slope, offset = own.pop("slope"), own.pop("offset")
            scorer = SCORERS[kind].restore(State(own, state.strings[begin : begin + strings]))
            members.append(Member(scorer, slope, offset))
            begin += strings
        return cls(members)


SCORERS: dict[str, type[Scorer]] = {
    scorer.kind: scorer
    for scorer in (PriorScorer, KeywordScorer, LinearScorer, StaticScorer, EncoderScorer, EnsembleScorer)
}


def phrase_pattern(phrase: str) -> re.Pattern[str]:
    """Return what finds a keyword as a whole word or its plural, in any case."""
    return re.compile(rf"(?<!\w){re.escape(phrase)}s?(?!\w)", re.IGNORECASE)


def _unit_rows(matrix: csr_array) -> csr_array:
    squares = np.add.reduceat(np.append(matrix.data**2, 0.0), matrix.indptr[:-1]) * (np.diff(matrix.indptr) > 0)
    lengths = np.where(squares > 0, np.sqrt(squares), 1.0)
    matrix.data /= np.repeat(lengths, np.diff(matrix.indptr))
    return matrix
