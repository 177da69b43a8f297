"""Groups of records that are one paper: equal titles, equal abstracts, near-equal abstracts."""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from abstag.records import IntArray

_WORD = re.compile(r"\w+")
_SHINGLE = 3
_MIN_SHINGLES = 20
_PERMUTATIONS = 64
_CANDIDATE = 0.5


def group(keys: Sequence[str | None], abstracts: Sequence[str], *, threshold: float = 0.6) -> IntArray:
    """Return a group number for each record; members of a duplicate group share it.

    Two records are one paper when their title keys are equal (None equals nothing), when their abstracts are equal in
    letters and digits, or when the abstracts' sets of three-word shingles have a Jaccard similarity of at least
    ``threshold``. Candidates come from MinHash and locality-sensitive hashing (Broder 1997), and are verified exactly.
    Abstracts of fewer than 20 shingles match only when equal.

    Parameters
    ----------
    keys, abstracts
        n title keys and cleaned abstracts.
    threshold
        In (0, 1].

    Returns
    -------
    IntArray
        (n,) int, numbered from 0 by first member. The partition does not depend on the order of records.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    words = [_WORD.findall(abstract.casefold()) for abstract in abstracts]
    pairs = [*_equal(keys), *_equal([" ".join(row) or None for row in words]), *_near(words, threshold)]
    rows, columns = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    links = coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(keys), len(keys)))
    labels = connected_components(links, directed=False)[1]
    return _by_first_member(labels.astype(np.intp))


def _by_first_member(labels: IntArray) -> IntArray:
    _, first, member = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[member], dtype=np.intp)


def _equal(names: Sequence[str | None]) -> Iterator[tuple[int, int]]:
    first: dict[str, int] = {}
    for row, name in enumerate(names):
        if name is not None and first.setdefault(name, row) != row:
            yield first[name], row


def _near(words: Sequence[list[str]], threshold: float) -> Iterator[tuple[int, int]]:
    from datasketch import MinHash, MinHashLSH

    shingles = [_shingles(row) for row in words]
    long = [row for row, found in enumerate(shingles) if len(found) >= _MIN_SHINGLES]
    index = MinHashLSH(threshold=min(_CANDIDATE, threshold), num_perm=_PERMUTATIONS)
    encoded = ([shingle.encode() for shingle in shingles[row]] for row in long)
    for row, sketch in zip(long, MinHash.generator(encoded, num_perm=_PERMUTATIONS, seed=1), strict=True):
        yield from ((other, row) for other in index.query(sketch) if _jaccard(shingles, other, row) >= threshold)
        index.insert(row, sketch)


def _shingles(words: list[str]) -> set[str]:
    return {" ".join(words[start : start + _SHINGLE]) for start in range(len(words) - _SHINGLE + 1)}


def _jaccard(shingles: Sequence[set[str]], first: int, second: int) -> float:
    common = len(shingles[first] & shingles[second])
    return common / (len(shingles[first]) + len(shingles[second]) - common)
