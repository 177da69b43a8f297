"""Tables: columns by number and by content, bad quotes, hostile text, and workbooks of Excel."""

import csv
import io
import json
import logging
import time
import zipfile
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from abstag.errors import DataError
from abstag.readers import open_dump, sniff, xlsx
from abstag.readers import table as module
from abstag.records import Record, Reject

A = "We teach a small network to fold paper boats and measure how far they drift on a windy pond at night, and why."
B = "A clock that forgets every third tick is studied here, and we show that it still keeps the right hour on average."
C = "Bakers weigh flour by hand and we replace the hand by a spring, which proves that the loaves keep their size."
_DUMPS = Path(__file__).parent / "dumps"
Cells = Sequence[Sequence[object]]


def read(path: Path, content: str, **mapping: str) -> list[Record | Reject]:
    path.write_bytes(content.encode())
    return list(open_dump(str(path), mapping=mapping).items)


def told(items: Sequence[Record | Reject]) -> list[str | None]:
    """Title of each record, reason of each reject."""
    return [item.title if isinstance(item, Record) else item.reason for item in items]


def book(path: Path, *sheets: Cells) -> Path:
    workbook = Workbook()
    for number, rows in enumerate(sheets):
        sheet = workbook.create_sheet() if number else workbook.worksheets[0]
        for row in rows:
            sheet.append(list(row))
    workbook.save(path)
    return path


def read_book(path: Path, **mapping: str) -> list[Record | Reject]:
    with path.open("rb") as stream:
        return list(xlsx.read(stream, str(path), mapping))


class TestColumns:
    @pytest.mark.parametrize("header", ["", "No;Name;Text\n"])
    def test_by_number(self, tmp_path: Path, header: str) -> None:
        found = read(tmp_path / "a.csv", f"{header}1;Boats;{A}\n2;Clocks;{B}\n", abstract="3", title="2")
        assert told(found) == ["Boats", "Clocks"]
        assert [item.line for item in found] == ([2, 3] if header else [1, 2])

    def test_a_name_goes_before_a_number(self, tmp_path: Path) -> None:
        (found,) = read(tmp_path / "a.csv", f'3,2,abstract\n"{A}",Boats,no\n', abstract="3", title="2")
        assert isinstance(found, Record)
        assert (found.title, found.abstract) == ("Boats", A)

    @pytest.mark.parametrize("number", ["0", "4", "99999999"])
    def test_a_number_that_no_column_has(self, tmp_path: Path, number: str) -> None:
        with pytest.raises(DataError, match=f"--map title: there is no column '{number}'"):
            read(tmp_path / "a.csv", f"no;name;abstract\n1;Boats;{A}\n", title=number)

    def test_by_content_is_said(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        found = read(tmp_path / "a.txt", f"1\tPaper boats\t{A} {B}\n2\tOdd clocks\t{B} {C}\n")
        assert told(found) == ["Paper boats", "Odd clocks"]
        assert caplog.messages == [
            f"{tmp_path}/a.txt: no header; by their content the columns are taken as --map abstract=3, title=2"
        ]

    @pytest.mark.parametrize(
        "rows",
        [
            f"Boats\t{A} {B}\t{B} {C}\nClocks\t{B} {C}\t{C} {A}\n",  # two long columns
            f"Boats\t{A} {B}\nClocks\n",  # two widths
            f"Paper\tText\nBoats\t{A} {B}\n",  # names that we do not know
            "Boote\tWir falten kleine Boote aus Papier und messen, wie weit der Wind sie auf dem Teich treibt, bevor "
            "sie sinken, was nach einer Stunde geschieht, wenn es nicht regnet und niemand sie vorher findet.\n" * 2,
        ],
    )
    def test_content_that_does_not_tell(self, tmp_path: Path, rows: str) -> None:
        (tmp_path / "a.csv").write_text(rows)
        with pytest.raises(DataError, match=r"no abstract column .* --map abstract=NAME, or by its number"):
            list(open_dump(str(tmp_path / "a.csv"), format="table").items)

    def test_titles_that_are_not_clear_are_left_out(self, tmp_path: Path) -> None:
        rows = f"Paper boats\tAda Reed\t{A} {B}\nOdd clocks\tTim Moss\t{B} {C}\n"
        assert told(read(tmp_path / "a.csv", rows)) == [None, None]

    def test_no_abstracts(self, tmp_path: Path) -> None:
        header = "PMID,Title,Authors,Citation,First Author,Journal/Book,Publication Year,Create Date,PMCID,NIHMS ID,DOI"
        with pytest.raises(DataError, match=r"no abstract column among: PMID, .*; rename .* --map abstract=NAME"):
            read(tmp_path / "a.csv", f"{header}\n1,Boats,,,,,2021,,,,\n")

    def test_many_columns(self, tmp_path: Path) -> None:
        names = [f"abstract_inverted_index.word{number}" for number in range(20_000)]
        rows = [[*names, "title", "abstract"], [*[""] * len(names), "Boats", A], ["x"] * len(names)]
        stream = io.StringIO()
        csv.writer(stream).writerows(rows)
        assert told(read(tmp_path / "a.csv", stream.getvalue())[:1]) == ["Boats"]


class TestQuotes:
    def test_one_quote_costs_one_row(self, tmp_path: Path) -> None:
        rows = [f'{number},"T{number}","{A}"' for number in range(3000)]
        rows[1000] = f'1000,"T1000,"{A}"'
        rows[2000] = f'2000,T2000,"{A}'
        found = told(read(tmp_path / "a.csv", "\n".join(["id,title,abstract", *rows])))
        assert found == [f"T{number}" if number % 1000 or not number else "bad row" for number in range(3000)]

    @pytest.mark.parametrize("plain", [A.replace(",", ""), f'On ""{A.replace(",", "")}'])
    def test_among_rows_without_quotes(self, tmp_path: Path, plain: str) -> None:
        rows = [f"{number},T{number},{plain}" for number in range(5000)]
        rows[7] = f'7,"T7,{plain}'
        found = told(read(tmp_path / "a.csv", "\n".join(["id,title,abstract", *rows])))
        assert found == [f"T{number}" if number != 7 else "bad row" for number in range(5000)]

    def test_pieces_are_named(self, tmp_path: Path) -> None:
        text = f'title,abstract\nBoats,"They said "no" and\nwent on, as we know,\n\nto the pond"\nClocks,"{B}"\n'
        bad, good = read(tmp_path / "a.csv", text)
        assert isinstance(bad, Reject)
        assert bad.detail == "',' expected after '\"'; lines 2 to 5"
        assert (good.n, good.line) == (2, 6)

    @given(st.lists(st.text(alphabet='ab",\n ', max_size=30), max_size=30))
    def test_every_line_is_in_an_item(self, parts: list[str]) -> None:
        text = "title,abstract\n" + "\n".join(parts)
        found = list(module.read(io.BufferedReader(io.BytesIO(text.encode())), "f", {}))
        assert [item.n for item in found] == list(range(1, len(found) + 1))
        lines = [item.line or 0 for item in found]
        assert lines == sorted(lines)
        assert found or not any(part.strip(' ",\n') for part in parts) or text.count("#")

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "text",
        [
            '1,"T,A\n' * 100_000,
            '1,"T\n' + "1,T,A\n" * 100_000,
            '"","","\n' * 100_000,
            '"",a"\n' * 100_000,
            '"a","b\n""\n' * 100_000,
            '"' * 5_000_001,
            f"1,T,{'word ' * 10_000_000}\n",
            f'1,T,"{"word " * 10_000_000}"\n',
            "1,T," + "[" * 1_000_000 + "\n",
            "\0" * 5_000_000,
            "," * 5_000_000,
        ],
        ids=range(11),
    )
    def test_hostile_text_ends_soon(self, text: str) -> None:
        start = time.process_time()
        stream = cast("io.BufferedReader", io.BufferedReader(io.BytesIO(f"id,title,abstract\n{text}".encode())))
        assert [item.n for item in module.read(stream, "f", {})] or text.startswith(",")
        assert time.process_time() - start < 20

    def test_an_inverted_index_that_never_ends(self, tmp_path: Path) -> None:
        cells = ["'\\" * 300_000, '{"a": [' * 100_000, "{'a': [" + "1," * 500_000]
        stream = io.StringIO()
        csv.writer(stream).writerows([["title", "abstract_inverted_index"], *(["T", cell] for cell in cells)])
        assert set(told(read(tmp_path / "a.csv", stream.getvalue()))) == {"no abstract"}


class TestSniff:
    @pytest.mark.parametrize("text", ["\r\n" * 30_000, "-" * 60_000, " " * 60_000, "--\t" * 20_000, "- \n" * 20_000])
    def test_blank_and_ruled_text_ends_soon(self, text: str) -> None:
        start = time.process_time()
        assert module.sniff(f"Lamps\n{text}x", {}) == 0
        assert time.process_time() - start < 5

    def test_dumps_of_other_formats(self) -> None:
        for expected in _DUMPS.glob("*/*.expected.json"):
            path = Path(str(expected).removesuffix(".expected.json"))
            if path.is_file() and "table" not in json.loads(expected.read_text(encoding="utf-8"))["format"]:
                head = path.read_bytes()[:65536].decode(errors="ignore")
                assert module.sniff(head, {}) == 0, path

    @pytest.mark.parametrize(
        "text",
        [
            f"| Title | Abstract |\n| --- | --- |\n| Boats | {A} |\n",
            f"Title | Abstract\n--- | ---\nBoats | {A}\n",
            f"ICML 2025 Papers\n\nTitle, abstract\n\n{A}\n",
            json.dumps([["title", "abstract"], ["Boats", A]], indent=0),
            f"@misc{{a,\ntitle, abstract,\nabstract = {{{A}}}}}\n",
            f"Provider: Pond\n\nTY  - JOUR\nAB  - \nN2  - {A}\nER  - \n",
            f"<table>\ntitle,abstract\n{A}\n",
        ],
    )
    def test_other_texts(self, text: str) -> None:
        assert module.sniff(text, {}) == 0

    def test_rows_of_arrays_are_no_table(self) -> None:
        assert sniff('{"title": 1, "abstract": "x"}\n', "a.csv").NAME == "json"


class TestWorkbooks:
    def test_sheets_titles_above_and_kinds_of_cells(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        first: Cells = [
            ["Papers of the pond"],
            [],
            [None, "Title", "Abstract", "Year", "Id", "Sure"],
            [None, "Boats", A, 2021.0, 17, True],
            [],
            [None, 1984, B + " 5_x000D_\n_x005F_x0041_", datetime(2019, 2, 1), 2.5, False],
            [None, "Empty"],
            [None, "Title", "Abstract", "Year", "Id", "Sure"],
            *[[]] * 300,
            [None, "Clocks", C, date(2018, 1, 2), None, None, "beside the table"],
        ]
        path = book(tmp_path / "a.xlsx", first, [["who"], ["Ada"]], [], [["id", "abstract"], ["x", C]])
        found = read_book(path)
        assert told(found) == ["Boats", "1984", "no abstract", "Clocks", None]
        assert [(item.n, item.line) for item in found] == [(1, 4), (2, 6), (3, 7), (4, 309), (5, 2)]
        boats, clock = found[0], found[1]
        assert isinstance(boats, Record)
        assert isinstance(clock, Record)
        assert (boats.id, boats.year, boats.sure) == ("17", 2021, True)
        assert (clock.id, clock.year, clock.sure) == ("2.5", 2019, False)
        assert clock.abstract == B + " 5\r\n_x0041_"
        assert caplog.messages == [f"{path}: no column of abstracts, so left out: sheet Sheet1"]

    def test_formulas_and_merged_cells(self, tmp_path: Path) -> None:
        workbook = Workbook()
        sheet = workbook.worksheets[0]
        sheet.append(["Bibliography", None, "Text"])
        sheet.merge_cells("A1:B1")
        for row in (["id", "title", "abstract"], ["1", '=HYPERLINK("http://x.org","Boats")', A]):
            sheet.append(row)
        workbook.save(tmp_path / "a.xlsx")
        (found,) = read_book(tmp_path / "a.xlsx")
        assert isinstance(found, Record)
        assert (found.id, found.title, found.abstract) == ("1", None, A)  # nothing has computed the formula yet

    def test_mapping_and_columns_by_content(self, tmp_path: Path) -> None:
        rows = [["1", "Paper boats", f"{A} {B}"], ["2", "Odd clocks", f"{B} {C}"]]
        assert told(read_book(book(tmp_path / "a.xlsx", rows))) == ["Paper boats", "Odd clocks"]
        path = book(tmp_path / "b.xlsx", [["No", "Name", "Text"], *rows])
        assert told(read_book(path, abstract="text", title="Name")) == ["Paper boats", "Odd clocks"]
        with pytest.raises(DataError, match="no abstract column among: No, Name, Text"):
            read_book(path)
        with pytest.raises(DataError, match="--map abstract: there is no column 'Txt'"):
            read_book(path, abstract="Txt")

    def test_it_is_opened_as_any_dump(self, tmp_path: Path) -> None:
        dump = open_dump(str(book(tmp_path / "dump.csv", [["title", "abstract"], ["Boats", A]])))
        assert (dump.format, told(list(dump.items))) == ("xlsx", ["Boats"])

    @pytest.mark.parametrize(
        ("content", "error"),
        [
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "old kind, or one with a password; save it as .xlsx"),
            (b"PK\x03\x04" + bytes(26) + b"xl/workbook.xml", "damaged, or no workbook"),
        ],
    )
    def test_what_is_refused(self, tmp_path: Path, content: bytes, error: str) -> None:
        (tmp_path / "a.xls").write_bytes(content)
        with pytest.raises(DataError, match=error):
            list(open_dump(str(tmp_path / "a.xls")).items)

    def test_open_document(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "a.ods", "w") as archive:
            archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
            archive.writestr("content.xml", "<a/>")
        with pytest.raises(DataError, match=r"an OpenDocument spreadsheet; save it as \.xlsx or CSV"):
            list(open_dump(str(tmp_path / "a.ods")).items)

    def changed(self, path: Path, **members: str) -> Path:
        """Return a copy of a workbook with other members."""
        source = book(path.with_name("source.xlsx"), [["title", "abstract"], ["Boats", A]])
        with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, members.get(Path(name).stem, old.read(name)))
        return path

    def test_bombs(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="too big when it is unpacked; save it as CSV"):
            read_book(self.changed(tmp_path / "a.xlsx", theme1=" " * 70_000_000))
        lol = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
        with pytest.raises(DataError, match="damaged, or no workbook"):
            read_book(self.changed(tmp_path / "b.xlsx", sheet1=f"{lol}<worksheet><sheetData/>&b;</worksheet>"))

    def test_rows_that_are_nowhere(self, tmp_path: Path) -> None:
        sheet = (
            '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
            '<row r="1"><c r="A1" t="inlineStr"><is><t>abstract</t></is></c></row>'
            f'<row r="2"><c r="A2" t="inlineStr"><is><t>{A}</t></is></c></row>'
            '<row r="99999999999"><c r="A99999999999"><v>1</v></c></row></sheetData></worksheet>'
        )
        assert len(read_book(self.changed(tmp_path / "a.xlsx", sheet1=sheet))) == 1
        with pytest.raises(DataError, match="damaged, or no workbook"):
            read_book(self.changed(tmp_path / "b.xlsx", sheet1=sheet[:250]))
