"""Tags without dashes; and what all dumps with tags are to the writers and to other formats."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abstag.errors import DataError
from abstag.readers import open_dump, text_formats
from abstag.readers._fields import headless
from abstag.records import Record, Reject
from abstag.writers import bibtex, ris
from tests.bibliography import A, is_flat, is_linear, read, written

DUMPS = sorted(
    path
    for family in ("bibtex", "ris", "tagged")
    for path in (Path(__file__).parent / "dumps" / family).iterdir()
    if not path.name.endswith(".expected.json")
)
WRITERS = {"bibtex": bibtex, "ris": ris}
TEXTS = {
    "wos": f"FN Clarivate Analytics Web of Science\nVR 1.0\nPT J\nTI Gardens\nAB {A}\nER\n\nEF\n",
    "refworks": f"RT Journal Article\nID 12\nT1 Gardens\nAB {A}\n",
    "refer": f"%0 Journal Article\n%T Gardens\n%X {A}\n",
    "scopus": "Scopus\nEXPORT DATE: 12 March 2024\n\nWick C.\n"
    f"AUTHOR FULL NAMES: Wick, Cid (1)\nGardens\n(2020) Soil\nABSTRACT: {A}\n",
    "ovid": f"<1>\nTitle\n  Gardens\nAbstract\n  {A}\n",
}


def items(text: str) -> list[Record | Reject]:
    stream: Any = io.BufferedReader(io.BytesIO(text.encode(errors="replace")))
    return list(text_formats()["tagged"].read(stream, "dump", {}))


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.name)
def test_a_dump_is_of_one_format(path: Path) -> None:
    head = path.read_text(encoding="utf-8-sig")
    for text in (head, head.replace("\n", "\r\n")):
        found = {name: module.sniff(text, {}) for name, module in text_formats().items()}
        others = {name for name in ("bibtex", "ris", "tagged", "markdown", "json", "table") if found[name]}
        assert others == {path.parent.name}
        assert found[path.parent.name] == 2 > found["plain"]


@pytest.mark.parametrize("path", [path for path in DUMPS if path.parent.name in WRITERS], ids=lambda path: path.name)
def test_entries_without_areas_are_written_as_they_were_and_keywords_are_added_once(path: Path) -> None:
    kind, text = path.parent.name, path.read_bytes().decode("utf-8-sig")
    assert written(WRITERS[kind], read(kind, text)) == text
    once = written(WRITERS[kind], read(kind, text), "graphs")
    assert once.count("Learning on graphs") == sum(isinstance(item, Record) for item in read(kind, text))
    assert written(WRITERS[kind], read(kind, once), "graphs") == once


def test_keywords_stand_before_the_next_number_of_ovid() -> None:
    text = f"<1. >\nVN  - Ovid Technologies\nAB  - {A}\n\n<2. >\nVN  - Ovid Technologies\nTI  - Lamps\n"
    added = text.replace(f"{A}\n", f"{A}\nKW  - Learning on graphs\n")
    assert written(ris, read("ris", text), "graphs") == added


def test_a_number_in_brackets_inside_an_entry_with_a_type_is_text() -> None:
    (found,) = read("ris", f"TY  - GEN\nAB  - {A}\n<1>\nis all that we cite.\nER  - \n")
    assert isinstance(found, Record)
    assert found.abstract == f"{A} <1> is all that we cite."


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_each_kind_to_the_end_of_a_file_that_stops(kind: str, end: str) -> None:
    (found,) = items(TEXTS[kind].replace("\n", end))
    assert isinstance(found, Record)
    assert (found.title, found.abstract, found.raw) == ("Gardens", A, None)
    stopped = items(TEXTS[kind][:-40].replace("\n", end))
    assert [item.n for item in stopped] == [1]


def test_mapping_and_what_is_no_tagged_text() -> None:
    module = text_formats()["tagged"]
    assert module.sniff(TEXTS["wos"], {"title": "x"}) == 0
    assert not any(module.sniff(text, {}) for text in (A, f"PT J said nothing.\n\n{A}", f"% a list\n% of ours\n{A}"))
    with pytest.raises(DataError, match="begins like no text of"):
        items(A)
    with pytest.raises(DataError, match="--map"):
        next(iter(open_dump(str(DUMPS[-1]), format="tagged", mapping={"title": "TI"}).items))


@pytest.mark.parametrize(
    ("abstract", "text"),
    [
        ("Abstract: We walk.", "We walk."),
        ("ABSTRACT We walk.", "We walk."),
        ("ABSTRACT. We walk.", "We walk."),
        ("<p><b>Abstract</b></p><p>We walk.</p>", "</p><p>We walk.</p>"),
        ("<jats:title>Abstract</jats:title><jats:p>Walks.</jats:p>", "<jats:p>Walks.</jats:p>"),
        ("Abstract—Walks.", "Walks."),
        ("Abstract In this text we walk.", "In this text we walk."),
        ("AbstractWe walk.", "We walk."),
        ("Abstract syntax trees walk.", None),
        ("Abstract Meaning Representation walks.", None),
        ("ABSTRACT MEANING walks.", None),
        ("Abstract-level walks.", None),
        ("Abstraction walks.", None),
    ],
)
def test_a_heading_before_the_abstract_is_no_part_of_it(abstract: str, text: str | None) -> None:
    assert headless(abstract) == (text or abstract)


@pytest.mark.parametrize("kind", TEXTS)
def test_memory_stays_flat(tmp_path: Path, kind: str) -> None:
    assert is_flat(tmp_path / "a.txt", TEXTS[kind].replace(A, A * 10) + "\n")


PIECES = st.sampled_from(
    [
        *("PT J\n", "ER\n", "EF\n", "FN Web\n", "VR 1.0\n", "AB ", f"AB {A}\n", "TI T\n", "   and more\n", "DE a; b\n"),
        *("RT Generic\n", "T1 T\n", "K1 a\n", "%0 Generic\n", "%T T\n", f"%X {A}\n", "%K a, b\n", "%", "\r", " "),
        *(
            "<1>\n",
            "<2. >\n",
            "AUTHOR FULL NAMES: ",
            "(2020) S\n",
            "SOURCE: S\n",
            "Title\n",
            "Abstract\n",
            f"  {A}\n",
            "\n",
            "\n\n",
            "\r\n",
            "\ufeff",
            "\0",
            A,
        ),
    ]
)


@given(st.sampled_from(sorted(TEXTS)), st.lists(st.one_of(PIECES, PIECES, st.text(max_size=3)), max_size=25))
def test_anything_is_read(kind: str, pieces: list[str]) -> None:
    found = items(TEXTS[kind] + "".join(pieces))
    assert [item.n for item in found] == list(range(1, len(found) + 1))
    lines = [item.line or 0 for item in found]
    assert lines == sorted(set(lines))
    assert found


HOSTILE: dict[str, Callable[[int], str]] = {
    "wos line": lambda n: TEXTS["wos"] + "PT J\nAB " + "ab " * 400 * n,
    "wos lines": lambda n: TEXTS["wos"] + "PT J\nAB a\n" + "   bb cc\n" * 20 * n,
    "wos entries": lambda n: TEXTS["wos"] + "PT J\n" * 2 * n,
    "wos fields": lambda n: TEXTS["wos"] + "DE a; b\n" * 10 * n,
    "refworks keywords": lambda n: TEXTS["refworks"] + "K1 ab\n" * 20 * n,
    "refer marks": lambda n: TEXTS["refer"] + "%" * 1000 * n + "\n" + "%A\n" * 10 * n,
    "refer blank lines": lambda n: "%T a\n%A b\n" + "\n%A b\n" * 2 * n,
    "ovid names": lambda n: TEXTS["ovid"] + "Ab " * 400 * n + "1\n" + "Title\n" * 2 * n,
    "ovid numbers": lambda n: TEXTS["ovid"] + "<1" + " " * 1000 * n + "\n" + "<1>\n" * 2 * n,
    "scopus": lambda n: TEXTS["scopus"] + "AUTHOR FULL NAMES: a\n(2020) " + "a, " * 400 * n + "\nSOURCE: \n" * 2 * n,
    "headings": lambda n: TEXTS["wos"] + "PT J\nAB " + "<a>" * 300 * n,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_time_is_linear(text: Callable[[int], str]) -> None:
    def work(content: str) -> Any:
        for module in ("ris", "tagged"):
            text_formats()[module].sniff(content[: 1 << 16], {})
        return items(content)

    assert is_linear(work, text, 1000)
