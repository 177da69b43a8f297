"""XML: what the dumps below `tests/dumps/xml` do not show; hostile and damaged files, and which files are ours."""

import io
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abstag.errors import DataError
from abstag.readers import open_dump, sniff, text_formats
from abstag.records import Record
from tests.bibliography import A, facts, is_flat, is_linear

B = "A lighthouse sends one bit an hour, and we ask how many ships can be named with so little light."
Facts = list[tuple[Any, ...]]
Read = Callable[[str], Facts]
DECLARED = '<?xml version="1.0" encoding="UTF-8"?>\n'


def paper(number: int = 17, abstract: str = A) -> str:
    metadata = f"<arXiv><id>2304.000{number}</id><title>Lamps</title><abstract>{abstract}</abstract></arXiv>"
    return f"<record><header/><metadata>{metadata}</metadata></record>\n"


def endnote(fields: str) -> str:
    return f"<xml><records><record><titles><title>Lamps</title></titles>{fields}</record></records></xml>"


def pubmed(article: str) -> str:
    return f"<PubmedArticle><MedlineCitation>{article}</MedlineCitation></PubmedArticle>"


def jats(meta: str) -> str:
    return f"<article><front><article-meta>{meta}</article-meta></front></article>"


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read_text(text: str) -> Facts:
        path = tmp_path / "a.xml"
        path.write_bytes(text.encode())
        return facts(open_dump(str(path), format="xml").items)

    return read_text


def abstracts(found: Facts) -> list[Any]:
    return [fact[3] if len(fact) > 3 else fact[2] for fact in found]


class TestText:
    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            ("a&nbsp;&eacute;&amp;eacute;&#233;&#xE9;", "a\xa0é&eacute;éé"),
            ("AT&T & co, a&b; &", "AT&T & co, a&b; &"),
            ("5 < 6 <= 7, 8 <9, << &lt; &#60;", "5 < 6 <= 7, 8 <9, << < <"),
            ("a\x00b\x0bc&#0;&#11;&#x1F;d", "abc\ufffdd"),
            ("one&#xD;&#10;two", "one\r\ntwo"),
            ("<![CDATA[a <b> & c]]> d", "a <b> &amp; c d"),
            ("<!-- not this -->a<?nor this?>b", "ab"),
            ("<un:known>a</un:known> <i>b</i><sub>2</sub>", "a b2"),
            ("first<p>second</p><p>third</p>", "first second  third"),
            ("&lol; &#xD800; &notanentityatall;", "&lol; \ufffd ¬anentityatall;"),
        ],
    )
    def test_signs(self, read: Read, written: str, meant: str) -> None:
        assert abstracts(read(paper(abstract=written))) == [meant]

    def test_signs_across_the_pieces_in_which_a_file_is_read(self, read: Read) -> None:
        for shift in range(40):
            text = "x" * (65536 - shift - paper(abstract="").index("</abstract>"))
            (found,) = read(paper(abstract=f"{text}&eacute;<![CDATA[<i>]]><b>&#233;</b>") + f"{DECLARED}<records/>")
            assert found[3] == f"{text}é<i>é"

    def test_a_declaration_is_not_believed(self, read: Read) -> None:
        assert abstracts(read('<?xml version="1.0" encoding="latin-1"?>' + paper(abstract=f"é {A}"))) == [f"é {A}"]

    def test_lines(self, read: Read) -> None:
        first = f"{DECLARED}<!DOCTYPE records\nPUBLIC 'x'\n'y'>\n<records>{paper(17)}{paper(18)}</records>\n"
        text = f"{first}{DECLARED}\n{paper(19)}"
        assert [fact[0] for fact in read(text)] == [5, 6, 10]


class TestVocabularies:
    def test_labels_and_blanks_of_pubmed(self, read: Read) -> None:
        parts = '<AbstractText Label="AIM"> </AbstractText><AbstractText Label="END">We end.</AbstractText>'
        article = f"<PMID>7</PMID><Article><Abstract>{parts}</Abstract></Article>"
        assert read(pubmed(article)) == [(1, "7", None, "END: We end.", None, None, ())]

    def test_pubmed_without_an_english_abstract(self, read: Read) -> None:
        other = f'<OtherAbstract Language="ger"><AbstractText>{A}</AbstractText></OtherAbstract>'
        assert abstracts(read(pubmed(f"<Article/>{other}"))) == ["no abstract: missing or null"]
        assert abstracts(read(pubmed(f"<Article/>{other.replace('ger', 'eng')}"))) == [A]

    def test_citations_without_articles_around_them(self, read: Read) -> None:
        citation = (
            f"<MedlineCitation><PMID>7</PMID><Article><Abstract><AbstractText>{A}</AbstractText></Abstract></Article>"
        )
        assert read(f"<MedlineCitationSet>{citation}</MedlineCitation></MedlineCitationSet>")[0][1] == "7"
        empty = "<PubmedArticle/><PubmedBookArticle/><article/><mods/><dc/><entry/><record/>"
        assert abstracts(read(empty)) == ["no abstract: missing or null"] * 7

    def test_ids(self, read: Read) -> None:
        link = "<urls><related-urls><url>https://arxiv.org/abs/2304.00017v2</url></related-urls></urls>"
        assert read(endnote(f"<abstract>{A}</abstract>{link}<accession-num>L7</accession-num>"))[0][1] == "2304.00017"
        ids = '<article-id pub-id-type="pmid">7</article-id>'
        assert read(jats(f"{ids}<abstract>{A}</abstract>"))[0][1] == "7"
        plain = (
            f"<dc><dc:identifier>https://doi.org/10.1234/a.b</dc:identifier><dc:description>{A}</dc:description></dc>"
        )
        assert read(plain)[0][1] == "10.1234/a.b"
        assert read(plain.replace("dc>", "record>"))[0][1] == "10.1234/a.b"
        review = "<dc:identifier>https://openreview.net/forum?id=abcdefgh</dc:identifier><dc:identifier>"
        assert read(plain.replace("<dc:identifier>", review, 1))[0][1:5:3] == ("10.1234/a.b", None)

    def test_a_feed_that_is_not_of_arxiv(self, read: Read) -> None:
        entry = (
            f"<id>tag:lamps</id><summary>{A}</summary><category term='fog' label='Fog'/><updated>2020-01-01</updated>"
        )
        assert read(f"<feed><entry>{entry}</entry></feed>") == [(1, "tag:lamps", None, A, None, 2020, ("Fog",))]

    def test_a_list_that_goes_on_is_told(self, read: Read, caplog: pytest.LogCaptureFixture) -> None:
        token = "<resumptionToken>7|8</resumptionToken>"
        with caplog.at_level(logging.INFO):
            read(
                f"<ListRecords>{paper()}{token}</ListRecords>{DECLARED}<ListRecords>{paper()}<resumptionToken/></ListRecords>"
            )
            assert not caplog.messages
            read(f"<ListRecords>{paper()}{token}</ListRecords>")
        assert caplog.messages[0].endswith("a.xml: the list is incomplete, it ends with a resumption token")


class TestDamage:
    @pytest.mark.parametrize(
        ("text", "why"),
        [
            (f"{paper()}<record><header>", "it ends in the middle"),
            (f"{paper()}<record", "not well-formed (invalid token)"),
            (f"{paper()}</record>", "mismatched tag"),
            (f"{paper()}</_>", "not well-formed (invalid token)"),
            (f"{paper()}<record a='1' a='2'/>", "duplicate attribute"),
            (f"{paper()}<!ENTITY x 'y'>{paper()}", "not well-formed (invalid token)"),
            (f"{paper()}{'<x>' * 1_000_000}", "more than 200 elements inside each other"),
            (f"{paper()}<x a='{'y' * 3_000_000}'/>", "a tag or comment of more than 1 MB"),
            (f"{paper()}<!--{'y' * 3_000_000}-->", "a tag or comment of more than 1 MB"),
            (f"{paper()}<record>{'<a/><!' * 10}", "not well-formed (invalid token)"),
        ],
    )
    def test_what_came_before_is_kept(self, read: Read, text: str, why: str) -> None:
        start = time.process_time()
        first, last = read(text)
        assert first[3] == A
        assert last[2] == f"bad XML: the rest cannot be read: {why}"
        assert time.process_time() - start < 5

    @pytest.mark.parametrize(
        "inside",
        [
            "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10)),
            '<!ENTITY x SYSTEM "file:///etc/passwd">',
            '<!ENTITY % p SYSTEM "http://127.0.0.1:1/p.dtd"> %p;',
        ],
    )
    def test_entities_are_refused(self, read: Read, inside: str) -> None:
        text = f"{DECLARED}<!DOCTYPE records [{inside}]>\n<records>{paper(abstract='&l9; &x;')}</records>"
        assert abstracts(read(text)) == [
            "bad XML: the rest cannot be read: a document type with declarations of its own"
        ]
        assert abstracts(read(f"{text}{DECLARED}{paper()}"))[1] == A

    def test_a_file_without_papers(self, read: Read) -> None:
        for text, seen in (("<svg:svg/>", "the first element is <svg:svg>"), ("x", "there is no element")):
            with pytest.raises(DataError, match=f"no paper in XML of a known kind: {seen}; known: arXiv"):
                read(text)

    @pytest.mark.parametrize(
        "text", [f"{A} " * 100_000, "<b/>" * 200_000, "&" * 300_000, "< " * 300_000, "]" * 300_000]
    )
    def test_large_records(self, read: Read, text: str) -> None:
        start = time.process_time()
        assert len(read(paper(abstract=f"{A}{text}"))) == 1
        assert time.process_time() - start < 5


class TestSniff:
    @pytest.mark.parametrize(
        "head",
        [
            DECLARED,
            f"\n{DECLARED}<svg/>",
            "<xml><records>",
            "<OAI-PMH xmlns='x'>",
            "<record>",
            "<oai_dc:dc xmlns:dc='x'>",
            "<!-- harvested --><ListRecords>",
            "<!DOCTYPE PubmedArticleSet PUBLIC 'x' 'y'>\n<PubmedArticleSet>",
            "<PubmedArticle><Med",
            "<feed xmlns='http://www.w3.org/2005/Atom'>",
            "<article><front>",
            '<article xml:lang="en" article-type="research-article">',
            "<modsCollection>",
        ],
    )
    def test_xml(self, head: str) -> None:
        assert sniff(head, "a.txt").NAME == "xml"

    @pytest.mark.parametrize(
        "head",
        [
            f"<html><p>{A}",
            f"{DECLARED}<!DOCTYPE html PUBLIC 'x' 'y'>\n<html xmlns='x'><p>{A}",
            f"<!DOCTYPE html><html><p>{A}",
            f"<details><summary>{A}</summary>",
            "<article><h1>Lamps</h1>",
            "<recording>",
            f"<{'a' * 60000}",
            "<!--" + "-" * 60000,
            f"# Lamps\n{DECLARED}",
            "",
        ],
    )
    def test_not_xml(self, head: str) -> None:
        assert text_formats()["xml"].sniff(head, {}) == 0

    def test_a_mapping(self) -> None:
        assert text_formats()["xml"].sniff(DECLARED, {"title": "x"}) == 0


def test_memory_is_constant(tmp_path: Path) -> None:
    assert is_flat(tmp_path / "a.xml", DECLARED + paper(abstract=f"{A} " * 10))


def test_time_is_linear(read: Read) -> None:
    assert is_linear(read, lambda count: paper(abstract="<i>&eacute; &</i> < " * count), 4000)
    assert is_linear(read, lambda count: paper() * count, 300)


@given(
    st.lists(
        st.sampled_from(
            [DECLARED, "<record>", "</record>", "<abstract>", "</abstract>", "<!DOCTYPE a [", "<![CDATA[", "]]>"]
        )
        | st.sampled_from(
            ["&", "&#", "<", ">", "<!--", "-->", "<?", "?>", "\0", "\ufffe", "é", "x='", "<dc>", "</dc>", A]
        )
        | st.text(max_size=5)
    )
)
def test_nothing_but_items_and_errors_comes_out(parts: list[str]) -> None:
    text = (paper() + "".join(parts)).encode(errors="replace")
    items = list(text_formats()["xml"].read(io.BufferedReader(io.BytesIO(text)), "dump", {}))
    assert isinstance(items[0], Record)
    assert [item.n for item in items] == list(range(1, len(items) + 1))
