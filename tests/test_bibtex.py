"""BibTeX in and out: every oddity, in sentences of our own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abstag.cleaning import clean
from abstag.ingest import cleaned, ingest
from abstag.readers import open_dump, sniff, text_formats
from abstag.records import Record, Reject
from abstag.syntax.bibtex import escaped, plain
from abstag.taxonomy import load_taxonomy
from abstag.writers import bibtex
from tests.bibliography import A, facts, is_flat, is_linear, read, written


def one(entry: str) -> Record:
    (item,) = read("bibtex", entry)
    assert isinstance(item, Record)
    return item


def value(expression: str, before: str = "") -> str | None:
    return one(f"{before}@misc{{k, title = {expression}, abstract = {{{A}}}}}").title


PMLR = f"""@proceedings{{lamps-2019,
  booktitle = {{Proceedings of the 3rd Lamp Meeting}},
  year = {{2019}},
  volume = {{7}},
}}

@InProceedings{{gard19a,
  title = {{{{\\'E}}tude of {{GAN}}s, $x_{{1}}$ and \\emph{{more}}}},
  author = {{G{{\\"a}}rtner, Ann and S{{\\o}}, Bob}},
  pages = {{1--2}},
  abstract = {{{A}

  {A}}}
}}

@InProceedings{{wick19b,
  title = {{Lamps}},
  abstract = {{{A}}},
  crossref = {{other}}
}}
"""
SCOPUS = f"""Scopus
EXPORT DATE: 01 January 2024

@ARTICLE{{Gard2020,
author={{Gardener, A.}},
title={{Gardens}},
journal={{Soil}},
year={{2020}},
doi={{10.1234/soil.1}},
abstract={{{A} © 2020 The Soil.}},
author_keywords={{petals; counting}},
keywords={{Gardens; Soil}},
source={{Scopus}},
}}

@ARTICLE{{Gard2020,
title={{Lamps}},
year={{2020}},
abstract={{{A}}},
}}
"""
ACL = """@inproceedings{wick-2020-lamps,
    title = "Lamps",
    author = "Wick, Cid",
    booktitle = "Proceedings of the Lamp Meeting",
    month = jul,
    year = "2020",
    url = "https://lamps.example/2020.1",
    pages = "1--9"
}
"""


class TestExports:
    def test_pmlr(self) -> None:
        assert facts(read("bibtex", PMLR)) == [
            (1, "lamps-2019", "no abstract: missing or null"),
            (
                7,
                "gard19a",
                "Étude of GANs, $x_{1}$ and \\emph{more}",
                f"{A} {A}",
                "Proceedings of the 3rd Lamp Meeting",
                2019,
                (),
            ),
            (16, "wick19b", "Lamps", A, None, None, ()),
        ]

    def test_scopus(self) -> None:
        text = SCOPUS.replace("\n", "\r\n")
        assert facts(read("bibtex", text)) == [
            (
                4,
                "10.1234/soil.1",
                "Gardens",
                f"{A} © 2020 The Soil.",
                "Soil",
                2020,
                ("petals", "counting", "Gardens", "Soil"),
            ),
            (16, "Gard2020", "Lamps", A, None, 2020, ()),
        ]

    def test_acl(self) -> None:
        (found,) = read("bibtex", ACL)
        assert isinstance(found, Reject)
        assert (found.reason, found.title, found.id, found.line) == ("no abstract", "Lamps", "wick-2020-lamps", 1)


class TestSyntax:
    @pytest.mark.parametrize(
        ("expression", "title"),
        [
            ("{a {b {c}} d}", "a b c d"),
            ('"a {"b, c"} d"', 'a "b, c" d'),
            ('"S{\\"o}ren"', "Sören"),
            ('"S\\"oren"', "Sören"),
            ('{a} # { b} # " c"', "a b c"),
            ("unknown", "unknown"),
            ("unknown # { b}", "unknown b"),
            ("2020", "2020"),
            ("{ends in \\}", "ends in \\"),
            ("{a \\} b}", "a } b"),
            ("{mail a@b.c, @d and } # {e}", "mail a@b.c, @d and e"),
            ("{two\n   lines}", "two lines"),
            ("{50\\% of R\\&D}", "50% of R&D"),
            (", year = 2020", None),
        ],
    )
    def test_values(self, expression: str, title: str | None) -> None:
        assert value(expression) == title

    def test_strings(self) -> None:
        before = '@string{soil = "Soil"}\n@STRING(both = soil # { \\& } # lamps)\n@preamble{"x" # {y}}\n'
        assert value("both", before) == "Soil & lamps"
        assert value("SOIL", before) == "Soil"
        assert value("soil", '@string{soil = "a"} @string{soil = soil # "b"}') == "ab"

    def test_strings_that_double(self) -> None:
        bomb = '@string{a = "0123456789"}\n' + "@string{a = a # a}\n" * 100
        assert len(value("a # a # a", bomb) or "") < 10_000

    @pytest.mark.parametrize(
        "hidden",
        [
            "@comment{@misc{x, abstract = {y}}}",
            "@comment{\n@misc{x, abstract = {y}}\n\n@misc{z, abstract = {y}}\n}",
            "@comment{jabref-meta: grouping:\n0 Static{x};}",
            "% @misc{x, abstract = {y}}",
            "mail a@example{x}",
        ],
    )
    def test_what_is_no_entry(self, hidden: str) -> None:
        entry = f"@misc{{k, abstract = {{{A}}}}}"
        for text in (f"{hidden}\n{entry}\n{hidden}\n{entry}\n{hidden}", f"{entry} {hidden}\n{entry}"):
            assert [item.id for item in read("bibtex", text)] == ["k", "k"]

    def test_a_comment_without_end_hides_nothing(self) -> None:
        text = "@comment{never closed\n" + f"@misc{{k, abstract = {{{A}}}}}\n" * 150
        assert len(read("bibtex", text)) == 150

    def test_small_slips_are_forgiven(self) -> None:
        text = f"@misc{{k title = {{T}} year = 2020,, % a note\n note = {{}}, ABSTRACT = {{{A}}},,}}"
        assert facts(read("bibtex", text)) == [(1, "k", "T", A, None, 2020, ())]
        assert [item.id for item in read("bibtex", f"@misc{{title = {{T}}, abstract = {{{A}}}}}")] == [None]
        assert [item.id for item in read("bibtex", f"@misc(k, abstract = {{{A} :)}}) @misc{{l, year = 1}}")] == [
            "k",
            "l",
        ]

    def test_the_first_of_repeated_fields_counts_and_all_keywords_do(self) -> None:
        text = f"@misc{{k, title={{}}, Title={{T}}, title={{U}}, abstract={{{A}}}, keywords={{a}}, keywords={{b; c}}}}"
        assert facts(read("bibtex", text)) == [(1, "k", "T", A, None, None, ("a", "b", "c"))]

    @pytest.mark.parametrize(
        ("broken", "detail"),
        [
            ("@misc{x, title = {never closed,\n year = 2020", "the value of title never closes"),
            ('@misc{x, title = "never closed,\n year = 2020}', "the value of title has a closing brace too many"),
            ("@misc{x, title = {a}, year = 2020", "the entry never closes"),
            ("@misc{x, title = {a}}, year = {2020}}", "a brace closes the entry before its last field"),
            ("@misc{x, title {a}}", "no field begins at 'title'"),
            ("@misc{x, journal = Soil and Lamps}", "no field begins at 'and'"),
            ("@misc{x, = {a}}", "no field begins at '='"),
            ("@misc{x, title = {\n@misc{y, title = {b}}", "the value of title never closes"),
        ],
    )
    @pytest.mark.parametrize("gap", ["\n", "\r\n", "\r"])
    def test_a_broken_entry_is_a_reject_and_reading_goes_on(self, broken: str, detail: str, gap: str) -> None:
        good = f"@misc{{k, abstract = {{{A}}}}}"
        first, second, *_, last = read("bibtex", f"{good}{gap}{broken}{gap}{good}")
        assert (first.id, last.id) == ("k", "k")
        assert facts([second]) == [(2, "x", f"bad BibTeX: {detail}")]

    def test_no_key(self) -> None:
        assert facts(read("bibtex", "@misc{{x}, title = {a}}")) == [(1, None, "bad BibTeX: no key")]


class TestFields:
    @pytest.mark.parametrize(
        ("fields", "name"),
        [
            ("doi = {https://doi.org/10.1234/a\\_b}, eprint = {2001.00001}", "10.1234/a_b"),
            ("eprint = {arXiv:2001.00001v2}, archiveprefix = {arXiv}", "2001.00001"),
            ("eprint = {cs/0102003}, url = {https://openreview.net/forum?id=r0Lamp}", "cs/0102003"),
            ("url = {https://openreview.net/forum?id=r0Lamp}", "r0Lamp"),
            ("url = {https://lamps.example/1}, eprint = {12}", "k"),
        ],
    )
    def test_id(self, fields: str, name: str) -> None:
        assert one(f"@misc{{k, {fields}, abstract = {{{A}}}}}").id == name

    @pytest.mark.parametrize(
        ("fields", "venue", "year"),
        [
            ("journal = {Soil}, date = {2020-02-03}", "Soil", 2020),
            ("booktitle = {Soil 2021}", "Soil 2021", 2021),
            ("journaltitle = {Soil}, year = {to appear}, date = {2022}", "Soil", 2022),
            ("eprint = {2001.00001}, archiveprefix = {arXiv}, year = {2020}", "arXiv", 2020),
            ("year = {12}", None, None),
        ],
    )
    def test_venue_and_year(self, fields: str, venue: str | None, year: int | None) -> None:
        found = one(f"@inproceedings{{k, {fields}, abstract = {{{A}}}}}")
        assert (found.venue, found.year) == (venue, year)

    def test_annote_is_no_abstract(self) -> None:
        assert [type(item) for item in read("bibtex", f"@misc{{k, annote = {{{A}}}}}")] == [Reject]
        assert one(f"@misc{{k, abstractNote = {{{A}}}}}").abstract == A

    def test_parsers_agree(self) -> None:
        parser = pytest.importorskip("bibtexparser")
        (theirs,) = parser.parse_string(SCOPUS.split("@ARTICLE")[1].join(["@ARTICLE", ""])).entries
        ours = read("bibtex", SCOPUS)[0]
        assert isinstance(ours, Record)
        assert (ours.title, ours.abstract, ours.venue) == tuple(
            theirs[name] for name in ("title", "abstract", "journal")
        )


class TestSniff:
    @pytest.mark.parametrize("name", ["a.bib", "a.txt", "a.ris", "-"])
    @pytest.mark.parametrize(
        "text", [PMLR, SCOPUS, ACL, f"% a list\n% of ours\n{ACL}", f"@misc{{Wick 2020, abstract = {{{A}}}}}"]
    )
    def test_bibtex(self, text: str, name: str) -> None:
        assert sniff(text, name).NAME == "bibtex"

    def test_other_formats_that_hold_an_entry(self) -> None:
        cite = "\n```\n@misc{k,\n title = {Lamps},\n}\n```\n"
        assert sniff(f"## Gardens\n\n{A}\n\n## Lamps\n\n{A}\n\n## Cite\n{cite}", "a.md").NAME == "markdown"
        assert sniff(f"{A}\n\n{A}\n{cite}", "a.txt").NAME == "plain"

    def test_mapping(self) -> None:
        assert text_formats()["bibtex"].sniff(PMLR, {"title": "x"}) == 0


def test_ingest_takes_a_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.bib"
    path.write_bytes(b"\xef\xbb\xbf" + SCOPUS.encode())
    assert open_dump(str(path)).format == "bibtex"
    manifest = ingest([str(path)], tmp_path / "out", taxonomy=load_taxonomy())
    assert (manifest["records"], manifest["rejects"]) == (2, 0)


def test_a_record_too_short_keeps_its_raw() -> None:
    item = one("@misc{k, abstract = {Three words only.}}")
    assert isinstance(item, Record)
    found = cleaned(item)
    assert isinstance(found, Reject)
    assert found.raw == item.raw


def test_memory_stays_flat(tmp_path: Path) -> None:
    assert is_flat(tmp_path / "a.bib", f"@misc{{k,\n  title = {{T}},\n  abstract = {{{A * 10}}}\n}}\n\n")


class TestWriter:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("@misc{k,\n  year = 2020,\n  §\n}", "@misc{k,\n  year = 2020,\n  §,\n  keywords = {+}\n}"),
            ("@misc{k,\r\n\tyear={2020},\r\n\t§,\r\n}", "@misc{k,\r\n\tyear={2020},\r\n\t§,\r\n\tkeywords = {+},\r\n}"),
            ("@misc{k, §}", "@misc{k, §, keywords = {+}}"),
            ("@misc(k, § % end\n)", "@misc(k, §, keywords = {+} % end\n)"),
            ("@misc{k,§,year={1},}", "@misc{k,§,year={1},keywords={+},}"),
            (
                "@misc{k,\n  §,\n  year         = 2020\n}",
                "@misc{k,\n  §,\n  year         = 2020,\n  keywords     = {+}\n}",
            ),
            ("@misc{k, §, keywords = {}}", "@misc{k, §, keywords = {+}}"),
            ("@misc{k, §, keywords = ,}", "@misc{k, §, keywords = {+},}"),
            ("@misc{k, §, Keywords = {a, b}}", "@misc{k, §, Keywords = {a, b, +}}"),
            ("@misc{k, §, keywords = {a;b}}", "@misc{k, §, keywords = {a;b;+}}"),
            ("@misc{k, §, keywords = {a; b; }}", "@misc{k, §, keywords = {a; b; + }}"),
            ("@misc{k, §, keywords = {a,\n  b\n  }}", "@misc{k, §, keywords = {a,\n  b, +\n  }}"),
            ('@misc{k, §, keywords = "a, b"}', '@misc{k, §, keywords = "a, b, +"}'),
            ("@misc{k, §, keyword = soil # {, a}}", "@misc{k, §, keyword = soil # {, a, +}}"),
            ("@misc{k, §, keywords = soil}", "@misc{k, §, keywords = soil # {, +}}"),
            ("@misc{k, §, keywords = {learning on {G}raphs}}", "@misc{k, §, keywords = {learning on {G}raphs}}"),
            (
                "@misc{k, §, author_keywords = {Learning on graphs}}",
                "@misc{k, §, author_keywords = {Learning on graphs}}",
            ),
        ],
    )
    def test_an_area_is_added_once(self, before: str, after: str) -> None:
        before, after = (text.replace("§", f"abstract = {{{A}}}") for text in (f"x\n{before}\ny", f"x\n{after}\ny"))
        after = after.replace("+", "Learning on graphs")
        assert written(bibtex, read("bibtex", before), "graphs") == after
        assert written(bibtex, read("bibtex", after), "graphs") == after

    @pytest.mark.parametrize("text", [PMLR, SCOPUS, ACL, SCOPUS.replace("\n", "\r\n"), SCOPUS[:-3], f"{PMLR} @misc{{x"])
    def test_what_gets_no_area_stays(self, text: str) -> None:
        assert written(bibtex, read("bibtex", text)) == text

    def test_only_keywords_are_new(self) -> None:
        once = written(bibtex, read("bibtex", SCOPUS), "llm", "lamps")
        assert once == SCOPUS.replace("{Gardens; Soil}", "{Gardens; Soil; +}").replace(
            f"{A}}},\n}}", f"{A}}},\nkeywords={{*}},\n}}"
        ).replace("+", "Large language models; Lamps \\& 50\\% light").replace(
            "*", "Large language models, Lamps \\& 50\\% light"
        )
        assert written(bibtex, read("bibtex", once), "lamps", "llm") == once

    def test_files_one_after_the_other(self) -> None:
        first, second = (read("bibtex", f"@misc{{k, abstract = {{{A}}}}}")[0] for _ in range(2))
        assert isinstance(second, Record)
        foreign = Record("b", 1, None, abstract=A, raw=None)
        assert written(bibtex, [first, second]).count("\n") == 0
        assert (
            written(bibtex, [first, Record("b", 1, None, abstract=A, raw=second.raw)]) == f"{first.raw}\n{second.raw}"
        )
        assert written(bibtex, [first, foreign]) == f"{first.raw}\n\n@misc{{n1,\n  abstract = {{{A}}}\n}}\n"

    def test_a_paper_from_another_format(self) -> None:
        record = Record(
            "a.json",
            1,
            1,
            abstract=f"{A}\n50% of $x_1$ {{is}} \\emph{{soil}} & ~ ^ a_b.",
            title="R&D, C# and é",
            id="10.1234/a_b",
            venue="Soil & Lamps",
            year=2020,
            declared=("soil", "learning on Graphs", "a; b"),
        )
        reject = Reject("a.json", 2, 2, "no abstract", raw=None)
        text = written(bibtex, [record, reject, record], "graphs", "lamps")
        assert text.startswith(
            "@inproceedings{10.1234/a_b,\n"
            "  title = {R\\&D, C\\# and é},\n"
            f"  abstract = {{{A} 50\\% of $x_1$ \\{{is\\}} \\emph{{soil}} \\& "
            "\\textasciitilde{} \\textasciicircum{} a\\_b.},\n"
            "  booktitle = {Soil \\& Lamps},\n"
            "  year = {2020},\n"
            "  doi = {10.1234/a\\_b},\n"
            "  keywords = {soil, Learning on graphs, a b, Lamps \\& 50\\% light}\n"
            "}\n\n@inproceedings{"
        )
        (again, _) = read("bibtex", text)
        assert isinstance(again, Record)
        assert (again.title, again.id, again.venue, again.year) == (record.title, record.id, record.venue, 2020)
        assert clean(again.abstract) == clean(record.abstract)

    def test_arxiv_and_odd_ids(self) -> None:
        for name, head in (
            ("2001.00001", "@misc{2001.00001,"),
            ("a b{c}", "@misc{a_b_c_,"),
            ("cs/0102003", "@misc{cs/"),
        ):
            record = Record("a", 1, None, abstract=A, id=name, venue="arXiv" if name[:1] in "2c" else None)
            text = written(bibtex, [record])
            assert text.startswith(head)
            if record.venue:
                assert facts(read("bibtex", text)) == [(1, name, None, A, "arXiv", None, ())]

    def test_another_parser_reads_it(self) -> None:
        parser = pytest.importorskip("bibtexparser")
        record = Record("a", 1, None, abstract=f"{A} {{50% }} }} \\", title="R&D", id="k", year=2020)
        (entry,) = parser.parse_string(written(bibtex, [record], "lamps")).entries
        assert (entry.key, entry["title"], entry["keywords"]) == ("k", "R\\&D", "Lamps \\& 50\\% light")
        assert plain(entry["abstract"]) == record.abstract


@given(st.text(st.sampled_from("aé {}\\$&%#_^~\"'@,;=\n1")))
def test_escaped_text_is_balanced_and_read_back(text: str) -> None:
    value = escaped(text)
    found = one(f"@misc{{k, title = {{{value}}}, abstract = {{{A}}}}}")
    assert found.title == (plain(value) or None)
    if not set(text) & set("\\${}'"):
        assert plain(value) == " ".join(text.split())


PIECES = st.sampled_from(
    [
        *(
            "@misc{k,",
            "@a{k\n",
            "@comment{",
            "@string{a = ",
            "@preamble{",
            "title = ",
            "keywords = {a, b}",
            "abstract = {",
        ),
        *(
            "}",
            "{",
            '"',
            "#",
            ",",
            "=",
            "\n",
            "\r\n",
            "\r",
            "%",
            "\\",
            "(",
            ")",
            "@",
            " ",
            "a",
            ";",
            "\ufeff",
            A,
            "}\n\n",
        ),
        f"@misc{{k,\n  title = {{T}},\n  abstract = {{{A}}},\n}}\n",
    ]
)


@given(st.lists(st.one_of(PIECES, PIECES, st.text(max_size=3)), max_size=25).map("".join))
def test_anything_is_read_and_written(text: str) -> None:
    text = text.encode(errors="replace").decode()
    items = read("bibtex", text)
    assert [item.n for item in items] == list(range(1, len(items) + 1))
    assert written(bibtex, items) == "".join(item.raw or "" for item in items)
    once = written(bibtex, items, "graphs", "lamps")
    again = read("bibtex", once)
    assert [(type(item), item.id, item.title) for item in again] == [
        (type(item), item.id, item.title) for item in items
    ]
    assert written(bibtex, again, "lamps", "graphs") == once


HOSTILE: dict[str, Callable[[int], str]] = {
    "open braces": lambda n: "@misc{a, title = " + "{" * 100 * n,
    "open braces on lines": lambda n: "@misc{a, title = " + "{\n" * 20 * n,
    "one line": lambda n: "@misc{a, abstract = {" + "ab " * 200 * n + "}}",
    "entries without end": lambda n: "@misc{a,\n" * n,
    "entries without end on a line": lambda n: "@misc{a," * 10 * n,
    "short entries on a line": lambda n: "@misc{a,}" * n,
    "entries after braces": lambda n: "}@misc{a," * n,
    "comments without end": lambda n: "@comment{\n" * 5 * n,
    "signs": lambda n: "@" * 100 * n + "@a{" + " " * 100 * n,
    "quotes": lambda n: '@misc{a, title = "' + '"' * 100 * n,
    "joined": lambda n: "@misc{a, title = a" + " # a" * 5 * n + "}",
    "macros": lambda n: '@string{a = "b"}' + "@string{a = a # a}" * n + "@misc{k, title = a}",
    "formulas": lambda n: "@misc{a, title = {{\\x}" + "$a " * 10 * n + "}}",
    "nested": lambda n: f"@misc{{a, title = {'{' * 10 * n}{'}' * 10 * n}, abstract = {{{A}}}}}",
    "accents": lambda n: "@misc{a, title = {" + "\\'{ " * 5 * n + "}" * 5 * n + "}}",
    "fields": lambda n: "@misc{a" + ", title = {b}" * n + f", abstract = {{{A}}}}}",
    "blank lines": lambda n: "\n" * 20 * n + "@misc{a,}",
    "percent signs": lambda n: "%@a{" * 20 * n + "\n" + "%\n" * 10 * n + "@misc{a,}",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_time_is_linear(text: Callable[[int], str]) -> None:
    def work(content: str) -> Any:
        text_formats()["bibtex"].sniff(content[: 1 << 16], {})
        return written(bibtex, read("bibtex", content), "graphs")

    assert is_linear(work, text, 1000)
