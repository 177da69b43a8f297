"""Writers: every format is reproducible, streams, and holds each paper once, whatever its title."""

import csv
import errno
import gc
import gzip
import io
import json
import weakref
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import openpyxl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from abstag import writers
from abstag.errors import ArtifactError
from abstag.records import Record, Reject
from abstag.writers import parquet, xlsx
from abstag.writers._delimited import _harmless
from abstag.writers._lines import Tagged

NAMES = {"llm": "Language models", "graphs": "Learning on graphs"}
COLUMNS = [
    *("id", "file", "n", "title", "areas", "uncertain", "decision", "reason"),
    *("score_llm", "score_graphs"),
]
HOSTILE = {
    "formula": "=HYPERLINK(0)",
    "plus": "+1 or more",
    "minus": "- a list",
    "at": "@SUM(1)",
    "tab": "\tindented",
    "return": "\r=1",
    "spaced": " \u00a0=1",
    "unseen": "\ufeff\u200b=1",
    "wide": "\uff1d1",
    "small": "\ufe631",
    "newlines": "two\nlines\r\nand\rmore",
    "pipes": "a | b || c",
    "quotes": "\"so\", 'he' said; twice",
    "nul": "a\0b\x1bc\ufffe",
    "surrogate": "half \ud83d of one",
    "emoji": "waves 🌊👩‍🔬",
    "long": "word " * 8000,
    "error": "#N/A",
    "markdown": "# *bold* [link](http://a.b) <b>&amp; `code` $x_1$ \\ ![image](c)",
    "blank": " \0 ",
}


def line(n: int, decision: str = "tag", **fields: Any) -> dict[str, Any]:
    reject = decision == "reject"
    usual = {
        "id": f"p{n}",
        "file": "dump.txt",
        "n": n,
        "title": f"Paper {n}",
        "areas": ["llm"] if decision == "tag" else [],
        "uncertain": ["graphs"] if decision == "review" else [],
        "scores": None if reject else {"llm": 0.9, "graphs": 0.1},
        "decision": decision,
        "reason": "too short: 2 words" if reject else None,
    }
    return usual | fields


def tagged(lines: Iterable[Mapping[str, Any]]) -> Iterator[Tagged]:
    for row in lines:
        if row["decision"] == "reject":
            yield Reject(row["file"], row["n"], None, "too short", "2 words", row["title"], row["id"]), row
        else:
            yield Record(row["file"], row["n"], None, "An abstract.", row["title"], row["id"], "ICLR", 2024), row


SAMPLE = [
    line(1),
    line(2, "none", title=None),
    line(3, "review", areas=["llm"], reason="unsure of graphs"),
    line(4, areas=["llm", "graphs"], scores={"llm": 0.95, "graphs": 0.61}),
    line(5, "reject", id=None, title=None),
]
WEIRD = [line(n, title=title, id=f"{title[:9]}{n}") for n, title in enumerate(HOSTILE.values(), 1)]
WEIRD += [line(len(WEIRD) + 1, "reject", title="=1|2\n3", reason="bad row: \0=\ud83d|\n"), line(30, "none", title="-1")]


def written(lines: Iterable[Mapping[str, Any]], path: str, *, records: bool = True) -> bytes:
    out = io.BytesIO()
    pairs: Iterable[Tagged] = tagged(lines) if records else ((None, row) for row in lines)
    writers.write(pairs, out, path, names=NAMES)
    return out.getvalue()  # fails when a writer has closed it


def delimited(data: bytes, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline=""), delimiter=delimiter))


def sheet_of(data: bytes) -> Any:
    return openpyxl.load_workbook(io.BytesIO(data)).active


def sheet_rows(data: bytes) -> list[list[Any]]:
    return [list(row) for row in sheet_of(data).iter_rows(values_only=True)]


def listed(data: bytes, heading: str) -> list[str]:
    """Return the items' texts of the section of a digest, as a CommonMark parser sees them."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(data.decode())
    inside, found = False, []
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            inside = token.content.startswith(heading)
        elif inside and token.type == "inline":
            children = token.children or []
            assert {child.type for child in children} <= {"text", "text_special"}
            found.append("".join(child.content for child in children))
    return found


ROWS: dict[str, Callable[[bytes], int]] = {
    "jsonl": lambda data: len(data.splitlines()),
    "csv": lambda data: len(delimited(data)) - 1,
    "tsv": lambda data: len(delimited(data, "\t")) - 1,
    "xlsx": lambda data: sheet_of(data).max_row - 1,
    "parquet": lambda data: int(pq.read_table(io.BytesIO(data)).num_rows),
    "markdown": lambda data: int(data.decode().split("\n")[2].split(" records:")[0]),
}
FORMATS = sorted(writers.formats())
BINARY = {"parquet", "xlsx"}


def suffix(name: str) -> str:
    return writers.formats()[name].SUFFIXES[0]


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_found_by_its_suffixes_and_its_name(name: str) -> None:
    module = writers.formats()[name]
    for own in module.SUFFIXES:
        assert own.startswith(".")
        assert own == own.lower()
        assert writers.writer_for(f"some.where/tags{own.upper()}") is module
    assert writers.writer_for("tags.unknown", name) is module
    assert isinstance(module.NEEDS_RECORDS, bool)


def test_no_two_formats_share_a_suffix_and_the_expected_ones_are_there() -> None:
    suffixes = [own for module in writers.formats().values() for own in module.SUFFIXES]
    assert len(set(suffixes)) == len(suffixes)
    assert set(ROWS) <= set(FORMATS)


@pytest.mark.parametrize("path", ["-", "tags", "tags.gz", "a.csv/tags"])
def test_json_lines_are_the_default(path: str) -> None:
    assert writers.writer_for(path) is writers.formats()["jsonl"]


@pytest.mark.parametrize(
    ("path", "name", "message"),
    [
        ("tags.docx", None, "tags.docx: no output format has the suffix '.docx'; known suffixes: "),
        ("tags.doc.gz", None, "no output format has the suffix '.doc'; known suffixes: "),
        ("tags.csv", "exel", "tags.csv: there is no output format 'exel'; "),
        ("tags.csv", "markdwon", "there is no output format 'markdwon'; did you mean 'markdown'?"),
        ("tags.xlsx.gz", None, "tags.xlsx.gz: xlsx is compressed in itself; leave .gz out"),
        ("tags.gz", "parquet", "parquet is compressed in itself; leave .gz out"),
    ],
)
def test_an_unknown_format_is_one_error_with_a_remedy(path: str, name: str | None, message: str) -> None:
    with pytest.raises(ArtifactError) as error:
        writers.writer_for(path, name)
    assert message in str(error.value)
    if "suffixes" in message:
        assert all(own in str(error.value) for module in writers.formats().values() for own in module.SUFFIXES)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("lines", [SAMPLE, WEIRD, []], ids=["sample", "weird", "empty"])
def test_every_paper_is_there_once_and_the_bytes_are_the_same_again(name: str, lines: list[dict[str, Any]]) -> None:
    data = written(lines, f"tags{suffix(name)}")
    if name in ROWS:
        assert ROWS[name](data) == len(lines)
    assert written(lines, f"other{suffix(name)}") == data
    if not writers.formats()[name].NEEDS_RECORDS:
        assert written(lines, f"tags{suffix(name)}", records=False) == data


@pytest.mark.parametrize("name", FORMATS)
def test_text_is_utf8_and_packed_reproducibly_and_what_is_not_text_is_refused_packed(name: str) -> None:
    path = f"tags{suffix(name)}.gz"
    if name in BINARY:
        with pytest.raises(ArtifactError, match="compressed in itself"):
            written(SAMPLE, path)
        return
    packed = written(WEIRD, path)
    assert gzip.decompress(packed) == written(WEIRD, path.removesuffix(".gz"))
    gzip.decompress(packed).decode()
    assert packed == written(WEIRD, f"other{path}")
    assert packed[3:8] == bytes(5)  # neither a name nor a time


class Line(dict[str, Any]):
    """An output line of which one can tell whether it is still held."""


@pytest.mark.parametrize("name", FORMATS)
def test_papers_are_not_held_in_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_ROWS", 20)
    alive: weakref.WeakValueDictionary[int, Line] = weakref.WeakValueDictionary()
    most = 0

    def lines() -> Iterator[Line]:
        nonlocal most
        for n in range(1, 101):
            row = alive[n] = Line(line(n))
            yield row
            del row
            most = max(most, len(alive))

    assert written(lines(), f"tags{suffix(name)}")
    assert most <= 23


def test_json_lines_are_the_lines() -> None:
    assert [json.loads(row) for row in written(SAMPLE, "tags.jsonl").splitlines()] == SAMPLE
    odd = json.loads(written([line(1, title="half \ud83d", scores={"llm": float("nan"), "graphs": 0.5})], "t.jsonl"))
    assert (odd["title"], odd["scores"]) == ("half ?", {"llm": None, "graphs": 0.5})


def expected(row: Mapping[str, Any]) -> list[Any]:
    """Return the cells of a row that needs no care."""
    joined = {key: ";".join(value) if isinstance(value, list) else value for key, value in row.items()}
    scores = row["scores"] or {}
    return [*(joined[column] for column in COLUMNS[:8]), scores.get("llm"), scores.get("graphs")]


@pytest.mark.parametrize(("path", "delimiter"), [("tags.csv", ","), ("tags.tsv", "\t")])
def test_a_delimited_table_comes_back(path: str, delimiter: str) -> None:
    head, *rows = delimited(written(SAMPLE, path), delimiter)
    assert head == COLUMNS
    assert rows == [["" if cell is None else str(cell) for cell in expected(row)] for row in SAMPLE]


@pytest.mark.parametrize(("path", "delimiter"), [("tags.csv", ","), ("tags.tsv", "\t")])
def test_no_cell_of_a_delimited_table_is_a_formula(path: str, delimiter: str) -> None:
    rows = delimited(written(WEIRD, path), delimiter)[1:]
    titles = dict(zip(HOSTILE, (row[3] for row in rows), strict=False))
    for kind in ("formula", "plus", "minus", "at", "tab", "spaced", "unseen", "wide", "small"):
        assert titles[kind] == f"'{HOSTILE[kind]}"
    assert titles["return"] == "'\n=1"
    assert titles["newlines"] == "two\nlines\nand\nmore"
    assert titles["nul"] == "abc"
    assert titles["surrogate"] == "half ? of one"
    for kind in ("pipes", "quotes", "emoji", "long", "error"):
        assert titles[kind] == HOSTILE[kind]
    assert rows[0][0] == "'=HYPERLIN1"
    assert rows[-2][3] == "'=1|2\n3"
    assert rows[-2][7] == "bad row: =?|\n"
    assert all(len(row) == len(COLUMNS) for row in rows)


@given(st.text(alphabet="'=+-@\t a1\uff1d", max_size=6))
def test_a_guarded_text_can_be_restored(text: str) -> None:
    guarded = _harmless(text)
    assert guarded in (text, f"'{text}")
    assert (guarded != text) == (_harmless(guarded) == f"'{guarded}")  # so it shows whether there is one to take off


def test_a_reason_and_a_file_name_are_guarded_too() -> None:
    row = line(1, "reject", file="-", reason="=1")
    assert delimited(written([row], "tags.csv"))[1][:8] == ["p1", "'-", "1", "Paper 1", "", "", "reject", "'=1"]


def test_a_workbook_comes_back_and_is_easy_to_read() -> None:
    data = written(SAMPLE, "tags.xlsx")
    sheet = sheet_of(data)
    rows = sheet_rows(data)
    assert rows[0] == COLUMNS
    assert rows[1:] == [[None if cell == "" else cell for cell in expected(row)] for row in SAMPLE]
    assert sheet.freeze_panes == "A2"
    assert sheet.auto_filter.ref == "A1:J6"
    assert all(cell.font.bold for cell in sheet[1])
    assert not any(cell.font.bold for cell in sheet[2])
    assert sheet.column_dimensions["D"].width > 2 * sheet.column_dimensions["A"].width
    assert all(8 > sheet.column_dimensions[letter].width > 5 for letter in "C")


def test_no_cell_of_a_workbook_is_a_formula_or_too_long() -> None:
    sheet = sheet_of(written(WEIRD, "tags.xlsx"))
    cells = [cell for row in sheet.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells if isinstance(cell.value, str)} == {"s"}
    titles = dict(zip(HOSTILE, (row[3].value for row in sheet.iter_rows(min_row=2)), strict=False))
    for kind in (
        "formula",
        "plus",
        "minus",
        "at",
        "tab",
        "spaced",
        "unseen",
        "wide",
        "pipes",
        "quotes",
        "emoji",
        "error",
    ):
        assert titles[kind] == HOSTILE[kind]
    assert titles["newlines"] == "two\nlines\nand\nmore"
    assert titles["nul"] == "abc"
    assert titles["surrogate"] == "half ? of one"
    assert titles["long"] == HOSTILE["long"][:32_767]


def test_a_cell_is_cut_as_excel_counts_and_never_within_a_character() -> None:
    data = written([line(1, title="🌊" * 20_000), line(2, title="a" * 32_767), line(3, title="b" * 32_768)], "t.xlsx")
    assert [len(row[3]) for row in sheet_rows(data)[1:]] == [16_383, 32_767, 32_767]


def test_a_workbook_carries_no_date_of_today() -> None:
    with zipfile.ZipFile(io.BytesIO(written(SAMPLE, "tags.xlsx"))) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        core = archive.read("docProps/core.xml").decode()
    assert core.count("1980-01-01T00:00:00Z") == 2


def test_more_papers_than_a_sheet_holds_are_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert xlsx._ROWS == 2**20 - 1
    monkeypatch.setattr(xlsx, "_ROWS", 4)
    assert written(SAMPLE[:4], "tags.xlsx")
    with pytest.raises(ArtifactError) as error:
        written(SAMPLE, "tags.xlsx")
    assert str(error.value) == (
        "a sheet of Excel holds 4 papers, and there are more; write CSV (.csv) or Parquet (.parquet)"
    )


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("packed", [False, True])
def test_an_error_while_reading_goes_on_to_the_caller(name: str, packed: bool) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield line(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        written(broken(), f"tags{suffix(name)}{'.gz' if packed and name not in BINARY else ''}")


class Full(io.BytesIO):
    """A disk that takes so many bytes and no more."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)

    def writelines(self, lines: Iterable[Any], /) -> None:
        for data in lines:
            self.write(data)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("room", [0, 60, 300])
def test_a_full_disk_is_the_error_of_the_system(name: str, room: int) -> None:
    for path in (f"tags{suffix(name)}", *([] if name in BINARY else [f"tags{suffix(name)}.gz"])):
        with pytest.raises(OSError, match="No space left"):
            writers.write(tagged(WEIRD), Full(room), path, names=NAMES)
    gc.collect()


def test_parquet_comes_back_with_a_fixed_schema() -> None:
    for lines in (SAMPLE, WEIRD, []):
        table = pq.read_table(io.BytesIO(written(lines, "tags.parquet")))
        types = {"n": "int64", "areas": "list<element: string>", "uncertain": "list<element: string>"}
        wanted = [types.get(name, "double" if name.startswith("score_") else "string") for name in COLUMNS]
        assert [str(field.type) for field in table.schema] == wanted
        assert table.schema.names == COLUMNS
        rows = [list(row.values()) for row in table.to_pylist()]
        assert rows == [
            [
                *(storable(row[name]) for name in COLUMNS[:8]),
                *((row["scores"] or {}).get(area) for area in NAMES),
            ]
            for row in lines
        ]


def storable(value: Any) -> Any:
    return value.replace("\ud83d", "?") if isinstance(value, str) else value


def test_parquet_is_in_row_groups_and_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_ROWS", 2)
    file = pq.ParquetFile(io.BytesIO(written(SAMPLE, "tags.parquet")))
    assert [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)] == [2, 2, 1]
    assert file.metadata.row_group(0).column(3).compression == "ZSTD"


def test_a_digest_reads_so() -> None:
    lines = [*SAMPLE, line(6, "reject", title="Short *one*", file="my_dump.txt")]
    assert (
        written(lines, "tags.md").decode()
        == r"""# Tagged papers

6 records: 2 tagged, 1 of none of the areas, 1 for review, 2 rejected.

## Language models (3)

* Paper 4 (ICLR 2024), 0.95
* Paper 1 (ICLR 2024), 0.90
* Paper 3 (ICLR 2024), 0.90

## Learning on graphs (1)

* Paper 4 (ICLR 2024), 0.61

## For review (1)

* Paper 3 (ICLR 2024): Learning on graphs 0.10

## None of the areas (1)

* An abstract. (ICLR 2024)

## Rejected (2)

* record 5 of dump.txt: too short: 2 words
* Short \*one\*, record 6 of my\_dump.txt: too short: 2 words
"""
    )


@pytest.mark.parametrize(
    ("venue", "year", "source"),
    [
        ("ICLR 2024 poster", 2024, " (ICLR 2024 poster)"),
        ("NeurIPS", None, " (NeurIPS)"),
        (None, 2020, " (2020)"),
        (None, None, ""),
        ("[x](y)", 2020, r" (\[x\](y) 2020)"),
    ],
)
def test_a_digest_names_the_venue_and_the_year_once(venue: str | None, year: int | None, source: str) -> None:
    out = io.BytesIO()
    record = Record("dump.txt", 1, None, "An abstract.", venue=venue, year=year)
    writers.write([(record, line(1))], out, "tags.md", names=NAMES)
    assert f"\n* Paper 1{source}, 0.90\n" in out.getvalue().decode()


@pytest.mark.parametrize("kind", sorted(set(HOSTILE) - {"blank", "nul", "surrogate", "unseen"}))
def test_a_hostile_title_stays_text_in_a_digest(kind: str) -> None:
    texts = listed(written([line(1, title=HOSTILE[kind])], "tags.md"), "Language")
    assert texts == [f"{' '.join(HOSTILE[kind].split())} (ICLR 2024), 0.90"]


BLOCKS = ["1. One", "1986) two", "# three", "## ", "- four", "+ five", "* six", "> seven", "---", "***", "```x", "~~~"]
BLOCKS += [
    "[ ] x",
    "=====",
    "    code",
    "<!-- x",
    "<script>",
    "&lt;",
    "a  \nb",
    "|a|b|\n|-|-|",
    "[a]: b",
    "<http://a.b>",
]


@pytest.mark.parametrize("title", [*BLOCKS, "\\"])
def test_what_begins_a_block_stays_text_in_a_digest(title: str) -> None:
    data = written([line(1, "none", title=title), line(2, "none")], "tags.md")
    assert listed(data, "None") == [f"{' '.join(title.split())} (ICLR 2024)", "Paper 2 (ICLR 2024)"]


@given(st.text(st.sampled_from("ab1 \n.)#-+*_`[]()<>&!|~$\\:/=\"'@"), max_size=12))
def test_any_title_stays_text_in_a_digest(title: str) -> None:
    shown = " ".join(title.split()) or "An abstract."
    data = written([line(1, "none", title=title), line(2, "none")], "tags.md")
    assert listed(data, "None") == [f"{shown} (ICLR 2024)", "Paper 2 (ICLR 2024)"]


def test_a_digest_shows_no_control_character_makes_no_link_and_falls_back_on_the_abstract() -> None:
    titles: Sequence[str] = ["a\0b\u202ec\x9b", "see https://a.b and WWW.c.d", " \0 ", "half \ud83d"]
    data = written([line(n, "none", title=title) for n, title in enumerate(titles)], "tags.md")
    assert listed(data, "None") == [
        f"{shown} (ICLR 2024)" for shown in ("abc", "see https://a.b and WWW.c.d", "An abstract.", "half ?")
    ]
    assert b"https:\\//a.b and WWW\\.c.d" in data


def test_a_digest_shows_how_a_long_abstract_begins_and_why_a_paper_without_doubtful_area_is_for_review() -> None:
    record = Record("dump.txt", 1, None, " ".join(f"w{number}" for number in range(20)))
    out = io.BytesIO()
    far = line(1, "review", title=None) | {"uncertain": [], "reason": "unlike the training papers: 41 % known"}
    writers.write([(record, far)], out, "tags.md", names=NAMES)
    (shown,) = listed(out.getvalue(), "For review")
    assert shown == f"{' '.join(f'w{number}' for number in range(12))} …: unlike the training papers: 41 % known"


def test_names_of_areas_and_files_are_escaped_in_a_digest() -> None:
    out = io.BytesIO()
    rows = [line(1, "reject", file="<b>_x_.txt", reason="`bad` <i>")]
    writers.write(tagged(rows), out, "tags.md", names={"llm": "*Big* <i>models</i>"})
    assert b"## \\*Big\\* \\<i\\>models\\</i\\> (0)\n" in out.getvalue()
    assert listed(out.getvalue(), "Rejected") == ["Paper 1, record 1 of <b>_x_.txt: `bad` <i>"]
