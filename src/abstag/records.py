"""The nouns that travel through the pipeline: records, rejects, targets and splits."""

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Record:
    """One paper as a reader found it: raw text, not yet cleaned.

    Attributes
    ----------
    file
        The path as the user gave it.
    n
        1-based position in the file; rejects are counted too.
    line
        1-based physical line on which the record starts, None where lines mean nothing.
    areas
        Areas that the record itself carries as a reader's label; ``()`` is the answer "none", None is unlabelled.
    judged
        Areas on which that label decides; None is all of them.
    declared
        What authors declared: keywords, primary area, topic.
    raw
        The entry as it stands in the dump, with the text before it since the last one, where the format can be written.
    """

    file: str
    n: int
    line: int | None
    abstract: str
    title: str | None = None
    id: str | None = None
    venue: str | None = None
    year: int | None = None
    part: str | None = None
    declared: tuple[str, ...] = ()
    areas: tuple[str, ...] | None = None
    judged: tuple[str, ...] | None = None
    sure: bool = True
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that cannot be used, and why. ``reason`` is a short fixed phrase, ``detail`` free text."""

    file: str
    n: int
    line: int | None
    reason: str
    detail: str = ""
    title: str | None = None
    id: str | None = None
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Documents:
    """What a classifier sees: n cleaned papers. A missing title is the empty string."""

    ids: Sequence[str]
    titles: Sequence[str]
    abstracts: Sequence[str]

    def __getitem__(self, rows: IntArray) -> "Documents":
        return Documents(*([column[row] for row in rows] for column in (self.ids, self.titles, self.abstracts)))

    def __len__(self) -> int:
        return len(self.ids)

    def joined(self, other: "Documents") -> "Documents":
        """Return these papers, then the others."""
        pairs = ((self.ids, other.ids), (self.titles, other.titles), (self.abstracts, other.abstracts))
        return Documents(*([*first, *second] for first, second in pairs))

    @property
    def texts(self) -> list[str]:
        """Title, newline, abstract of each paper."""
        return [f"{title}\n{abstract}" for title, abstract in zip(self.titles, self.abstracts, strict=True)]


@dataclass(frozen=True, slots=True)
class Targets:
    """What is known of papers × areas; unlabelled is not "none".

    Attributes
    ----------
    values
        (n, k) bool: the area holds. Meaningless where not known.
    known
        (n, k) bool: the cell may be used.
    weight
        (n, k) float64 ≥ 0: how much the cell counts in training.
    """

    values: BoolArray
    known: BoolArray
    weight: FloatArray

    def __getitem__(self, rows: IntArray | BoolArray | slice) -> "Targets":
        return Targets(self.values[rows], self.known[rows], self.weight[rows])

    def __len__(self) -> int:
        return len(self.values)


class Split(NamedTuple):
    """Row numbers (int, ascending) to train on and to score; a duplicate group is on one side only."""

    name: str
    train: IntArray
    test: IntArray


def text_hash(text: str) -> str:
    """Return the first 16 hex digits of the SHA-256 of ``text`` in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def title_key(title: str | None) -> str | None:
    """Return the key by which the same paper is recognised in other dumps, or None without a title.

    It is the hash of the raw title after NFKC and casefold, letters and digits (``str.isalnum``) only.
    """
    folded = unicodedata.normalize("NFKC", title or "").casefold()
    letters = "".join(character for character in folded if character.isalnum())
    return text_hash(letters) if letters else None


def content_id(title: str | None, abstract: str) -> str:
    """Return the id of a record that brings none: the hash of cleaned title, newline, cleaned abstract."""
    return text_hash(f"{title or ''}\n{abstract}")
