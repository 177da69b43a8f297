"""RIS in and out: every dialect, in sentences of our own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abstag.readers import open_dump, sniff, text_formats
from abstag.records import Record, Reject
from abstag.writers import bibtex, ris
from tests.bibliography import A, facts, is_flat, is_linear, read, written

B = "A lighthouse sends one bit an hour, and we ask how many ships can be named with so little light."
USUAL = f"""Provider: Lamps and Sons
Content: text/plain

TY  - CONF
AU  - Gardener, Ann
TI  - Gardens
T2  - Soil Meeting 2020
N2  - {A}
KW  - petals
KW  - counting; soil
PY  - 2020/05//
DO  - https://doi.org/10.1234/soil.1
ER  -

TY  - JOUR
T1  - Lamps
JF  - Light
AB  - {B}
N2  - {A}
ID  - 77
UR  - https://arxiv.org/abs/2001.00001v2
ER  -
"""
ONE_SPACE = USUAL.replace("  - ", " - ").replace("named with", "named\nAI - based light, with")
NO_END = f"""1.
TY  - JOUR
TI  - Gardens
AB  - {A}
Y1  - 2019.

2.
TY  - JOUR
TI  - Lamps
AB  - {B[:40]}
{B[40:60]}
2019.

{B[60:]}
KW  - light
bits
PY  - 2021

3.
TY  - JOUR
TI  - Nothing"""
CITAVI = "\ufeff" + f"TY  - JOUR\nAB  - {A}\nTI  - Gardens\nPY  - 2018\nVL  - 3\nER  -\n\n".replace("\n", "\r\n") * 2
PUBMED = f"""PMID- 1234567
OWN - NLM
TI  - Gardens of
      gradients
LID - 10.1234/soil.1 [doi]
AB  - {A[:53].strip()}
      {A[53:].strip()}
DP  - 2020 Mar
JT  - Journal of soil
OT  - petals
OT  - counting

PMID- 1234568
TI  - Lamps
DP  - 2021
"""
DUMPS = {"usual": USUAL, "one space": ONE_SPACE, "no end": NO_END, "citavi": CITAVI, "pubmed": PUBMED}


class TestDialects:
    def test_usual(self) -> None:
        assert facts(read("ris", USUAL)) == [
            (4, "10.1234/soil.1", "Gardens", A, "Soil Meeting 2020", 2020, ("petals", "counting", "soil")),
            (15, "2001.00001", "Lamps", B, "Light", None, ()),
        ]

    def test_one_space_before_the_dash(self) -> None:
        first, second = facts(read("ris", ONE_SPACE))
        assert first == facts(read("ris", USUAL))[0]
        assert second[3] == B.replace("named with", "named AI - based light, with")

    def test_numbers_no_end_and_continuation(self) -> None:
        text = f"{B[:40].strip()} {B[40:60].strip()} 2019. {B[60:].strip()}"
        assert facts(read("ris", NO_END)) == [
            (2, None, "Gardens", A, None, 2019, ()),
            (8, None, "Lamps", text, None, 2021, ("light", "bits")),
            (20, None, "no abstract: missing or null"),
        ]
        assert [(item.raw or "")[:2] for item in read("ris", NO_END)] == ["1.", "\n2", "\n3"]

    def test_citavi(self, tmp_path: Path) -> None:
        path = tmp_path / "a.ris"
        path.write_bytes(CITAVI.encode())
        found = list(open_dump(str(path)).items)
        assert facts(found) == [(line, None, "Gardens", A, None, 2018, ()) for line in (1, 8)]
        assert "".join(item.raw or "" for item in found) == CITAVI[1:]

    def test_pubmed_tags(self) -> None:
        assert facts(read("ris", PUBMED)) == [
            (1, "10.1234/soil.1", "Gardens of gradients", A, "Journal of soil", 2020, ("petals", "counting")),
            (13, "1234568", "no abstract: missing or null"),
        ]
        mixed = f"TY  - JOUR\nPMID- 12\nLID - 10.1234/a [doi]\nOT  - soil\nAB  - {A}\nGAN - a lamp\nER  - \n"
        assert facts(read("ris", mixed)) == [(1, "10.1234/a", None, A, None, None, ("soil",))]
        assert facts(read("ris", f"TY  - JOUR\nAB  - {A}\nGAN - a lamp\n"))[0][3] == f"{A} GAN - a lamp"

    def test_abstract(self) -> None:
        assert facts(read("ris", f"TY  - GEN\nAB  - \nN2  - {A}\nN2  - {B}\n"))[0][3] == f"{A} {B}"
        (found,) = read("ris", "TY  - GEN\nAB  - N/A\nTI  - T\nER  - \n")
        assert isinstance(found, Reject)
        assert (found.reason, found.title) == ("placeholder abstract", "T")

    def test_tags_after_an_end_are_an_entry(self) -> None:
        text = f"TY  - GEN\nAB  - {A}\nER  - \nER  - \nTI  - Lost\nAB  - {B}\nER  - \n"
        assert [row[3] for row in facts(read("ris", text))] == [A, B]

    def test_parsers_agree(self) -> None:
        rispy = pytest.importorskip("rispy")
        theirs, ours = rispy.loads(USUAL), [item for item in read("ris", USUAL) if isinstance(item, Record)]
        assert [item.abstract for item in ours] == [theirs[0]["notes_abstract"], theirs[1]["abstract"]]
        assert [item.title for item in ours] == [theirs[0]["title"], theirs[1]["primary_title"]]


class TestSniff:
    @pytest.mark.parametrize("dump", DUMPS)
    @pytest.mark.parametrize("name", ["a.ris", "a.nbib", "-"])
    def test_ris(self, dump: str, name: str) -> None:
        assert sniff(DUMPS[dump], name).NAME == "ris"

    def test_suffix_is_a_hint_only(self) -> None:
        assert sniff(USUAL, "a.txt").NAME == "ris"
        assert sniff(f"{A}\n\nTY - no tag, says {B}\n", "a.txt").NAME == "plain"

    def test_mapping(self) -> None:
        assert text_formats()["ris"].sniff(USUAL, {"title": "x"}) == 0


def test_memory_stays_flat(tmp_path: Path) -> None:
    assert is_flat(tmp_path / "a.ris", f"TY  - JOUR\nAB  - {A * 10}\nER  - \n\n")


class TestWriter:
    @pytest.mark.parametrize("dump", DUMPS)
    def test_what_gets_no_area_stays(self, dump: str) -> None:
        assert written(ris, read("ris", DUMPS[dump])) == DUMPS[dump]

    @pytest.mark.parametrize("dump", DUMPS)
    def test_only_keywords_are_new_and_once(self, dump: str) -> None:
        text = DUMPS[dump]
        once = written(ris, read("ris", text), "graphs", "lamps", "graphs")
        tags = ("KW - ", "KW  - ", "OT  - ")
        new = [line for line in once.splitlines() if line.startswith(tags) and line[5:].strip() == "Lamps & 50% light"]
        assert len(new) == sum(isinstance(item, Record) for item in read("ris", text))
        assert [line for line in once.splitlines() if line not in new and "Learning" not in line] == text.splitlines()
        assert written(ris, read("ris", once), "lamps", "graphs") == once

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("TY  - GEN\n§\nER  - \n", "TY  - GEN\n§\nKW  - +\nER  - \n"),
            ("TY - GEN\r\n§\r\n\r\nER -\r\n", "TY - GEN\r\n§\r\n\r\nKW - +\r\nER -\r\n"),
            ("TY  - GEN\n§", "TY  - GEN\n§\nKW  - +"),
            ("TY  - GEN\n§\n\n2.\n", "TY  - GEN\n§\nKW  - +\n\n2.\n"),
            ("PMID- 12\n§\n      and more\n\n", "PMID- 12\n§\n      and more\nOT  - +\n\n"),
            ("TY  - GEN\n§\nKW  - learning on Graphs\nER  - \n", "TY  - GEN\n§\nKW  - learning on Graphs\nER  - \n"),
            ("TY  - GEN\n§\nKW  - a; +\nER  - \n", "TY  - GEN\n§\nKW  - a; +\nER  - \n"),
        ],
    )
    def test_where_keywords_stand(self, before: str, after: str) -> None:
        gap = " - " if "TY - " in before else "  - "
        before, after = (
            text.replace("§", f"AB{gap}{A}").replace("+", "Learning on graphs") for text in (before, after)
        )
        assert written(ris, read("ris", before), "graphs") == after

    def test_a_paper_from_another_format(self) -> None:
        record = Record(
            *("a.json", 1, 1),
            abstract=f"{A}\nTY - {B}",
            title="Gardens \n& soil",
            id="10.1234/a",
            venue="Soil",
            year=2020,
            declared=("soil", "Lamps & 50% Light", "a;b"),
        )
        text = written(ris, [record, Reject("a.json", 2, 2, "no abstract"), record], "lamps", "llm")
        entry = (
            f"TY  - CONF\nTI  - Gardens & soil\nAB  - {A} TY - {B}\nT2  - Soil\nPY  - 2020\nDO  - 10.1234/a\n"
            "ID  - 10.1234/a\nKW  - soil\nKW  - Lamps & 50% Light\nKW  - a,b\nKW  - Large language models\nER  - \n"
        )
        assert text == f"{entry}\n{entry}"
        keywords = ("soil", "Lamps & 50% Light", "a,b", "Large language models")
        fact = ("10.1234/a", "Gardens & soil", f"{A} TY - {B}", "Soil", 2020, keywords)
        assert facts(read("ris", text)) == [(1, *fact), (14, *fact)]

    def test_from_bibtex_and_back(self) -> None:
        entry = f"@misc{{k,\n  title = {{{{G}}ardens \\& so}},\n  abstract = {{{A}}},\n  year = {{2020}}\n}}\n"
        there = written(ris, read("bibtex", entry), "graphs")
        assert there.startswith("TY  - GEN\nTI  - Gardens & so\n")
        back = written(bibtex, read("ris", there), "graphs")
        assert facts(read("bibtex", back)) == [(1, "k", "Gardens & so", A, None, 2020, ("Learning on graphs",))]

    def test_another_parser_reads_it(self) -> None:
        rispy = pytest.importorskip("rispy")
        record = Record("a", 1, None, abstract=A, title="T", id="k", venue="Soil", year=2020, declared=("soil",))
        (entry,) = rispy.loads(written(ris, [record], "graphs"))
        assert (entry["title"], entry["abstract"], entry["year"]) == ("T", A, "2020")
        assert entry["keywords"] == ["soil", "Learning on graphs"]


PIECES = st.sampled_from(
    [
        *(
            "TY  - JOUR\n",
            "TY - GEN\r\n",
            "ER  - \n",
            "ER -",
            "AB  - ",
            "AB - ",
            f"AB  - {A}\n",
            "KW  - a; b\n",
            "TI  - T",
        ),
        *(
            "PMID- 12\n",
            "OT  - a\n",
            "LID - 10.1234/a [doi]\n",
            "\n",
            "\r\n",
            "\r",
            "1.\n",
            " ",
            "      a",
            "\ufeff",
            A,
        ),
    ]
)


@given(st.lists(st.one_of(PIECES, PIECES, st.text(max_size=3)), max_size=25).map("".join))
def test_anything_is_read_and_written(text: str) -> None:
    text = text.encode(errors="replace").decode()
    items = read("ris", text)
    assert [item.n for item in items] == list(range(1, len(items) + 1))
    assert written(ris, items) == "".join(item.raw or "" for item in items)
    once = written(ris, items, "graphs", "lamps")
    again = read("ris", once)
    assert [(type(item), item.id, item.title) for item in again] == [
        (type(item), item.id, item.title) for item in items
    ]
    assert written(ris, again, "lamps", "graphs") == once


HOSTILE: dict[str, Callable[[int], str]] = {
    "one line": lambda n: "TY  - JOUR\nAB  - " + "ab " * 200 * n,
    "continuation": lambda n: "TY  - JOUR\nAB  - a\n" + "bb cc\n" * 10 * n,
    "numbers": lambda n: "TY  - JOUR\nAB  - a\n" + "1.\n" * 20 * n,
    "entries": lambda n: "TY  - JOUR\n" * n,
    "ends": lambda n: "ER  - \n" * 10 * n + "TY  - JOUR\n",
    "spaces": lambda n: "TY  - JOUR\nER" + " " * 1000 * n + "x\n" + " " * 1000 * n + "1" * 1000 * n,
    "keywords": lambda n: f"TY  - JOUR\nAB  - {A}\n" + "KW  - ab\n" * 2 * n,
    "blank lines": lambda n: "TY  - JOUR\nAB  - a\n" + "\n" * 10 * n + "x\n" * 10 * n,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_time_is_linear(text: Callable[[int], str]) -> None:
    def work(content: str) -> Any:
        text_formats()["ris"].sniff(content[: 1 << 16], {})
        return written(ris, read("ris", content), "graphs")

    assert is_linear(work, text, 1000)
