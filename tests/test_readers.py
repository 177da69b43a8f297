"""Readers: every shape and oddity, in sentences of our own."""

import contextlib
import csv
import gzip
import io
import json
import pkgutil
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from abstag import readers
from abstag.errors import AbstagError, DataError
from abstag.readers import expand, formats, open_dump, parse_mapping, sniff, text_formats
from abstag.readers._mapping import MAPPED
from abstag.records import Record, Reject
from tests.bibliography import A, B
from tests.conftest import Go

KNOWN = f"known formats: {', '.join(sorted(formats()))}"
TEXTS = sorted(text_formats())
MODULES = [info.name for info in pkgutil.iter_modules(readers.__path__) if not info.name.startswith("_")]


def write(tmp_path: Path, name: str, content: str | bytes) -> str:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def items(path: str, kind: str | None = None) -> list[Record | Reject]:
    return list(open_dump(path, format=kind).items)


def records(path: str, kind: str | None = None) -> list[Record]:
    found = items(path, kind)
    assert not [item for item in found if isinstance(item, Reject)]
    return [item for item in found if isinstance(item, Record)]


def reasons(path: str, kind: str | None = None) -> list[str]:
    return [item.reason if isinstance(item, Reject) else "" for item in items(path, kind)]


def one(tmp_path: Path, paper: dict[str, Any]) -> Record:
    (record,) = records(write(tmp_path, "one.jsonl", json.dumps(paper)))
    return record


@pytest.mark.parametrize("name", MODULES)
def test_each_format_keeps_the_contract(name: str) -> None:
    module: Any = import_module(f"abstag.readers.{name}")
    assert module.__doc__
    assert module.read.__doc__
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in module.SUFFIXES)
    if hasattr(module, "BINARY"):
        assert module.recognise.__doc__
        assert module.recognise(b"") is False
    else:
        assert module.sniff.__doc__
        assert module.sniff("", {}) == module.sniff("", {"title": "x"}) == 0
    assert formats()[module.NAME] is module


@pytest.mark.parametrize("name", TEXTS)
def test_each_format_maps_fields_or_says_that_it_has_none(tmp_path: Path, name: str) -> None:
    texts = {"table": f'Text,Name\n"{A}",Gardens\n', "json": json.dumps({"Text": A, "Name": "Gardens"})}
    path = write(tmp_path, "a", texts.get(name, f"## Gardens\n{A}\n"))
    dump = open_dump(path, format=name, mapping={"abstract": "Text", "title": "Name"})
    if name in texts:
        assert [(item.title, item.abstract) for item in dump.items if isinstance(item, Record)] == [("Gardens", A)]
    else:
        with pytest.raises(
            DataError, match=f"--map names columns or keys, the format {name} has none; leave --map out"
        ):
            list(dump.items)


def test_import_is_light() -> None:
    heavy = "{'ijson', 'pandas', 'datasets'}"
    code = f"import sys, abstag.readers as r; r.formats(); sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestPlain:
    @pytest.mark.parametrize(
        ("title", "venue", "year"),
        [
            ("ICML 2025 Papers", "ICML", 2025),
            ("ICML 2025 论文列表", "ICML", 2025),
            ("NeurIPS 2024 Accepted Papers", "NeurIPS", 2024),
            ("# Accepted Papers of Interspeech, 2023", "Interspeech", 2023),
            ("2022 ICLR Papers", "ICLR", 2022),
            ("Papers", None, None),
        ],
    )
    @pytest.mark.parametrize("gap", ["\n\n", "\r\n\r\n", "\n   \n\n"])
    def test_title_gives_venue_and_year(
        self, tmp_path: Path, title: str, venue: str | None, year: int | None, gap: str
    ) -> None:
        found = records(write(tmp_path, "a.txt", f"\ufeff{title}{gap}{A}{gap}{B}"))
        assert [(item.abstract, item.title, item.venue, item.year) for item in found] == [
            (A, None, venue, year),
            (B, None, venue, year),
        ]
        assert [item.n for item in found] == [1, 2]

    def test_no_title_line(self, tmp_path: Path) -> None:
        assert [(item.abstract, item.venue, item.line) for item in records(write(tmp_path, "a", f"{A}\n\n{B}\n"))] == [
            (A, None, 1),
            (B, None, 3),
        ]

    def test_title_without_a_blank_line_after_it(self, tmp_path: Path) -> None:
        (found,) = records(write(tmp_path, "a.txt", f"ICML 2025 Papers\n{A}"))
        assert (found.abstract, found.venue, found.line) == (A, "ICML", 2)

    def test_hard_wrapped_paragraphs_are_joined(self, tmp_path: Path) -> None:
        wrapped = "\r\n".join(f"  {part}" for part in A.replace(". ", ".\n").replace(" the ", " the\n").split("\n"))
        (found,) = records(write(tmp_path, "a.txt", wrapped))
        assert found.abstract == A

    def test_wrapped_line_that_looks_like_a_venue_stays(self, tmp_path: Path) -> None:
        text = f"{A}\n\nWe win at ICML 2025\nand then we explain at length how. {B}"
        assert records(write(tmp_path, "a.txt", text))[1].abstract.startswith("We win at ICML 2025 and then")

    def test_stray_headings_are_neither_records_nor_rejects(self, tmp_path: Path) -> None:
        parts = ["ICML 2025 Papers", A, "Oral Papers", B, "## Posters", A, "ICML 2024 Papers", B, "-----", "2019", A]
        found = records(write(tmp_path, "a.txt", "\n\n".join(parts)))
        assert [(item.venue, item.year) for item in found] == [("ICML", y) for y in (2025, 2025, 2025, 2024, 2019)]
        assert [item.n for item in found] == [1, 2, 3, 4, 5]

    def test_markdown_heading_needs_no_blank_lines(self, tmp_path: Path) -> None:
        assert len(records(write(tmp_path, "a.md", f"# ICML 2025\n{A}\n## Posters\n{B}\n"))) == 2

    def test_title_with_a_year_is_no_venue(self, tmp_path: Path) -> None:
        found = records(write(tmp_path, "a.txt", f"ICML 2025 Papers\n\n{A}\n\nWhat gardens grew into by 2019\n\n{B}"))
        assert found[1].venue == "ICML"
        assert found[1].year == 2025

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("See the errata below.", "too short"),
            ("A line of fourteen words that ends nowhere and so is no abstract at all", "too short"),
            ("N/A", "placeholder abstract"),
            ("No abstract available.", "placeholder abstract"),
            ("Withdrawn", "withdrawn"),
            ("This paper has been withdrawn by its author because the lamps were borrowed.", "withdrawn"),
            ("word " * 2500 + ".", "too long"),
        ],
    )
    def test_rejects(self, tmp_path: Path, text: str, reason: str) -> None:
        found = items(write(tmp_path, "a.txt", f"ICML 2025 Papers\n\n{A}\n\n{text}\n\n{B}"))
        assert isinstance(found[1], Reject)
        assert (found[1].reason, found[1].n, found[1].line) == (reason, 2, 5)
        assert [item.n for item in found] == [1, 2, 3]

    def test_long_abstract_about_withdrawal_is_kept(self, tmp_path: Path) -> None:
        assert records(write(tmp_path, "a.txt", f"Withdrawn money is rarely missed. {A} {B}"))


class TestJson:
    def test_paper_lists(self, tmp_path: Path) -> None:
        paper = {
            "id": "Qx1",
            "title": "Gardens",
            "abstract": A,
            "keywords": "petals; counting ;",
            "primary_area": "botany (flowers, trees, etc.)",
            "status": "Poster",
        }
        (found,) = records(write(tmp_path, "a.json", json.dumps([paper], indent=1)))
        assert found.declared == ("petals", "counting", "botany (flowers, trees, etc.)")
        assert (found.id, found.title, found.abstract, found.line, found.areas) == ("Qx1", "Gardens", A, None, None)

    @pytest.mark.parametrize("key", ["data", "papers", "notes", "results"])
    @pytest.mark.parametrize("indent", [None, 2])
    def test_object_that_holds_a_list(self, tmp_path: Path, key: str, indent: int | None) -> None:
        dump = {"count": 2, "meta": {"data": [1], "authors": [{"name": "x"}]}, key: [{"abstract": A}, {"abstract": B}]}
        found = records(write(tmp_path, "a.json", json.dumps(dump, indent=indent)))
        assert [item.abstract for item in found] == [A, B]

    def test_a_page_a_line(self, tmp_path: Path) -> None:
        lines = [json.dumps({"meta": {"page": page}, "results": [{"abstract": A}]}) for page in (1, 2)]
        assert len(records(write(tmp_path, "a.jsonl", "\n".join(lines)))) == 2

    def test_paper_that_holds_lists_is_a_paper(self, tmp_path: Path) -> None:
        assert one(tmp_path, {"authors": [{"name": "x"}], "abstract": A, "results": [{"abstract": B}]}).abstract == A

    def test_one_object_over_several_lines(self, tmp_path: Path) -> None:
        text = "\n".join(json.dumps({"abstract": text}, indent=1) for text in (A, B))
        assert [item.abstract for item in records(write(tmp_path, "a.json", text))] == [A, B]

    def test_openreview_1(self, tmp_path: Path) -> None:
        content = {"title": "Lamps", "abstract": B, "keywords": ["light", "bits"], "venue": "ICLR 2021 Poster"}
        found = one(tmp_path, {"id": "r1", "forum": "r0", "cdate": 1601308012345, "content": content})
        assert (found.id, found.title, found.abstract, found.venue, found.year) == (
            "r1",
            "Lamps",
            B,
            "ICLR 2021 Poster",
            2021,
        )
        assert found.declared == ("light", "bits")

    def test_openreview_2(self, tmp_path: Path) -> None:
        content: dict[str, Any] = {
            "title": {"value": "Lamps"},
            "abstract": {"value": B},
            "keywords": {"value": ["light"]},
            "primary_area": {"value": "optics"},
            "venue": {"value": "Submitted to the lamp meeting"},
        }
        found = one(tmp_path, {"forum": "r0", "cdate": 1693526400000, "content": content})
        assert (found.id, found.venue, found.year) == ("r0", "Submitted to the lamp meeting", 2023)
        assert found.declared == ("light", "optics")

    def test_arxiv_snapshot(self, tmp_path: Path) -> None:
        paper: dict[str, Any] = {
            "id": "0801.0001",
            "title": "Gardens\n  in winter",
            "abstract": "  " + A.replace(". ", ".\n  ") + "\n",
            "categories": "cs.LG stat.ML",
            "versions": [{"version": "v1", "created": "Tue, 1 Jan 2008 19:18:42 GMT"}],
            "update_date": "2015-05-13",
        }
        found = one(tmp_path, paper)
        assert (found.id, found.venue, found.year, found.declared) == ("0801.0001", "arXiv", 2008, ())
        assert found.abstract.split() == A.split()
        assert one(tmp_path, paper | {"versions": None}).year == 2015

    def test_ours(self, tmp_path: Path) -> None:
        paper = {"id": 7, "abstract": A, "venue": "ICLR", "year": "2024", "part": "test", "sure": 0, "topic": "soil"}
        found = one(tmp_path, paper | {"areas": "llm; graphs", "judged": ["llm"], "primary_area": None})
        assert (found.id, found.year, found.part, found.sure, found.declared) == ("7", 2024, "test", False, ("soil",))
        assert (found.areas, found.judged) == (("llm", "graphs"), ("llm",))

    @pytest.mark.parametrize(
        ("areas", "read"),
        [(None, None), ([], ()), ("none", ()), ("", None), (["llm"], ("llm",)), ("llm;graphs", ("llm", "graphs"))],
    )
    def test_areas(self, tmp_path: Path, areas: object, read: object) -> None:
        assert one(tmp_path, {"abstract": A, "areas": areas}).areas == read
        assert one(tmp_path, {"abstract": A}).areas is None

    @pytest.mark.parametrize(
        ("fields", "year"),
        [
            ({"year": 2024}, 2024),
            ({"year": "2024.0"}, 2024),
            ({"year": 2024.0}, 2024),
            ({"year": None, "conference": "NeurIPS 2019"}, 2019),
            ({"year": 12, "venue": "room 12345"}, None),
            ({"year": True}, None),
        ],
    )
    def test_year(self, tmp_path: Path, fields: dict[str, Any], year: int | None) -> None:
        assert one(tmp_path, {"abstract": A, **fields}).year == year

    def test_declared_skips_nulls_and_repeats(self, tmp_path: Path) -> None:
        paper = {"abstract": A, "keywords": ["soil", None, 3, "soil"], "primary_area": None, "topic": ["seeds"]}
        assert one(tmp_path, paper).declared == ("soil", "seeds")
        assert one(tmp_path, {"abstract": A, "keywords": "soil, seeds"}).declared == ("soil", "seeds")

    @pytest.mark.parametrize(
        ("abstract", "reason"),
        [
            (None, "no abstract"),
            ("  ", "no abstract"),
            (3, "no abstract"),
            ([3], "no abstract"),
            ("N/A", "placeholder abstract"),
            ("none", "placeholder abstract"),
            ("[No abstract available]", "placeholder abstract"),
            ("Abstract not available.", "placeholder abstract"),
            ("--", "placeholder abstract"),
            ("Withdrawn.", "withdrawn"),
            ("This submission was withdrawn by the authors.", "withdrawn"),
        ],
    )
    def test_unusable_abstract_keeps_id_and_title(self, tmp_path: Path, abstract: object, reason: str) -> None:
        (found,) = items(write(tmp_path, "a.jsonl", json.dumps({"id": "x", "title": "Soil", "abstract": abstract})))
        assert isinstance(found, Reject)
        assert (found.reason, found.id, found.title, found.n, found.line) == (reason, "x", "Soil", 1, 1)

    def test_bad_value(self, tmp_path: Path) -> None:
        assert reasons(write(tmp_path, "a.jsonl", json.dumps({"abstract": A, "sure": "perhaps"}))) == ["bad value"]

    def test_bad_line_is_a_reject_and_reading_goes_on(self, tmp_path: Path) -> None:
        good = json.dumps({"abstract": A})
        deep = '{"a":' * 100_000
        lines = [
            good,
            "",
            '{"abstract": "cut',
            '{"abstract": NaN}',
            deep,
            "[1]",
            "3",
            '{"n": ' + "1" * 5000 + "}",
            good,
        ]
        found = items(write(tmp_path, "a.json", "\r\n".join(lines)))
        assert [item.reason if isinstance(item, Reject) else "" for item in found] == [
            "",
            "bad JSON",
            "no abstract",
            "bad JSON",
            "not an object",
            "not an object",
            "bad JSON",
            "",
        ]
        assert [item.n for item in found] == list(range(1, 9))
        assert [item.line for item in found] == [1, 3, 4, 5, 6, 7, 8, 9]

    def test_bad_first_line(self, tmp_path: Path) -> None:
        lines = ['{"id": "x", "abs', json.dumps({"abstract": A}), json.dumps({"abstract": B})]
        assert reasons(write(tmp_path, "a.jsonl", "\n".join(lines))) == ["bad JSON", "", ""]
        lines[0] = "some log output"
        assert reasons(write(tmp_path, "b.jsonl", "\n".join(lines))) == ["bad JSON", "", ""]

    @pytest.mark.parametrize("end", ['{"abstract": "cut', "{bad}]", "1" * 5000 + "]", "", "}"])
    def test_broken_array_gives_what_came_before(self, tmp_path: Path, end: str) -> None:
        text = "[" + "".join(f"{json.dumps({'abstract': A})}," for _ in range(300)) + end
        found = items(write(tmp_path, "a.json", text))
        assert [type(item) for item in found] == [Record] * 300 + [Reject]
        assert isinstance(found[-1], Reject)
        assert (found[-1].reason, found[-1].n) == ("bad JSON", 301)
        assert "rest of the file" in found[-1].detail

    def test_array_items_that_are_no_papers(self, tmp_path: Path) -> None:
        deep = '{"a":' + "[" * 50_000 + "]" * 50_000 + "}"
        text = f'[{json.dumps({"abstract": A})}, 1, null, [2], "x", {deep}, {json.dumps({"abstract": B})}]'
        assert reasons(write(tmp_path, "a.json", text)) == ["", *["not an object"] * 4, "bad JSON", ""]

    def test_lone_surrogates_are_replaced(self, tmp_path: Path) -> None:
        (found,) = records(write(tmp_path, "a.jsonl", '{"abstract": "' + A + ' \\ud800 \\ud83d\\ude00"}'))
        assert found.abstract == f"{A} \ufffd \U0001f600"

    def test_empty_array(self, tmp_path: Path) -> None:
        assert items(write(tmp_path, "a.json", "[]")) == []


class TestTable:
    @pytest.mark.parametrize("delimiter", [",", "\t", ";"])
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_delimiters_cells_over_lines_and_big_cells(self, tmp_path: Path, delimiter: str, end: str) -> None:
        stream = io.StringIO(newline="")
        big = A + " ,;\t" * 100_000 + '"end".'
        rows = [["Title", "Abstract", "Year"], ["Gardens", f"{A}\n{B}", "2021"], [], ["", "", ""], ["Big", big, "x"]]
        csv.writer(stream, delimiter=delimiter, lineterminator=end).writerows(rows)
        before = csv.field_size_limit()
        found = records(write(tmp_path, "a.csv", "\ufeff" + stream.getvalue()))
        assert [(item.title, item.abstract, item.year) for item in found] == [
            ("Gardens", f"{A}\n{B}", 2021),
            ("Big", big, None),
        ]
        assert [(item.n, item.line) for item in found] == [(1, 2), (2, 6)]
        assert csv.field_size_limit() == before

    def test_column_names(self, tmp_path: Path) -> None:
        header = "Key,Item Type,Publication Year,Title,Publication Title,Abstract Note,Manual Tags"
        text = f'{header}\nK1,x,2020,T,V,"{A}",a; b'
        (found,) = records(write(tmp_path, "zotero.csv", text))
        assert (found.id, found.title, found.venue, found.year, found.declared) == ("K1", "T", "V", 2020, ("a", "b"))
        (found,) = records(write(tmp_path, "wos.tsv", f"TI\tSO\tAB\tID\tPY\tUT\nT\tV\t{A}\tsoil\t2020\tW1"))
        assert (found.id, found.title, found.venue, found.abstract) == ("W1", "T", "V", A)

    def test_our_columns(self, tmp_path: Path) -> None:
        rows = [
            f'x{i},"{A}",{areas},{sure},train,soil'
            for i, (areas, sure) in enumerate([("", 1), ("none", 0), ("llm;graphs", "")])
        ]
        found = records(write(tmp_path, "a.csv", "\n".join(["id,abstract,areas,sure,part,primary_area", *rows])))
        assert [item.areas for item in found] == [None, (), ("llm", "graphs")]
        assert [item.sure for item in found] == [True, False, True]
        assert {(item.part, item.declared) for item in found} == {("train", ("soil",))}

    def test_ragged_and_bad_rows(self, tmp_path: Path) -> None:
        text = f'id,abstract\nx,"{A}",more\ny,"{A}" tail\nz,N/A\nw,"{B}"\nv,"never closed\n\n'
        found = items(write(tmp_path, "a.csv", text))
        assert [item.reason if isinstance(item, Reject) else "" for item in found] == [
            "ragged row",
            "bad row",
            "placeholder abstract",
            "",
            "bad row",
        ]
        assert isinstance(found[0], Reject)
        assert found[0].detail == "3 cells, the header has 2"
        assert [item.line for item in found] == [2, 3, 4, 5, 6]

    def test_no_abstract_column(self, tmp_path: Path) -> None:
        path = write(tmp_path, "a.csv", "id,title,venue\n1,Gardens,ICML\n")
        with pytest.raises(
            DataError, match=r"a\.csv: no abstract column among: id, title, venue; rename .*--map abstract=NAME"
        ):
            items(path)

    def test_single_column(self, tmp_path: Path) -> None:
        assert records(write(tmp_path, "a.csv", f'abstract\n"{A}"\n'))[0].abstract == A


class TestMapping:
    @pytest.mark.parametrize(
        ("text", "mapping"),
        [
            ("title=Name", {"title": "Name"}),
            (" title = Paper name , abstract= Text ", {"title": "Paper name", "abstract": "Text"}),
            ('title="Name, long",abstract=Text', {"title": "Name, long", "abstract": "Text"}),
            ('"title=Name, long","abstract=The ""Text"""', {"title": "Name, long", "abstract": 'The "Text"'}),
            ("id=a=b", {"id": "a=b"}),
            ("abstract=content.abstract.value", {"abstract": "content.abstract.value"}),
        ],
    )
    def test_forms(self, text: str, mapping: dict[str, str]) -> None:
        assert parse_mapping([text]) == mapping

    def test_repeated_option(self) -> None:
        assert parse_mapping(["title=a", "year=b"]) == {"title": "a", "year": "b"}
        assert parse_mapping([]) == {}

    @pytest.mark.parametrize(
        ("text", "error"),
        [
            ("titel=x", r"there is no field 'titel'; did you mean 'title'\?"),
            ("Abstract=x", "there is no field 'Abstract'; did you mean 'abstract'"),
            ("zzzzzz=x", "there is no field 'zzzzzz'; known: title, abstract, id, "),
            ("title=a,title=b", "title is given twice; name one column"),
            ("title=", "title has no name; write title=NAME"),
            ('title=""', "title has no name"),
            ("title", "cannot be read: 'title'; write FIELD=NAME,FIELD=NAME"),
            ("title=a,", "cannot be read: ''"),
            ("", "cannot be read: ''"),
            ("=a", "cannot be read: '=a'"),
            ('title="a', """cannot be read: 'title="a'"""),
            ('title="a"b"', "cannot be read"),
        ],
    )
    def test_mistakes(self, text: str, error: str) -> None:
        with pytest.raises(DataError, match=f"^--map: {error}"):
            parse_mapping([text])

    @given(st.dictionaries(st.sampled_from(MAPPED), st.text(min_size=1).map(str.strip).filter(bool), min_size=1))
    def test_any_name_can_be_quoted(self, mapping: dict[str, str]) -> None:
        quoted = ",".join('{}="{}"'.format(field, name.replace('"', '""')) for field, name in mapping.items())
        assert parse_mapping([quoted]) == mapping

    @given(st.text(alphabet='title=,"a b'))
    def test_any_text_is_read_or_our_error(self, text: str) -> None:
        with contextlib.suppress(DataError):
            assert set(parse_mapping([text])) <= set(MAPPED)

    @pytest.mark.parametrize("name", ["Text", "text", " TEXT "])
    @pytest.mark.parametrize("file", ["a.csv", "a.txt", "dump"])
    def test_columns_of_other_names_are_recognised(self, tmp_path: Path, name: str, file: str) -> None:
        path = write(tmp_path, file, f'Paper,"Text",Year,Stars\nGardens,"{A}",2021,3\n')
        (found,) = open_dump(path, mapping={"abstract": name.strip(), "title": "paper"}).items
        assert isinstance(found, Record)
        assert (found.title, found.abstract, found.year) == ("Gardens", A, 2021)

    def test_a_mapped_column_is_taken_before_ours(self, tmp_path: Path) -> None:
        path = write(tmp_path, "a.csv", f'title;abstract;Long, full;ABSTRACT;areas;x\nT;short;"{A}";no;llm;graphs\n')
        (found,) = open_dump(path, mapping={"abstract": "Long, full", "areas": "x"}).items
        assert isinstance(found, Record)
        assert (found.title, found.abstract, found.areas) == ("T", A, ("graphs",))
        (found,) = open_dump(path, mapping={"abstract": "ABSTRACT"}).items
        assert isinstance(found, Record)
        assert found.abstract == "no"

    @pytest.mark.parametrize("file", ["a.csv", "a.txt", "dump"])
    def test_a_column_that_is_not_there(self, tmp_path: Path, file: str) -> None:
        path = write(tmp_path, file, f'Paper,"Text, long"\nGardens,"{A}"\n')
        with pytest.raises(
            DataError, match=r"--map abstract: .* no column 'Text'; the columns are: 'Paper', 'Text, long'"
        ):
            list(open_dump(path, mapping={"abstract": "Text"}).items)

    def test_keys_inside_objects_and_lists(self, tmp_path: Path) -> None:
        content = {"text": {"value": A}, "names": ["x", {"value": "Gardens"}], "a.b": "ICML 2021"}
        paper = {"content": content, "abstract": "other", "venue": "ICLR", "year": 2020, "cdate": 1e12, "n": {"id": 7}}
        mapping = {"title": "content.names[1]", "venue": "content.a.b", "id": "N.Id", "keywords": "content.names"}
        path = write(tmp_path, "a.json", json.dumps([paper | {"a.b": 1}]))
        (found,) = open_dump(path, mapping={"abstract": "content.text.value"}).items
        assert isinstance(found, Record)
        assert (found.abstract, found.venue, found.year) == (A, "ICLR", 2020)
        (found,) = open_dump(path, mapping=mapping | {"abstract": "content.text", "venue": "a.b"}).items
        assert isinstance(found, Record)
        assert (found.abstract, found.title, found.id, found.venue, found.year) == (A, "Gardens", "7", None, 2020)
        assert found.declared == ("x",)

    def test_a_key_that_only_some_have(self, tmp_path: Path) -> None:
        lines = "\n".join(json.dumps(paper) for paper in ({"abstract": A, "text": B}, {"abstract": A}))
        first, second = open_dump(write(tmp_path, "a.jsonl", lines), mapping={"abstract": "text"}).items
        assert isinstance(first, Record)
        assert first.abstract == B
        assert isinstance(second, Reject)
        assert second.reason == "no abstract"

    @pytest.mark.parametrize(
        "key", ["txt", "content.txt", "content[0]", "title.x", "[", ".", "content.abstract[99999999999]"]
    )
    def test_a_key_that_no_record_has(self, tmp_path: Path, key: str) -> None:
        path = write(tmp_path, "a.jsonl", json.dumps({"title": "T", "content": {"abstract": A}}))
        with pytest.raises(DataError) as caught:
            list(open_dump(path, mapping={"title": "title", "abstract": key}).items)
        assert caught.value.what == f"--map abstract: no record has the key {key!r}"
        assert caught.value.remedy == "the keys of the first are: title, content, content.abstract"

    @pytest.mark.parametrize("text", [f"ICML 2025 Papers\n\n{A}\n\n{B}\n", f"## Gardens\n\n{A}\n\n## Lamps\n\n{B}\n"])
    def test_formats_without_fields(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(DataError, match="neither JSON nor a table, so --map can name nothing; leave --map out"):
            open_dump(write(tmp_path, "a.md", text), mapping={"title": "x"})

    def test_both_verbs(self, tmp_path: Path, go: Go, demo_runs: Path) -> None:
        dump = write(tmp_path, "a.csv", f'Paper,"Text, long"\nGardens,"{A}"\n')
        mapping = ("--map", "title=paper", "--map", 'abstract="Text, long"')
        tag = ("tag", dump, "--bundle", "nb", "--runs-dir", demo_runs)
        assert json.loads(go("ingest", dump, *mapping, "--json", "-o", tmp_path / "c", code=0).out)["records"] == 1
        assert json.loads(go(*tag, *mapping, code=0).out)["title"] == "Gardens"
        go(*tag, *mapping, "-o", tmp_path / "tags.jsonl", code=0)
        assert json.loads((tmp_path / "tags.jsonl").read_text())["title"] == "Gardens"
        for verb in (("ingest", dump, "-o", tmp_path / "d"), tag):
            told = go(*verb, "--map", "titel=x", code=1).err
            assert told == "abstag: --map: there is no field 'titel'; did you mean 'title'?\n"


class TestOpening:
    SAMPLES = (
        ("plain", f"ICML 2025 Papers\n\n{A} Żółć.\n\n{B}\n"),
        ("json", json.dumps([{"abstract": A + " Żółć."}, {"abstract": B}], ensure_ascii=False)),
        ("json", "\n".join(json.dumps({"abstract": text}, ensure_ascii=False) for text in (A + " Żółć.", B))),
        ("table", f'id,abstract\n1,"{A} Żółć."\n2,"{B}"\n'),
        ("markdown", f"## [1] Gardens\n\n{A} Żółć.\n\n## [2] Lamps\n\n{B}\n"),
        ("bibtex", f"@misc{{a,\n  abstract = {{{A} Żółć.}}\n}}\n@misc{{b,\n  abstract = {{{B}}}\n}}\n"),
        ("ris", f"TY  - GEN\nAB  - {A} Żółć.\nER  - \n\nTY  - GEN\nAB  - {B}\nER  - \n"),
    )

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
    @pytest.mark.parametrize("packed", [False, True])
    @pytest.mark.parametrize("stdin", [False, True])
    @pytest.mark.parametrize(("name", "text"), SAMPLES)
    def test_encodings_gzip_and_stdin(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        name: str,
        text: str,
        *,
        encoding: str,
        packed: bool,
        stdin: bool,
    ) -> None:
        data = text.encode(encoding)
        path = write(tmp_path, "dump", gzip.compress(data) if packed else data)
        with Path(path).open(encoding="utf-8") as stream, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", stream)
            dump = open_dump("-" if stdin else path)
            found = list(dump.items)
            assert stream.closed is False
        assert dump.format == name
        assert dump.file == ("-" if stdin else path)
        assert [item.abstract for item in found if isinstance(item, Record)] == [f"{A} Żółć.", B]
        assert {item.file for item in found} == {dump.file}

    def test_pipe(self, tmp_path: Path) -> None:
        code = (
            "from abstag.readers import open_dump; import sys; sys.stdout.write(str(len(list(open_dump('-').items))))"
        )
        lines = "\n".join(json.dumps({"abstract": A}) for _ in range(2000))
        data = gzip.compress(lines.encode())
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], input=data, capture_output=True, check=True)
        assert (done.stdout, done.stderr) == (b"2000", b"")

    def test_several_gzip_members_and_padding(self, tmp_path: Path) -> None:
        members = [gzip.compress((json.dumps({"abstract": text}) + "\n").encode()) for text in (A, B)]
        assert len(records(write(tmp_path, "a.gz", b"".join(members) + b"\0" * 100))) == 2

    @pytest.mark.parametrize("damage", ["cut", "flipped", "tail"])
    def test_damaged_gzip(self, tmp_path: Path, damage: str) -> None:
        data = gzip.compress("\n".join(json.dumps({"abstract": f"{A} {n * 7919}"}) for n in range(5000)).encode())
        middle = len(data) // 2
        broken = {"cut": data[:middle], "flipped": data[:middle] + bytes(99) + data[middle + 99 :], "tail": data + b"x"}
        with pytest.raises(DataError, match="damaged gzip"):
            items(write(tmp_path, "a.jsonl.gz", broken[damage]))

    def test_wrong_encoding_names_byte_and_line(self, tmp_path: Path) -> None:
        text = f"{A}\n\n{B} " * 2000 + "\n"
        with pytest.raises(DataError, match=rf"byte {2 * len(text) + 2} \(line 4002\) is not UTF-16.*; convert"):
            items(write(tmp_path, "b.txt", (text.encode("utf-16") + b"\x00")))

    @pytest.mark.parametrize("content", [b"", b" \n\n\t", b"\xef\xbb\xbf\n", gzip.compress(b"", mtime=0)])
    @pytest.mark.parametrize("forced", [None, "json"])
    def test_empty(self, tmp_path: Path, content: bytes, forced: str | None) -> None:
        with pytest.raises(DataError, match="the dump is empty"):
            open_dump(write(tmp_path, "a.txt", content), format=forced)

    @pytest.mark.parametrize(
        ("magic", "kind"), [(b"\x89PNG", "PNG"), (b"\x89HDF", "HDF5"), (b"\xd0\xcf\x11\xe0", "old Office")]
    )
    @pytest.mark.parametrize("packed", [False, True])
    def test_binary(self, tmp_path: Path, magic: bytes, kind: str, *, packed: bool) -> None:
        data = magic + bytes(range(256))
        path = write(tmp_path, "a.txt", gzip.compress(data) if packed else data)
        with pytest.raises(DataError, match=rf"unknown format \({kind}\); {KNOWN}"):
            open_dump(path)

    @pytest.mark.parametrize(("name", "text"), SAMPLES)
    def test_nul_bytes(self, tmp_path: Path, name: str, text: str) -> None:
        found = items(write(tmp_path, "a", text.replace("Żółć", "Ż\0ółć")))
        assert len(found) == (1 if text.startswith("[") else 2)  # inside an array it ends what can be read
        assert open_dump(write(tmp_path, "b", text)).format == name

    def test_forced_format(self, tmp_path: Path) -> None:
        path = write(tmp_path, "a.json", json.dumps({"abstract": A}))
        assert open_dump(path, format="plain").format == "plain"
        with pytest.raises(DataError, match=f"no format 'jsn'; {KNOWN}"):
            open_dump(path, format="jsn")

    @pytest.mark.parametrize("read", [0, 1, None])
    def test_the_file_is_closed(self, tmp_path: Path, read: int | None) -> None:
        dump = open_dump(write(tmp_path, "a.txt", f"{A}\n\n{B}"))
        stream = dump.items._stream
        for _ in range(2 if read is None else read):
            next(dump.items)
        if read is None:
            assert list(dump.items) == []
        else:
            dump.items.close()
        assert stream.closed
        assert list(dump.items) == []

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["lines", "array", "table", "plain"])
    def test_memory_stays_flat(self, tmp_path: Path, kind: str) -> None:
        path = tmp_path / "big"
        paper, count = json.dumps({"id": "x", "abstract": f"{A} {B}" * 3, "keywords": ["a", "b"]}), 12_000
        with path.open("w") as stream:
            if kind == "array":
                stream.write("[" + ",".join([paper] * count) + "]")
            elif kind == "lines":
                stream.writelines(f"{paper}\n" for _ in range(count))
            else:
                stream.write("id,abstract\n" if kind == "table" else "ICML 2025\n\n")
                stream.writelines(f'x,"{A * 6}"\n' if kind == "table" else f"{A * 6}\n\n" for _ in range(count))
        next(open_dump(str(path)).items)
        tracemalloc.start()
        assert sum(isinstance(item, Record) for item in open_dump(str(path)).items) == count
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert path.stat().st_size > 10_000_000
        assert peak < 2_500_000


class TestSniff:
    @pytest.mark.parametrize(
        ("head", "name"),
        [
            ("hello", "a.txt"),
            ("<p>" + A, "a.html"),
            (f"1,Gardens,{A}\n2,Lamps,{B}\n", "a.csv"),
        ],
    )
    def test_unknown(self, head: str, name: str) -> None:
        with pytest.raises(DataError, match=f"unknown format; {KNOWN}"):
            sniff(head, name)

    def test_ambiguous_without_a_suffix(self) -> None:
        head = f"abstract\n{A}\n"
        with pytest.raises(DataError, match="any of the formats plain, table; name one"):
            sniff(head, "-")
        assert sniff(head, "a.csv").NAME == "table"
        assert sniff(head, "a.txt.gz").NAME == "plain"

    def test_content_before_suffix(self) -> None:
        assert sniff('{"abstract": "x"}', "a.txt").NAME == "json"
        assert sniff(f"[1] {A}", "a.txt").NAME == "plain"
        assert sniff("title,abstract\n", "a.txt").NAME == "table"


class TestExpand:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for name in ("b.txt", "a.txt", "sub/c.json", ".hidden", ".git/d.txt", "x[1].txt"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("x")
        (tmp_path / "empty").mkdir()
        return tmp_path

    def test_all_kinds(self, folder: Path) -> None:
        def names(*paths: str) -> list[str]:
            return [file if file == "-" else str(Path(file).relative_to(folder)) for file in expand(paths)]

        assert names(str(folder)) == ["a.txt", "b.txt", "sub/c.json", "x[1].txt"]
        assert names(f"{folder}/[ab].txt", "-", f"{folder}/b.txt") == ["a.txt", "b.txt", "-"]
        assert names(f"{folder}/**/*.json") == ["sub/c.json"]
        assert names(f"{folder}/x[1].txt") == ["x[1].txt"]

    @pytest.mark.parametrize("name", ["missing.txt", "*.csv", "empty", "a\0b", "n" * 5000])
    def test_nothing_there(self, folder: Path, name: str) -> None:
        with pytest.raises(DataError):
            expand([str(folder / name)])

    def test_unreadable(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*args: object, **options: object) -> Iterator[None]:
            raise PermissionError(13, "Permission denied", str(folder))

        monkeypatch.setattr("os.scandir", refuse)
        with pytest.raises(DataError, match="Permission denied"):
            expand([str(folder)])
        monkeypatch.setattr(Path, "open", refuse)
        with pytest.raises(DataError, match="Permission denied"):
            open_dump(str(folder / "a.txt"))

    def test_opening_a_folder_or_nothing(self, folder: Path) -> None:
        for name in ("sub", "missing"):
            with pytest.raises(DataError, match="cannot be opened"):
                open_dump(str(folder / name))


PIECES = st.sampled_from(
    [
        *(
            '{"abstract": "',
            '"}',
            "[",
            "]",
            "{",
            ",",
            "\n",
            "\n\n",
            "\r",
            '"',
            ";",
            "\t",
            "abstract,title\n",
            "\0",
            "# ",
            A,
        ),
        *(
            "## ",
            "**T**",
            "- ",
            "> ",
            "|",
            "|-|-|",
            "<details>",
            "<summary>Abstract</summary>",
            "**Abstract**: ",
            "```",
        ),
    ]
)
DUMPS = st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=5))).map("".join))


@pytest.mark.parametrize("forced", [*sorted(formats()), None])
@given(content=st.one_of(DUMPS.map(lambda text: text.encode(errors="replace")), st.binary()))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_anything_gives_records_rejects_or_our_error(tmp_path: Path, forced: str | None, content: bytes) -> None:
    path = write(tmp_path, "dump", content)
    try:
        found = items(path, forced)
    except AbstagError:
        return
    assert all(isinstance(item, Record | Reject) for item in found)
    assert [item.n for item in found] == list(range(1, len(found) + 1))


def test_files_about_a_folder_are_no_dumps_unless_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("README.md", "LICENSE", "papers.txt", "readme-papers.md"):
        (tmp_path / name).write_text("text")
    with caplog.at_level("INFO", logger="abstag"):
        found = expand([str(tmp_path)])
    assert [Path(file).name for file in found] == ["papers.txt", "readme-papers.md"]
    assert "LICENSE" in caplog.text
    assert expand([str(tmp_path / "README.md")]) == [str(tmp_path / "README.md")]
