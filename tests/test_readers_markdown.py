"""Markdown lists of papers, in the shapes in which people keep them, with sentences of our own."""

import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from abstag.readers import open_dump, sniff, text_formats
from abstag.readers._marks import bare, is_english, is_prose, label
from abstag.records import Record, Reject
from tests.bibliography import A, B
from tests.test_readers import items, records, write

ZH = "我们走过一个小梯度的花园，数一数从每个梯度落下的花瓣（petals）。星期天的数目是偶数，园丁睡懒觉的日子是奇数。"
DE = (
    "Wir gehen durch einen Garten kleiner Gradienten und zählen die Blätter, die von jedem fallen. "
    "Sonntags kommt eine gerade Zahl heraus, und eine ungerade an Tagen, an denen der Gärtner lange schläft."
)
END = "  "  # of a line, so that it stays apart from the next
TLDR = "A machine has read it all and says in one sentence that the petals are even on Sundays."


def found(tmp_path: Path, text: str, *, forced: bool = False) -> list[Record | Reject]:
    dump = open_dump(write(tmp_path, "list.md", text), format="markdown" if forced else None)
    assert dump.format == "markdown"
    return list(dump.items)


def pairs(tmp_path: Path, text: str) -> list[tuple[str | None, str]]:
    """Return title and abstract of the records, or the reason of a reject."""
    return [(item.title, item.abstract if isinstance(item, Record) else item.reason) for item in found(tmp_path, text)]


BOTH = [("Gardens of gradients", A), ("Lamps", B)]
SHAPES = {
    "numbered headings, text indented as by a script": f"""
        ## [800] Gardens of gradients

                **Authors**: *Ann Gardener, Bob Spade*

                **Conference**: *nips 2022*

                **URL**: [https://a.example/1-Abstract.html](https://a.example/1-Abstract.html)

                **Abstract**:

                {A}

        ----

        ## [801] Lamps

                **Authors**: *Cid Wick*

                **Abstract**:

                {B}

        ----
        """,
    "free text": f"## Gardens of gradients\n{A}\n## Lamps\n\n{B}\n",
    "linked and numbered": f"### 12. [Gardens of gradients](1.md) [[code](2)]\n\n{A}\n\n### [2] [Lamps](2.md)\n{B}\n",
    "bold lines": f"""
        **Gardens of gradients** [[PDF](https://a.example/1.pdf)] `cs.LG`
        *Ann Gardener, Bob Spade*
        {A}

        **2. [Lamps](https://a.example/2)**

        [PDF](https://a.example/2.pdf) | [Code](https://a.example/2.git)

        {B}
        """,
    "bold items with a fold inside the item": f"""
        - **Gardens of gradients**{END}
          Ann Gardener, Bob Spade{END}
          _2026-02-03_ · https://a.example/1 · `cs.RO`{END}
          <details><summary>Abstract</summary>

          {A}

          </details>

        - **Lamps**
          - Cid Wick | [1](https://a.example/2) | [Code](https://a.example/2.git)
          - <details><summary>📄 Abstract (click to expand)</summary>{B}</details>
        """,
    "linked items": f"""
        * [Gardens of gradients](https://a.example/1), Ann Gardener; Bob Spade, 2020, *Soil*
          <details><summary>Abstract</summary>{A}</details>
        * [**Lamps**](https://a.example/2)
          > {B}
        """,
    "items with a translation": f"""
        1. **Gardens of gradients**
           - **Abstract:**
             > {A}
           - **和訳:**
             > {ZH}

        2. **Lamps**

           **摘要：** {ZH}

           **Abstract:** {B}
        """,
    "plain items with labels": f"""
        1. Gardens of gradients
           - Authors: Ann Gardener
           - Abstract: {A}
        2. Lamps on the table
           - Abstract: {B}
        """,
    "title labels": f"""
        **Title**: Gardens of gradients

        **Authors**: Ann Gardener

        **Abstract**: {A}

        ----

        - Title: Lamps
        - Link: https://a.example/2
        - Abstract: {B}
        """,
    "label headings": f"""
        # Gardens of gradients
        ## TL;DR
        {TLDR}

        {TLDR}
        ## Abstract
        {A}
        ## References
        We thank the soil for all that it has given to the petals and to us.
        # Lamps
        ## 摘要
        {ZH}
        ## Abstract

        {B}
        """,
    "folded papers": f"""
        <details><summary><b>1. Gardens of gradients</b></summary>

        {A}
        </details>
        <details>
        <summary>
        2. Lamps on the table
        </summary>
        <p><b>Authors:</b> Cid Wick</p>
        <p>{B}</p>
        </details>
        """,
    "HTML": f"""
        <h3 align="center"><a href="https://a.example/1">Gardens of gradients</a></h3>
        <p><i>Ann Gardener, Bob Spade</i></p>
        <p>{A}</p>
        <h3>Lamps</h3><br>
        <strong>Abstract:</strong> {B}
        """,
    "quotes and code": f"### Gardens of gradients\n> **Abstract:** {A}\n>\n> Keywords: x\n\n### Lamps\n```\n{B}\n```\n",
    "a machine's summary in parts": f"""
        ### [1] [Gardens of gradients](https://a.example/1)
        *Ann Gardener,Bob Spade*

        Main category: cs.AI

        TL;DR: {TLDR}

        <details>
          <summary>Details</summary>
        Motivation: {TLDR}

        Result: {TLDR}

        Abstract: {A}

        </details>

        ---

        ### [2] [Lamps](https://a.example/2)
        **AI summary:** {TLDR}

        {B}
        """,
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_shapes(tmp_path: Path, text: str, end: str) -> None:
    text = textwrap.dedent(text)
    titles = [title if title != "Lamps on the table" else "Lamps" for title, _ in pairs(tmp_path, text)]
    assert titles == [title for title, _ in BOTH]
    both = found(tmp_path, text.replace("\n", end))
    assert [item.abstract for item in both if isinstance(item, Record)] == [A, B]
    assert [item.n for item in both] == [1, 2]
    lines = text.splitlines()
    for item, word in zip(both, ("Gardens", "Lamps"), strict=True):
        assert item.line
        assert any(word in line for line in lines[item.line - 1 : item.line + 2])


@pytest.mark.parametrize(
    "text",
    [
        f"| Title | Abstract |\n|:--|:-:|\n| Gardens of gradients | {A} |\n| Lamps | {B} |\n",
        f"Id | **Abstract** | Title\n--- | --- | ---\na | {A} | [Gardens of gradients](1)\nb | {B} | **Lamps**\n",
        (
            f"|Title|Abstract|\n|-|-|\n|**[Gardens of gradients](1)**|<details><summary>Show</summary>{A}</details>|\n"
            f"|Lamps|{B}|"
        ),
    ],
)
def test_tables(tmp_path: Path, text: str) -> None:
    assert pairs(tmp_path, text) == BOTH


def test_table_rows_that_do_not_fit(tmp_path: Path) -> None:
    rows = [f"| Gardens | {A} a\\|b | 2021 |", "| Lamps | | |", f"| a | {B} | c | d |", "| Lost |"]
    text = "\n".join(["| title | abstract | year |", "|---|---|---|", *rows, ""])
    first, *others = found(tmp_path, text + "\n| method | score |\n|--|--|\n| ours | 1 |\n")
    assert isinstance(first, Record)
    assert (first.abstract, first.year, first.line) == (f"{A} a|b", 2021, 3)
    reasons = [(item.reason, item.title, item.line) for item in others if isinstance(item, Reject)]
    assert reasons == [("no abstract", "Lamps", 4), ("ragged row", None, 5), ("no abstract", "Lost", 6)]


def test_headings_that_group_give_venue_and_year(tmp_path: Path) -> None:
    text = f"""
        # ICML 2025

        This list was made by a gardener who had nothing else to do in the long winter.

        ## Oral

        ### Gardens
        {A}

        ### Learning to Track Objects
        {B}

        ## Posters

        **Petals of the North**
        {A}

        # NeurIPS 2024 Papers

        1. **Soil and seeds**
           {B}

        ### Sun
        **Venue**: ICLR 2023 Poster

        {A}
        """
    both = found(tmp_path, textwrap.dedent(text))
    assert [(item.title, item.venue, item.year) for item in both if isinstance(item, Record)] == [
        ("Gardens", "ICML", 2025),
        ("Learning to Track Objects", "ICML", 2025),
        ("Petals of the North", "ICML", 2025),
        ("Soil and seeds", "NeurIPS", 2024),
        ("Sun", "ICLR 2023 Poster", 2023),
    ]
    assert len(both) == 5


def test_front_matter(tmp_path: Path) -> None:
    matter = '---\nlayout: list\ntitle: "ICML 2025 Papers"\n---\n'
    text = f"{matter}<!-- ## Lost\n{A} -->\n## Gardens\n{A}\n## Lamps\n{B}\n"
    assert [item.line for item in found(tmp_path, text)] == [7, 9]


def test_fields_beside_the_abstract(tmp_path: Path) -> None:
    text = f"""
        ### Gardens

        **Authors:** Ann Gardener, Bob Spade
        **Keywords:** soil, seeds
        **Primary Area:** botany (flowers)
        **Conference:** *ICML 2024*
        **关键词**: none
        Published: 2023-05-01

        {A}
        """
    (one,) = found(tmp_path, textwrap.dedent(text))
    assert isinstance(one, Record)
    assert (one.abstract, one.venue, one.year) == (A, "ICML 2024", 2023)
    assert one.declared == ("soil", "seeds", "botany (flowers)")


@pytest.mark.parametrize(
    ("line", "id_"),
    [
        ("[Paper](https://openreview.net/forum?id=abC-12_x)", "abC-12_x"),
        ("Link: https://openreview.net/pdf?id=abC-12_x | [Code](https://a.example)", "abC-12_x"),
        ("*arXiv:2401.01234*", "2401.01234"),
        ("- [2401.01234](http://arxiv.org/abs/2401.01234v2)", "2401.01234"),
        ("[PDF](https://arxiv.org/pdf/cs/0101001.pdf)", "cs/0101001"),
        ("[PDF](https://a.example/abs/2401.01234)", None),
    ],
)
def test_id_from_a_link(tmp_path: Path, line: str, id_: str | None) -> None:
    body = f"{A} See https://arxiv.org/abs/1111.11111 for more."
    (one,) = found(tmp_path, f"## [800] Gardens of gradients\n\n{line}\n\n{body}\n")
    assert (one.id, one.title) == (id_, "Gardens of gradients")
    (one,) = found(tmp_path, f"## [800] Gardens of gradients\n\n**Abstract**: {body}\n\n{line}\n")
    assert (one.id, one.title) == (id_, "Gardens of gradients")


@pytest.mark.parametrize("other", [ZH, DE])
def test_the_english_paragraph_is_taken(tmp_path: Path, other: str) -> None:
    text = f"### Gardens\n\n{other}\n\n{A}\n\n### Lamps\n\n{B}\n\n{other}\n\n### Both\n{A}\n{ZH}\n"
    assert pairs(tmp_path, text) == [("Gardens", A), ("Lamps", B), ("Both", A)]


def test_what_is_no_abstract(tmp_path: Path) -> None:
    text = f"""
        ### Gardens
        {A}
        ### Lost
        ### Only summed up
        **TL;DR:** {TLDR}
        ### Linked
        [Code](https://a.example)
        ### Empty fold
        <details><summary>Abstract</summary></details>
        ### Placeholder
        N/A
        ### Withdrawn
        Abstract: Withdrawn.
        ### Long
        {A * 100}
        ### Twice
        **Abstract**: {A}

        **Abstract**: {B}
        ### Summary only
        **Summary:** {B}
        """
    both = found(tmp_path, textwrap.dedent(text))
    assert [(item.title, item.reason if isinstance(item, Reject) else item.abstract) for item in both] == [
        ("Gardens", A),
        ("Lost", "no abstract"),
        ("Only summed up", "no abstract"),
        ("Linked", "no abstract"),
        ("Empty fold", "no abstract"),
        ("Placeholder", "no abstract"),
        ("Withdrawn", "withdrawn"),
        ("Long", "too long"),
        ("Twice", "several abstracts"),
        ("Summary only", B),
    ]
    assert [item.n for item in both] == list(range(1, 11))
    assert [item.line for item in both][:4] == [2, 4, 5, 7]


def test_tables_of_contents_and_sections_about_the_list_are_skipped(tmp_path: Path) -> None:
    text = f"""
        <details><summary>Table of Contents</summary>
        <ul><li><a href="#gardens-of-gradients">Gardens of gradients</a></li></ul>
        </details>

        # Papers

        - [Orals](#orals)
          - [Gardens of gradients](#gardens-of-gradients)
          - [Lamps of the north](https://a.example/#lamps)

        ## Contents
        1. [Gardens of gradients](#gardens)

        ## Topics of this list
        - [Soil](#soil)

        ## Gardens of gradients
        {A}

        ## Lamps
        {B}

        ---
        This list is kept by a gardener who has more time than he would like to have.

        ## License
        You may use all that stands in this list for whatever you like to make of it.
        """
    assert pairs(tmp_path, textwrap.dedent(text)) == BOTH


def test_bylines_and_links_below_a_title_are_no_titles(tmp_path: Path) -> None:
    text = f"""
        ### [Gardens of gradients](1.md)
        **Ann Gardener, Bob Spade et al.** · 2022-12-30

        {A}

        ### Lamps
        - [A longer story about it](https://a.example)
        - **Abstract**: {B}

        ### Petals
        - **Petals, told at length for all of us**
          - [A longer story about it](https://a.example)
          - <details><summary>Abstract</summary>{A}</details>
        """
    expected = [*BOTH, ("Petals, told at length for all of us", A)]
    assert pairs(tmp_path, textwrap.dedent(text)) == expected


@pytest.mark.parametrize("sign", ["*", "**", "_"])
def test_abstract_in_italics_or_bold(tmp_path: Path, sign: str) -> None:
    assert pairs(tmp_path, f"### Gardens of gradients\n\n{sign}{A}{sign}\n\n### Lamps\n\n{sign}{B}{sign}\n") == BOTH


def test_bold_words_inside_an_abstract_are_no_titles(tmp_path: Path) -> None:
    more = "- **Robustness**: we show that the garden withstands all the rains of April.\n- It grows in a day, too."
    lead = "**We prove one bound.** It is tight when the fog is thin, and loose when the lamps are lit."
    text = f"### Gardens\n{A}\n\n{lead}\n\n{more}\n\n### Lamps\n{B}\n\n### Soil\n{B}\n"
    assert [title for title, _ in pairs(tmp_path, text)] == ["Gardens", "Lamps", "Soil"]
    assert pairs(tmp_path, text)[0][1] == f"{A} {lead}"


def test_a_title_with_bold_lines_below_is_a_paper_like_its_fellows(tmp_path: Path) -> None:
    text = f"### Gardens\n{A}\n\n**What I think of it**\n\n{TLDR}\n\n### Lamps\n{B}\n\n### Soil\n{B}\n"
    assert pairs(tmp_path, text) == [("Gardens", A), ("What I think of it", TLDR), ("Lamps", B), ("Soil", B)]


def test_abstract_after_a_title_on_the_same_line(tmp_path: Path) -> None:
    text = f"- **Gardens of small gradients**: {A}\n- **Lamps of the north sea** — {B}\n"
    assert pairs(tmp_path, text) == [("Gardens of small gradients", A), ("Lamps of the north sea", B)]


class TestSniff:
    @pytest.mark.parametrize("name", ["list.md", "list.txt", "-"])
    @pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
    def test_lists_are_sure(self, text: str, name: str) -> None:
        assert text_formats()["markdown"].sniff(textwrap.dedent(text), {}) == 2
        assert sniff(textwrap.dedent(text), name).NAME == "markdown"

    @pytest.mark.parametrize(
        "text",
        [
            f"# ICML 2025 Papers\n\n{A}\n\n{B}\n",
            f"# ICML 2025\n{A}\n## Posters\n{B}\n",
            f"# What I have read this year\n\n{A}\n\n{B}\n\n{A}\n",
            f"## Soil\n\n{A}\n\n{B}\n\n## Light\n\n{B}\n\n{A}\n",
            f"# ICML 2025 Papers\n\nAbstract: {A}\n\nAbstract: {B}\n",
            f"ICML 2025 Papers\n\n{A}\n\n- **Speed**: {B}\n- **Size**: {A}\n\n{B}\n",
            f"{A}\n\n{B}\n\n{A} {B}\n\n- **A bold lead of five words** {B}\n",
        ],
    )
    @pytest.mark.parametrize("name", ["list.md", "list.txt", "-"])
    def test_headed_plain_text_is_left_alone(self, text: str, name: str) -> None:
        assert text_formats()["markdown"].sniff(text, {}) == 0
        assert sniff(text, name).NAME == "plain"

    def test_list_without_abstracts(self) -> None:
        text = "# Awesome\n- **Gardens of gradients** [[pdf]](1)\n- [Lamps of the north](2)\n"
        assert text_formats()["markdown"].sniff(text, {}) == 0


def test_unlabelled_abstracts_under_a_group_are_seen_when_forced(tmp_path: Path) -> None:
    both = found(tmp_path, f"# ICML 2025\n\nAbstract: {A}\n\nAbstract: {B}\n", forced=True)
    assert [(item.title, getattr(item, "reason", "")) for item in both] == [(None, "several abstracts")]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("[800] Gardens", "Gardens"),
        ("### 12. **[Gardens](1)** `cs.LG` ##", "### 12. Gardens `cs.LG`"),
        ("[Gardens](1) [[PDF](2)] ([code](3))", "Gardens"),
        ("[Filling [MASK] in](https://a.example/b_(c))", "Filling [MASK] in"),
        ("3D gardens, 2.5 lamps and C#", "3D gardens, 2.5 lamps and C#"),
        (r"A\_b \[c\] a_b_c", "A_b [c] a_b_c"),
        ("![badge](1) **Gardens** of *x*", "Gardens of x"),
    ],
)
def test_bare_titles(text: str, plain: str) -> None:
    assert bare(text) == plain


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("**Abstract:** x", ("abstract", "x")),
        ("__Abstract__: x", ("abstract", "x")),
        ("Abstract— We", ("abstract", "We")),
        ("**Abstract.** We", ("abstract", "We")),
        ("*Authors: A, B*", ("authors", "A, B")),
        ("**摘要：**In", ("abstract", "In")),
        ("🔥 TL;DR", ("aside", "")),
        ("**Own label**: x", ("other", "x")),
        ("**Conference**: *nips 2022*", ("venue", "*nips 2022*")),
        ("Abstract reasoning is hard: we", None),
        ("**Gardens: a survey**", None),
        ("**Video: a survey**", None),
        ("**Results** show that", None),
        ("Results: we find", None),
        ("[PDF](1) | [Code](2)", None),
        (A, None),
    ],
)
def test_labels(line: str, expected: tuple[str, str] | None) -> None:
    assert label(line) == expected


def test_prose_and_english() -> None:
    assert all(map(is_prose, (A, B, DE, TLDR)))
    assert not any(
        map(is_prose, ("Ann Gardener, Bob Spade, Cid Wick, Dan Lamp, Eve Soil, Fay Sun, Gus Rain.", "Short."))
    )
    assert [is_english(text) for text in (A, B, "Short.", ZH, DE)] == [True, True, True, False, False]


RENDER: dict[str, Callable[[str, str], str]] = {
    "heading": lambda title, text: f"## [7] {title}\n\n{text}\n\n",
    "linked heading": lambda title, text: f"### [{title}](https://a.example)\n*Ann Gardener*\n{text}\n",
    "folded": lambda title, text: f"### {title}\n<details><summary>Abstract</summary>\n\n{text}\n\n</details>\n\n",
    "bold": lambda title, text: f"**{title}**\n{text}\n\n",
    "item": lambda title, text: f"- **{title}**\n  - Ann Gardener\n  - {text}\n",
    "linked item": lambda title, text: f"* [{title}](https://a.example)\n\n  {text}\n\n",
    "label": lambda title, text: f"**Title**: {title}\n\n**Abstract**: {text}\n\n**Abstract (Chinese)**: {ZH}\n\n",
    "row": lambda title, text: f"| {title} | {text} |\n",
}
PAPERS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["gardens", "lamps", "of", "petals", "soil"]), min_size=2, max_size=6), st.booleans()
    ),
    min_size=1,
    max_size=12,
).filter(lambda papers: any(has for _, has in papers))


@pytest.mark.parametrize("shape", RENDER)
@given(
    papers=PAPERS, group=st.sampled_from(["", "# ICML 2025\n\n", "- [Gardens of soil](#gardens)\n\n# Oral papers\n\n"])
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_title_is_a_record_or_a_reject(
    tmp_path: Path, shape: str, papers: Sequence[tuple[list[str], bool]], group: str
) -> None:
    head = "| Title | Abstract |\n|---|---|\n" if shape == "row" else ""
    titles = [" ".join(words).capitalize() for words, _ in papers]
    parts = [
        RENDER[shape](title, f"{A} {n}" if has else "")
        for n, (title, (_, has)) in enumerate(zip(titles, papers, strict=True))
    ]
    both = found(tmp_path, group + head + "".join(parts), forced=True)
    assert [item.title for item in both] == titles
    assert [isinstance(item, Record) for item in both] == [has for _, has in papers]
    assert [item.abstract[-2:].strip() for item in both if isinstance(item, Record)] == [
        str(n) for n, (_, has) in enumerate(papers) if has
    ]
    assert [item.n for item in both] == list(range(1, len(papers) + 1))


HOSTILE = {
    "headings": "## Gardens of gradients\n" * 100_000,
    "levels": "# a\n## a\n### a\n" * 30_000,
    "brackets": "[" * 1_000_000 + "\n" + "[]" * 500_000 + "\n" + "[a](" * 250_000,
    "brackets in a title": "# " + "[" * 1_000_000,
    "bracket lines": "- [\n" * 100_000,
    "deep list": "".join(" " * depth + "- **Gardens of small gradients**\n" for depth in range(1500)),
    "list signs": "- " * 500_000 + "\n" + "> " * 500_000 + "\n" + ">" * 1_000_000,
    "folds": "<details>" * 100_000 + "**Authors**: a\n" * 20_000 + "<details><summary>Abstract</summary>\n" * 20_000,
    "labels": "## T\n" + f"**Abstract**: {TLDR}\n---\n" * 20_000,
    "emphasis": "*a" * 500_000 + "\n" + "**a** " * 100_000 + "\n# " + "*a" * 500_000,
    "comments": "<!-- " * 200_000,
    "fences": "```\n" * 50_000 + "``` a\n" * 50_000,
    "table": "|" + "a|" * 100_000 + "\n|" + "-|" * 100_000 + "\n" + "|" * 1_000_000,
    "wide table": "|abstract" + "|a" * 50_000 + "\n|-" + "|-" * 50_000 + "\n" + "|b\n" * 50_000,
    "tags": "<a href=" * 100_000 + "<h1>" * 100_000 + "<br" * 100_000,
    "blanks": "# a" + " " * 1_000_000 + "b\n" + " " * 1_000_000 + "-" + " " * 1_000_000 + "b",
    "contents": "- [Gardens of soil](1)\n  - [Gardens of soil](#1)\n" * 20_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_time_stays_linear(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "a.md", text)
    start = time.process_time()
    items(path, "markdown")
    text_formats()["markdown"].sniff(text[: 1 << 16], {})
    assert time.process_time() - start < 40


def test_plain_files_of_the_same_suffix_still_read(tmp_path: Path) -> None:
    assert len(records(write(tmp_path, "a.md", f"# ICML 2025\n\n{A}\n\n{B}\n"))) == 2
