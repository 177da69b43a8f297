"""Labels from files: which counts, which cells are known, and what is said of a bad row."""

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abstag.errors import DataError
from abstag.labels import RANK, SCORED, Label, LabelTable, Resolved, read_labels, resolve
from abstag.taxonomy import parse_taxonomy

TAXONOMY = parse_taxonomy({"name": "abc", "areas": [{"id": "a"}, {"id": "b"}, {"id": "c"}]})


def label(source: str, areas: str, *, judged: str = "abc", masked: str = "", sure: bool = True) -> Label:
    return Label(source, TAXONOMY.encode(areas), TAXONOMY.encode(judged), TAXONOMY.encode(masked), sure)


def cells(found: Resolved) -> str:
    return "".join(
        "?" if not known else str(int(value)) for value, known in zip(found.values, found.known, strict=True)
    )


def write(folder: Path, text: str, name: str = "labels.csv") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def read(folder: Path, text: str) -> list[Label]:
    return [row for _, row in read_labels(write(folder, text), TAXONOMY)]


def test_ranks_are_those_of_the_contract() -> None:
    assert sorted(RANK, key=lambda source: RANK[source]) == ["review", "read", "declared", "rule"]
    assert SCORED == ("review", "read")


@pytest.mark.parametrize(("higher", "lower"), [*combinations(RANK, 2)])
def test_the_higher_rank_counts_in_any_order(higher: str, lower: str) -> None:
    first, second = label(higher, "a", sure=True), label(lower, "bc", sure=False)
    for labels in ([first, second], [second, first]):
        found = resolve(labels, 3)
        assert (found.source, cells(found), found.sure, found.conflicts) == (higher, "100", True, 0)


def test_no_label_is_unlabelled() -> None:
    found = resolve([], 3)
    assert (found.source, cells(found), found.conflicts) == (None, "???", 0)


def test_none_of_the_areas_is_a_label() -> None:
    assert cells(resolve([label("read", "")], 3)) == "000"


def test_equal_ranks_that_differ_mask_the_cell_and_are_counted() -> None:
    found = resolve([label("read", "ab"), label("read", "a"), label("read", "ac"), label("rule", "b")], 3)
    assert (cells(found), found.conflicts) == ("1??", 2)
    assert not found.values[~found.known].any()


def test_equal_ranks_that_agree_are_one_label() -> None:
    found = resolve([label("review", "ab"), label("review", "ab")], 3)
    assert (cells(found), found.conflicts, found.source) == ("110", 0, "review")


def test_a_masked_cell_is_unknown_and_no_conflict() -> None:
    found = resolve([label("read", "a", masked="b"), label("read", "ab")], 3)
    assert (cells(found), found.conflicts) == ("1?0", 0)
    assert cells(resolve([label("read", "abc", masked="abc")], 3)) == "???"


def test_only_judged_cells_are_known() -> None:
    assert cells(resolve([label("read", "a", judged="ab")], 3)) == "10?"
    joined = resolve([label("read", "a", judged="a"), label("read", "", judged="bc")], 3)
    assert (cells(joined), joined.conflicts) == ("100", 0)


def test_a_label_is_sure_when_all_that_count_are() -> None:
    assert not resolve([label("read", "a", sure=True), label("read", "a", sure=False)], 3).sure
    assert resolve([label("review", "a", sure=True), label("read", "a", sure=False)], 3).sure


SETS = st.sets(st.sampled_from("abc")).map("".join)
LABELS = st.lists(
    st.builds(
        lambda source, areas, judged, masked, sure: label(source, areas, judged=judged, masked=masked, sure=sure),
        st.sampled_from(list(RANK)),
        SETS,
        SETS,
        SETS,
        st.booleans(),
    ),
    max_size=5,
)


def plain(found: Resolved) -> tuple[object, ...]:
    return found.source, cells(found), found.sure, found.conflicts


@given(LABELS)
def test_the_order_of_labels_does_not_matter(labels: list[Label]) -> None:
    found = resolve(labels, 3)
    assert plain(resolve(labels[::-1], 3)) == plain(found)
    assert not (found.values & ~found.known).any()


def test_a_full_row_is_read(tmp_path: Path) -> None:
    text = "\ufeffkey,id,areas,source,sure,masked,judged,part,random,note\nk1,i1, a ; c ,review,No,b,a;c,test,YES,hm\n"
    ((names, row),) = read_labels(write(tmp_path, text), TAXONOMY)
    assert names == [("id", "i1"), ("key", "k1")]
    assert (row.source, row.sure, row.part, row.random) == ("review", False, "test", True)
    assert [TAXONOMY.decode(cell) for cell in (row.values, row.masked, row.judged)] == [["a", "c"], ["b"], ["a", "c"]]


def test_optional_columns_have_their_defaults(tmp_path: Path) -> None:
    for text in ("id,areas\np,\n", "id,areas,source,sure,masked,judged,part,random\np,,,,,,,\n"):
        (row,) = read(tmp_path, text)
        assert (row.source, row.sure, row.part, row.random) == ("read", True, None, None)
        assert row.judged.all()
        assert not (row.values | row.masked).any()


@pytest.mark.parametrize(("text", "flag"), [("1", True), ("true", True), ("0", False), ("FALSE", False), ("", None)])
def test_flags(tmp_path: Path, text: str, flag: bool | None) -> None:
    (row,) = read(tmp_path, f"id,areas,sure,random\np,a,{text},{text}\n")
    assert (row.sure, row.random) == (flag is not False, flag)


def test_a_declared_row_knows_its_positives_only(tmp_path: Path) -> None:
    found = resolve(read(tmp_path, "id,areas,source\np,a,declared\n"), 3)
    assert cells(found) == "1??"


def test_rows_are_found_by_id_and_by_key_and_the_rest_is_counted(tmp_path: Path) -> None:
    first = write(tmp_path, "id,key,areas\np1,,a\n,k2,b\np3,k3,c\np9,k9,a\n", "first.csv")
    second = write(tmp_path, "key,areas\nk2,c\n", "second.csv")
    table = LabelTable([first, second], TAXONOMY)
    assert table.unmatched == 5
    assert table.find(id="other", key=None) == []
    assert table.find(id="k2", key="p1") == []  # an id is no key
    assert [TAXONOMY.decode(row.values) for row in table.find(id="p1", key=None)] == [["a"]]
    assert [TAXONOMY.decode(row.values) for row in table.find(id="x", key="k2")] == [["b"], ["c"]]
    assert len(table.find(id="p3", key="k3")) == 1
    assert table.unmatched == 1
    table.find(id="p1", key=None)
    assert table.unmatched == 1


def test_one_row_labels_every_record_with_its_key(tmp_path: Path) -> None:
    table = LabelTable([write(tmp_path, "key,areas\nk,a\n")], TAXONOMY)
    assert len(table.find(id="x", key="k")) == len(table.find(id="x-2", key="k")) == 1
    assert table.unmatched == 0


def test_no_file_no_labels() -> None:
    table = LabelTable([], TAXONOMY)
    assert (table.find(id="p", key="k"), table.unmatched) == ([], 0)


HEAD = "id,key,areas,source,sure,random,masked,judged\np,,a,,,,,\n"
BAD = {
    "unknown area": ("p,,a;zoo,,,,,\n", "3, column areas: unknown area 'zoo'; the taxonomy 'abc' has a, b, c"),
    "unknown masked area": ("p,,a,,,,A,\n", "3, column masked: unknown area 'A'"),
    "unknown judged area": ("p,,a,,,,,a b\n", "3, column judged: unknown area 'a b'"),
    "unknown source": ("p,,a,guess,,,,\n", "3: unknown label source 'guess'; known: review, read, declared, rule"),
    "bad sure": ("p,,a,,maybe,,,\n", "3: sure must be 0 or 1, not 'maybe'"),
    "bad random": ("p,,a,,,2,,\n", "3: random must be 0 or 1, not '2'"),
    "too few cells": ("p,,a\n", "3: the row has more or fewer cells than the header"),
    "too many cells": ("p,,a,,,,,,\n", "3: the row has more or fewer cells than the header"),
    "neither id nor key": (" ,,a,,,,,\n", "3: the row has neither id nor key"),
    "after blank lines": ("\n\np,,zoo,,,,,\n", "5, column areas: unknown area 'zoo'"),
    "bad quotes": ('p,,"a"x,,,,,\n', "3: cannot read the labels: "),
}


@pytest.mark.parametrize("rows,message", BAD.values(), ids=BAD)  # noqa: PT006
def test_a_bad_row_is_named_by_file_and_line(tmp_path: Path, rows: str, message: str) -> None:
    path = write(tmp_path, HEAD + rows)
    with pytest.raises(DataError) as error:
        LabelTable([path], TAXONOMY)
    assert str(error.value).startswith(f"{path}:{message}")


@pytest.mark.parametrize(
    ("text", "found"), [("", "none"), ("id,source\np,read\n", "id, source"), ("areas\na\n", "areas"), ("\n\n", "none")]
)
def test_missing_columns_are_named(tmp_path: Path, text: str, found: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError) as error:
        LabelTable([path], TAXONOMY)
    assert str(error.value) == f"{path}: a label file needs the columns areas and key or id, found {found}"


@pytest.mark.parametrize("column", ["id", "areas", "sure"])
def test_a_column_twice_is_refused_when_it_is_read(tmp_path: Path, column: str) -> None:
    path = write(tmp_path, f"id,areas,sure,note,note,{column}\np,a,1,,,\n")
    with pytest.raises(DataError) as error:
        LabelTable([path], TAXONOMY)
    assert str(error.value) == f"{path}: two columns are called {column}; rename one"
    assert len(read(tmp_path, "id,areas,note,note,,\np,a,x,y,,\n")) == 1


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "utf16.csv").write_text("id,areas\n", encoding="utf-16")
    for path in (tmp_path / "none.csv", tmp_path, tmp_path / "utf16.csv"):
        with pytest.raises(DataError, match=f"{path}: cannot read the labels: "):
            LabelTable([str(path)], TAXONOMY)
