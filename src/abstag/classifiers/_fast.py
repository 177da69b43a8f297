"""TF-IDF times coefficients in compiled code; numba is imported at once, so import it late.

Texts are code points here and words are 64-bit hashes, so that no string is made. Two terms of the vocabulary with one
hash are noticed when the table is built. A term outside of a vocabulary of v terms is taken for one of them with a
chance of v / 2⁶⁴: once in about 90 million million different terms for v = 200,000. The hash has no secret, so whoever
wants a paper to be scored wrongly can find such a term; writing other words into the paper would be less work.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import log, sqrt
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from abstag.records import Documents, FloatArray

Codes = NDArray[np.uint32]
Hashes = NDArray[np.uint64]
Function = TypeVar("Function", bound=Callable[..., Any])

_CHUNK = 256  # texts that are held as code points together
_POINTS = 0x110000
_START, _FACTOR, _PAIR = np.uint64(0xCBF29CE484222325), np.uint64(0x9E3779B97F4A7C15), np.uint64(0x100000001B3)
_ONE, _HALF, _FREE = np.uint64(1), np.uint64(32), np.uint64(0)
_SPACE, _S, _U, _I = ord(" "), ord("s"), ord("u"), ord("i")


class Table(NamedTuple):
    """Open addressing with linear probing: hashes (0 marks a free place) and, of each, the number of its term."""

    hashes: Hashes
    numbers: NDArray[np.int64]


class Model(NamedTuple):
    """What compiled code needs.

    Attributes
    ----------
    letters
        (0x110000,) bool: the code point is a letter of words.
    stop_words, vocabulary
        Tables of v' stop words and v terms.
    weights
        (v, 1 + k) float64: the idf of each term, and its product with the term's coefficients.
    """

    letters: NDArray[np.bool_]
    stop_words: Table
    vocabulary: Table
    weights: FloatArray


class Texts(NamedTuple):
    """The code points of texts, one after the other, lone surrogates among them, and where each text ends."""

    codes: Codes
    ends: NDArray[np.int64]


class Paper(NamedTuple):
    """Of one paper, how often each of the v terms was counted, and the numbers of those that were."""

    counts: NDArray[np.int64]
    found: NDArray[np.int64]


def fast_model(vocabulary: Sequence[str], stop_words: Sequence[str], idf: FloatArray, coef: FloatArray) -> Model | None:
    """Return the model for `scores`, or None when two terms have the same hash.

    Parameters
    ----------
    vocabulary
        v words, and pairs of words with a space between, as `scorers.terms` makes them.
    stop_words
        Words that are passed over.
    idf, coef
        (v,) and (k, v) float64.
    """
    passed_over, known = _table(stop_words), _table(vocabulary)
    if passed_over is None or known is None:
        return None
    weights = np.empty((len(vocabulary), 1 + len(coef)))  # compiled code checks no bounds, so shapes must fit here
    weights[:, 0], weights[:, 1:] = idf, (idf * coef).T
    return Model(_letters(), passed_over, known, weights)


def scores(model: Model, documents: Documents, title_weight: int) -> FloatArray:
    """Return (n, k) float64: unit-length TF-IDF times coefficients, without intercept; see `scorers.LinearScorer`.

    Threads may share a model: it is only read, and compiled code does not hold Python's lock.
    """
    size, columns = model.weights.shape
    found = np.zeros((len(documents), columns - 1))
    paper = Paper(np.zeros(size, dtype=np.int64), np.empty(size, dtype=np.int64))
    for rows, texts, terms in _chunks(documents):
        _score(model, texts, title_weight, terms, paper, found[rows])
    return found


def coverage(model: Model, documents: Documents) -> FloatArray:
    """Return (n,) float64: which share of a paper's words the vocabulary knows; see `base.Scorer.coverage`."""
    found = np.zeros(len(documents))
    for rows, texts, terms in _chunks(documents):
        _cover(model, texts, terms, found[rows])
    return found


def _chunks(documents: Documents) -> Iterator[tuple[slice, Texts, Hashes]]:
    """Yield the rows of papers, their titles and abstracts in turn, and room for the terms of any of these."""
    for start in range(0, len(documents), _CHUNK):
        rows = slice(start, start + _CHUNK)
        pairs = zip(documents.titles[rows], documents.abstracts[rows], strict=True)
        texts = _code_points([text.lower() for pair in pairs for text in pair])
        yield rows, texts, np.empty(len(texts.codes), dtype=np.uint64)  # no text has more terms than characters


def _code_points(texts: Sequence[str]) -> Texts:
    ends = np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)))
    return Texts(np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4"), ends)


def _table(strings: Sequence[str]) -> Table | None:
    """Return the table of these terms, at most half full, or None when two have the same hash."""
    size = 1 << len(strings).bit_length() + 1
    table = Table(np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.int64))
    return table if _entered(_code_points(strings), table) else None


@cache
def _letters() -> NDArray[np.bool_]:
    r"""Return which code points Python's ``\w`` matches."""
    every = np.arange(_POINTS, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    letters = np.zeros(_POINTS, dtype=np.bool_)
    for run in re.finditer(r"\w+", every):
        letters[run.start() : run.end()] = True
    return letters


def _compiled(function: Function) -> Function:
    """Compile at the first call and keep the code in ``__pycache__``, else in the user's cache folder."""
    try:
        return cast("Function", njit(cache=True, nogil=True)(function))
    except RuntimeError:  # neither folder can be written to: compile in every process
        return cast("Function", njit(nogil=True)(function))


@_compiled
def _step(value: np.uint64, item: np.uint64) -> np.uint64:
    mixed = (value ^ item) * _FACTOR
    return mixed ^ (mixed >> _HALF)


@_compiled
def _joined(first: np.uint64, second: np.uint64) -> np.uint64:
    """Return the hash of a pair of words; the step between them keeps "a b" from being "b a"."""
    return _step(_step(first, _PAIR), second)


@_compiled
def _place(hashes: Hashes, value: np.uint64) -> np.uint64:
    """Return where a hash stands in a table, or the free place where it would."""
    mask = np.uint64(len(hashes)) - _ONE
    place = value & mask
    while hashes[place] != _FREE and hashes[place] != value:
        place = (place + _ONE) & mask
    return place


@_compiled
def _entered(terms: Texts, table: Table) -> bool:
    """Enter terms into an empty table, and return whether each has a hash of its own."""
    alone, start = True, 0
    for number in range(len(terms.ends)):
        value = _hash(terms.codes, start, terms.ends[number])
        place = _place(table.hashes, value)
        alone = alone and value != _FREE and table.hashes[place] == _FREE
        table.hashes[place], table.numbers[place] = value, number
        start = terms.ends[number]
    return alone


@_compiled
def _hash(codes: Codes, start: int, end: int) -> np.uint64:
    """Return the hash of a word, or of words with a space between."""
    word, before, words = _START, _START, 0
    for position in range(start, end):
        if codes[position] == _SPACE:
            before = _joined(before, word) if words else word
            word, words = _START, words + 1
        else:
            word = _step(word, codes[position])
    return _joined(before, word) if words else word


@_compiled
def _terms(model: Model, codes: Codes, start: int, end: int, terms: Hashes) -> int:
    """Write the hashes of the terms of a text, which are those of `scorers.terms`, and return how many there are.

    They are looked up later, not here: the processor then waits for several of them at once.
    """
    letters, stop_words = model.letters, model.stop_words.hashes
    position, previous, known = start, _START, 0
    while position < end:
        first, word, shorter = position, _START, _START
        while position < end and letters[codes[position]]:
            shorter, word = word, _step(word, codes[position])
            position += 1
        size = position - first
        position += 1
        if size < 2 or stop_words[_place(stop_words, word)] != _FREE:
            continue
        if size > 3 and codes[first + size - 1] == _S and codes[first + size - 2] not in (_S, _U, _I):
            word = shorter
        if known:
            terms[known] = _joined(previous, word)
            known += 1
        terms[known] = word
        previous, known = word, known + 1
    return known


@_compiled
def _count(table: Table, terms: Hashes, size: int, times: int, paper: Paper, known: int) -> int:
    """Count the terms of one text that the vocabulary has; return how many of the paper are known now."""
    hashes, numbers, counts, found = table.hashes, table.numbers, paper.counts, paper.found
    for term in range(size):
        place = _place(hashes, terms[term])
        if hashes[place] != _FREE:
            number = numbers[place]
            if counts[number] == 0:
                found[known] = number
                known += 1
            counts[number] += times
    return known


@_compiled
def _score(model: Model, texts: Texts, title_weight: int, terms: Hashes, paper: Paper, out: FloatArray) -> None:
    """Write the scores of papers, of which each is two texts, title and abstract; all counts are 0 before and after.

    What an inner loop reads of a tuple is taken out of it before, here and above, because numba counts references.
    """
    weights, counts, found = model.weights, paper.counts, paper.found
    start = 0
    for row in range(len(out)):
        known, squares = 0, 0.0
        for part in range(2):
            end = texts.ends[2 * row + part]
            times = 1 if part else title_weight
            if times > 0:
                size = _terms(model, texts.codes, start, end, terms)
                known = _count(model.vocabulary, terms, size, times, paper, known)
            start = end
        for place in range(known):
            number = found[place]
            weight = 1.0 + log(counts[number])
            squares += (weight * weights[number, 0]) ** 2
            for area in range(out.shape[1]):
                out[row, area] += weight * weights[number, 1 + area]
            counts[number] = 0
        length = sqrt(squares) if squares > 0.0 else 1.0
        for area in range(out.shape[1]):
            out[row, area] /= length


@_compiled
def _cover(model: Model, texts: Texts, terms: Hashes, out: FloatArray) -> None:
    """Write the coverage of papers; of the terms of a text every second one, from the first on, is a word."""
    hashes = model.vocabulary.hashes
    start = 0
    for row in range(len(out)):
        words, known = 0, 0
        for part in range(2):
            end = texts.ends[2 * row + part]
            size = _terms(model, texts.codes, start, end, terms)
            for term in range(0, size, 2):
                words += 1
                known += hashes[_place(hashes, terms[term])] != _FREE
            start = end
        out[row] = known / words if words else 0.0
