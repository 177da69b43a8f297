"""Exports by name of their source, none of which needs an option, and texts of formats that are not read."""

import json
from itertools import product
from pathlib import Path

import pytest

from abstag.errors import DataError
from abstag.ingest import ingest
from abstag.readers import open_dump, pubmed, sniff, yamltext
from abstag.records import Record, Reject
from abstag.taxonomy import load_taxonomy

_DUMPS = Path(__file__).parent / "dumps"
_TEXT = "Bees choose the flower with the most pollen. We count the flowers and the bees, and find more bees."


def read(path: Path, content: str) -> list[Record | Reject]:
    path.write_text(content, encoding="utf-8")
    return list(open_dump(str(path)).items)


def told(items: list[Record | Reject]) -> list[tuple[str | None, str]]:
    return [(item.title, item.abstract if isinstance(item, Record) else item.reason) for item in items]


@pytest.mark.parametrize("module", [pubmed, yamltext])
def test_dumps_of_other_formats(module: object) -> None:
    expected = list(_DUMPS.glob("*/*.expected.json"))
    paths = [Path(str(path).removesuffix(".expected.json")) for path in expected]
    formats = [json.loads(path.read_text(encoding="utf-8"))["format"] for path in expected]
    heads = [path.read_bytes()[:65536].decode(errors="ignore") if path.is_file() else "" for path in paths]
    others = [head for head, names in zip(heads, formats, strict=True) if names != [module.NAME]]  # type: ignore[attr-defined]
    assert len(others) > 50
    assert not any(module.sniff(head, {}) for head in others)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<!DOCTYPE html>\n<html><body><p>Papers</p></body></html>", r"\(web page\); export BibTeX"),
        ("% a list\n\\documentclass{article}\n\\begin{document} Papers.", r"\(LaTeX\); copy the abstracts"),
        ('[[papers]]\ntitle = "Bees"\nabstract = "Bees."\n', r"\(TOML\); write it as JSON"),
    ],
)
def test_a_text_that_is_not_read_is_named_with_what_to_do(text: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        sniff(text, "papers")


def test_a_pickle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "papers.pkl"
    path.write_bytes(b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00]" + _TEXT.encode())
    with pytest.raises(DataError, match=r"unknown format \(pickle\); write it as Parquet"):
        open_dump(str(path))


def test_a_dump_without_abstracts_is_told_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "papers.bib"
    path.write_text("@misc{a, title={Bees}}\n@misc{b, title={Flowers}}\n", encoding="utf-8")
    with pytest.raises(DataError, match="2 no abstract; export it with abstracts"):
        ingest([str(path)], tmp_path / "out", taxonomy=load_taxonomy())


class TestPubMed:
    def test_a_numbered_paragraph_inside_an_abstract_begins_no_record(self, tmp_path: Path) -> None:
        cited = "{}. J Bees. 2024 May 7;7(1):1. doi: 10.9999/b.{}.\n\nOn Bees.\n\nWick C(1), Ade B.\n\n"
        text = cited.format(1, 1) + _TEXT + "\n\n2. The second half.\n\nPMID: 11\n\n\n" + cited.format(2, 2) + _TEXT
        items = read(tmp_path / "a.txt", text + "\n\nPMID: 12\n")
        assert told(items) == [("On Bees.", _TEXT + "\n2. The second half."), ("On Bees.", _TEXT)]
        assert [item.id for item in items] == ["10.9999/b.1", "10.9999/b.2"]

    def test_hostile_text_ends_quickly(self, tmp_path: Path) -> None:
        beginning = "1. J Bees. 2024.\n\nPMID: 1\n\n"
        for text in ("a" * 5_000_000, "a, " * 100_000, "x\n" * 100_000, "x\n\n" * 50_000, "9" * 100_000 + ". "):
            assert len(read(tmp_path / "a.txt", beginning + text)) == 1


class TestYaml:
    def test_items_without_an_abstract_damaged_or_aliased_are_rejects(self, tmp_path: Path) -> None:
        good = f"- title: On Bees\n  year: 2024\n  abstract: {_TEXT}\n"
        bad = '- title: "open\n- title: On Ants\n- title: *bees\n  abstract: x\n- title: null\n  abstract: ~\n'
        assert [text for _, text in told(read(tmp_path / "a.yaml", "papers:\n" + good + bad + good))] == [
            _TEXT,
            "bad YAML",
            "no abstract",
            "bad YAML",
            "no abstract",
            _TEXT,
        ]

    def test_what_a_note_says_below_its_fields_is_no_paper(self, tmp_path: Path) -> None:
        note = f"---\ntitle: On Bees\nabstract: >-\n  {_TEXT}\n---\n# Mine\n\n{_TEXT}\n"
        assert told(read(tmp_path / "a.md", note)) == [("On Bees", _TEXT)]

    def test_hostile_items_end_quickly_in_rejects(self, tmp_path: Path) -> None:
        good = f"- title: On Bees\n  abstract: {_TEXT}\n"
        for value in (
            "[" * 900_000,
            "[" * 3_000_000,
            "{a: " * 200_000,
            "- " * 300_000,
            "\0",
            "&a [*a, *a]",
            "!!python/x y",
        ):
            items = read(tmp_path / "a.yaml", f"{good}- title: {value}\n{good}")
            assert [text for _, text in told(items)][::2] == [_TEXT, _TEXT], value[:9]


class TestColumns:
    def test_objects_of_lists_are_papers_only_if_all_lists_are_alike(self, tmp_path: Path) -> None:
        columns = {"title": ["A", "B"], "abstract": [_TEXT, None]}
        assert told(read(tmp_path / "a.json", json.dumps(columns))) == [("A", _TEXT), ("B", "no abstract")]
        paper = {"title": "A", "abstract": [_TEXT, "More."]}
        assert len(read(tmp_path / "b.json", json.dumps(paper))) == 1

    def test_a_damaged_split_is_a_reject(self, tmp_path: Path) -> None:
        for columns, data in product((None, 3, ["abstract"]), (None, 3, [3], [[_TEXT, 2]])):
            items = read(tmp_path / "a.json", json.dumps({"columns": columns, "index": [0], "data": data}))
            assert len(items) == 1


class TestPlain:
    def test_wide_lines_are_an_abstract_each(self, tmp_path: Path) -> None:
        wide = _TEXT * 3
        items = read(tmp_path / "a.txt", f"Bees 2024 Papers\n\n{wide}\n{wide}\nOn Ants\n{wide}\n")
        assert [(item.line, text) for item, (_, text) in zip(items, told(items), strict=True)] == [
            (3, wide),
            (4, wide),
            (5, "too short"),
            (6, wide),
        ]

    def test_wide_lines_that_an_editor_wrapped_are_one_abstract(self, tmp_path: Path) -> None:
        wide = " ".join(["bees"] * 45)
        text = f"We count\n{wide}\n{wide}\nand find more."
        assert told(read(tmp_path / "a.txt", f"{text}\n\n{_TEXT}\n{wide}."))[0] == (None, " ".join(text.split()))

    @pytest.mark.parametrize("above", [_TEXT, "We count the bees at the 2024 fair,"])
    def test_a_sentence_above_a_wide_line_is_no_title(self, tmp_path: Path, above: str) -> None:
        assert told(read(tmp_path / "a.txt", f"{above}\n{_TEXT * 3}\n")) == [(None, f"{above} {_TEXT * 3}")]

    def test_a_title_above_a_wide_line(self, tmp_path: Path) -> None:
        wide = _TEXT * 3
        items = read(tmp_path / "a.txt", f"On Bees\nAnn Wick, Bo Ade\n{wide}\n\nPoster Session 3\nOn Ants\n{wide}\n")
        assert told(items) == [("On Bees", wide), ("On Ants", wide)]
