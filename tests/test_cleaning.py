"""Cleaning: every kind of dirt, what must survive, and the invariants."""

import subprocess
import sys
import unicodedata

import ftfy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abstag import cleaning
from abstag.cleaning import clean


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        (r"an $O(1/\sqrt{T})$ rate", "an O(1/√T) rate"),
        (r"$\widetilde{\mathcal{O}}\left(\frac{d^2}{n}\right)$", "Õ(d^2/n)"),
        (r"$p \gtrsim \log\log n$, $T\log T$", "p ≳ log log n, T log T"),
        (r"a gain of $4.2\%$ to $8\\%$ and 5\% more", "a gain of 4.2% to 8% and 5% more"),
        (r"as in BERT~\citep{some:key}, \cite[p.~3]{other} we", "as in BERT, we"),
        (r"\emph{so} \textbf{bold \textit{and} slanted} \texttt{code}", "so bold and slanted code"),
        (r"{\em so} ${\bf w}$ \textcolor{red}{warm}", "so w warm"),
        (r"Erd\H{o}s, na\"ive, caf\'{e}, \o re", "Erdős, naïve, café, øre"),
        (r"our \squad{} and \ours{method} vs.\ theirs", "our squad and method vs. theirs"),
        (r"\href{https://example.org/x}{code} at \url{https://example.org/a_b}", "code at https://example.org/a_b"),
        (r"see Fig.~3 for $k$-means ($<$1M), 8$\times$ faster", "see Fig. 3 for k-means (<1M), 8× faster"),
        (r"\(x^2\) is \[y_1\]", "x^2 is y_1"),
        (r"one -- two, ``three''", "one – two, “three”"),
        (r"a dash\u2014here, $σ\ne\hatρ$", "a dash—here, σ≠ρ̂"),
    ],
)
def test_latex_becomes_text(raw: str, plain: str) -> None:
    assert clean(raw) == unicodedata.normalize("NFC", plain)


@pytest.mark.parametrize(
    "text",
    [
        "5% of $100",
        "from $5 to $10 a day, and over $30,485 in all",
        "p < 0.05 and a > b",
        "x<p and q>1",
        "the <think> token",
        "a * b * c, p_i and q_j, snake_case_names, 2**3",
        "first- and second-order, in- or output",
        "about ~60% of 10~20",
        "a } b { c",
        "R&D, AT&T",
        "nothing to mend: state-of-the-art results (2024).",
    ],
)
def test_plain_text_survives(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("cafÃ© serves ﬁne â€œteaâ€\x9d", "café serves fine “tea”"),
        ("so\xadft hy\u200bphen\0s", "soft hyphens"),
        ("cafe\u0301", "café"),
        ("𝗯𝗼𝗹𝗱 𝒪(n)", "bold O(n)"),
        ("a &amp;amp; b &lt;i&gt;c&lt;/i&gt; &#8211; &#xE9;", "a & b c – é"),
        ("<jats:p>One<sub>2</sub></jats:p><jats:p>two</jats:p>", "One2 two"),
        ('<p class="x">One<br/>two <a href="https://example.org">three</a></p>', "One two three"),
        ("**D**irect *pre-\nference* __and__ _more_ [link](https://example.org/a)", "Direct preference and more link"),
        ("uncer-\ntainty and uncer- tainty", "uncertainty and uncertainty"),
        ("in the real-\n  world, decision- making", "in the real-world, decision-making"),
        (" wrapped\r\n  lines\tand\u00a0spaces ", "wrapped lines and spaces"),
        ("lone \ud800 half", "lone \ufffd half"),
        ("zero\u200cwidth \u202aleft\u202c \u2066right\u2069\u200f", "zerowidth left right"),
        ("opti\xad\n  mization and opti\u2010\nmization, non\u2011linear", "optimization and optimization, non-linear"),
        ("nai\u0308ve and na\u0131\u0308ve", "naïve and naïve"),
        ("H<jats:sub>2</jats:sub>O <jats:italic>is</jats:italic> 10<inf>3</inf>", "H2O is 103"),
        ("<mml:math><mml:mi>x</mml:mi><mml:mo>=</mml:mo><mml:mn>2</mml:mn></mml:math> holds", "x=2 holds"),
        ("&lt;p&gt;a &amp;lt;i&amp;gt;b&amp;lt;/i&amp;gt;&lt;/p&gt;", "a b"),
        ("<![CDATA[<p>We</p>]]> go<!-- not <i>here</i> --> on", "We go on"),
        ("<script>f(1)</script>We<style type='a'>p{}</style> <img src='a.png'/> see", "We see"),
        ("Ã¢â‚¬Å“twiceÃ¢â‚¬\x9d", "“twice”"),
        ("One.\\n\\nTwo.\\tThree", "One. Two. Three"),
    ],
)
def test_other_dirt(raw: str, plain: str) -> None:
    assert clean(raw) == plain


@pytest.mark.parametrize(
    "raw",
    [r"\frac{a}", r"\frac{a\frac{b", r"\emph{never closed", "$ \\sqrt{x", r"ends in \\", "100 $ and {x", r"\verb|k|"],
)
def test_broken_latex_loses_no_letters(raw: str) -> None:
    words = {"frac", "sqrt", "emph", "verb"}
    kept = clean(raw)
    for word in raw.replace("\\", " ").translate(str.maketrans("{}|$", "    ")).split():
        assert word in words or word in kept


SIGNS = "ab5 ${}\\%*_<>&~^-[]()|#\"'`\n"
DIRT = (
    "\\emph{ \\cite{ $x$ \\frac \\left( {\\em ** &amp; &lt; <p> </i> é Ã© \u0301 \xad \ud800 ﬁ 𝒪 - word \\( \\) "
    "\\$ \\o ](https://a) \\verb \\u2014 __ -- `` \\log \\sqrt"
)
PIECES = st.sampled_from([*SIGNS, *DIRT.split(" ")])


@settings(max_examples=600)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_dirty_text_is_cleaned_once_for_all(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    assert len(once) <= 2 * len(text)
    assert once == " ".join(once.split())


@settings(max_examples=200)
@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_any_string_is_cleaned_once_for_all(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    assert unicodedata.is_normalized("NFC", once)


HOSTILE = [
    "{",
    "\\",
    "$",
    "{}",
    "\\emph{",
    "{\\em ",
    "<p ",
    "<",
    "&",
    "&amp;",
    "*a ",
    "_a ",
    "ab-\n",
    "[a](",
    "\\cite[",
    "~",
    "<!--",
    "<script>",
    "\xad ",
    "Ã©",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_is_left_or_cleaned(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    assert len(clean(text)) <= len(text)


@pytest.mark.parametrize("piece", ["\\emph{" * 4, "$" + "{" * 40 + "$ ", "$\\sqrt{" * 3, "\\frac{a", "{\\bf ", "\\(a "])
def test_work_grows_with_the_text(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    handed = 0
    convert = cleaning._converted

    def counted(island: str) -> str:
        nonlocal handed
        handed += len(island)
        return convert(island)

    monkeypatch.setattr(cleaning, "_converted", counted)
    for n in (100, 1_000, 10_000, 100_000):
        handed, text = 0, (piece * n)[:n]
        clean(text)
        assert handed <= cleaning._MAX_PASSES * n


@settings(max_examples=400)
@given(st.text(st.sampled_from(cleaning._LONE + " ab.?1-\n"), max_size=40))
def test_what_ftfy_is_not_asked_it_would_not_change(text: str) -> None:
    if not cleaning._SUSPECT.search(text):
        assert ftfy.fix_text(text, unescape_html=False, uncurl_quotes=False) == text


def test_libraries_are_imported_on_use() -> None:
    code = (
        "import sys; from abstag.cleaning import clean; clean('plain'); "
        "assert not {'ftfy', 'pylatexenc', 'numpy'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
