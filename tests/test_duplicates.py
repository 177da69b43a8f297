"""Duplicate groups: what joins, what does not, and that the order of records does not matter."""

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abstag.duplicates import group


def words(count: int, seed: int, size: int = 5000) -> list[str]:
    drawn = random.Random(seed)
    return [f"w{drawn.randrange(size)}" for _ in range(count)]


def partition(groups: Sequence[int], names: Sequence[int]) -> set[frozenset[int]]:
    members: dict[int, set[int]] = {}
    for number, name in zip(groups, names, strict=True):
        members.setdefault(int(number), set()).add(name)
    return {frozenset(row) for row in members.values()}


ABSTRACT = (
    "We study how lighthouse keepers schedule their lamps when fog arrives early. A small model of the harbour is "
    "fitted to ten winters of logs, and its forecasts are compared with those of the keepers. The model is better at "
    "dusk and worse at dawn, and we say why. Our logs and the code are public."
)


def test_equal_titles_join_and_missing_titles_do_not() -> None:
    abstracts = ["one thing", "another thing", "a third", "a fourth"]
    assert group(["k", None, "k", None], abstracts).tolist() == [0, 1, 0, 2]


def test_equal_letters_join() -> None:
    abstracts = ["A deep-sea Lamp.", "a deepsea lamp", "A deep-sea lump.", "", "...", ""]
    assert group([None] * 6, abstracts).tolist() == [0, 0, 1, 2, 3, 4]


def test_titles_and_abstracts_chain() -> None:
    assert group(["a", "a", "b"], ["first text", "second text", "second text"]).tolist() == [0, 0, 0]


def test_camera_ready_version_joins() -> None:
    edited = ABSTRACT.replace("A small model of the harbour", "A compact harbour model").replace("and we say why", "")
    assert group([None, None], [ABSTRACT, edited + " It was tried in two ports."]).tolist() == [0, 0]


def test_a_third_rewritten_joins_and_two_thirds_do_not() -> None:
    base = words(150, 1)
    light, heavy = base[:100] + words(50, 2), base[:50] + words(100, 3)
    texts = [" ".join(row) for row in (base, light, heavy)]
    assert group([None] * 3, texts).tolist() == [0, 0, 1]


def test_threshold_decides() -> None:
    base = words(150, 1)
    texts = [" ".join(base), " ".join(base[:100] + words(50, 2))]
    assert group([None] * 2, texts, threshold=0.45).tolist() == [0, 0]
    assert group([None] * 2, texts, threshold=0.55).tolist() == [0, 1]
    assert group([None] * 2, [texts[0], texts[0]], threshold=1.0).tolist() == [0, 0]


def test_short_abstracts_must_be_equal() -> None:
    texts = ["one two three four five six seven eight nine ten"] * 2
    assert group([None, None], texts).tolist() == [0, 0]
    assert group([None, None], [texts[0], texts[1] + " eleven"]).tolist() == [0, 1]


def test_a_template_that_is_half_of_each_text_joins_nothing() -> None:
    template = words(75, 0)
    texts = [" ".join(template + words(75, seed)) for seed in range(1, 60)]
    assert group([None] * len(texts), texts).tolist() == list(range(len(texts)))


def test_a_chain_of_edits_is_one_group() -> None:
    rows = [words(150, 0)]
    for step in range(4):
        rows.append([*rows[-1][30:], *words(30, 10 + step)])
    overlap = [len(set(a) & set(b)) / len(set(a) | set(b)) for a, b in pairwise(rows)]
    assert min(overlap) > 0.5
    assert group([None] * 5, [" ".join(row) for row in rows]).tolist() == [0] * 5


def test_no_false_joins_and_near_duplicates_found_in_a_corpus() -> None:
    originals = [words(120, seed, size=400) for seed in range(200)]
    edited = [row[:100] + words(20, 1000 + seed, size=400) for seed, row in enumerate(originals)]
    groups = group([None] * 400, [" ".join(row) for row in (*originals, *edited)])
    assert groups.tolist() == [*range(200), *range(200)]


@settings(max_examples=40)
@given(st.permutations(range(14)), st.lists(st.sampled_from(["a", "b", "c", None]), min_size=14, max_size=14))
def test_partition_does_not_depend_on_order(order: list[int], keys: list[str | None]) -> None:
    base = words(60, 5)
    texts = [" ".join(base[: 60 - 3 * step] + words(3 * step, 50 + step)) for step in range(12)] + ["short", "Short."]
    straight = group(keys, texts)
    shuffled = group([keys[row] for row in order], [texts[row] for row in order])
    assert partition(shuffled.tolist(), order) == partition(straight.tolist(), list(range(14)))
    assert shuffled[0] == 0
    assert np.all(shuffled <= np.maximum.accumulate(np.r_[-1, shuffled[:-1]]) + 1)


@pytest.mark.parametrize("texts", [[], ["only one"], ["\ud800 " * 30] * 2])
def test_odd_input(texts: list[str]) -> None:
    groups = group([None] * len(texts), texts)
    assert groups.dtype == np.intp
    assert len(groups) == len(texts)
