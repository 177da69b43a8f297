"""What is cut from an abstract, what stays, and what is no abstract at all."""

import time

import pytest

from abstag.abstracts import fault, own
from abstag.cleaning import clean
from abstag.ingest import CleanRecord, cleaned
from abstag.records import Record

TEXT = "We teach a robot to fold towels from a single video. The folds are straight."


def _reason(abstract: str, title: str | None = None) -> str | None:
    found = cleaned(Record("f", 1, 1, abstract, title))
    return None if isinstance(found, CleanRecord) else found.reason


@pytest.mark.parametrize("gap", ["", " ", "\n\n"])
@pytest.mark.parametrize(
    "tail",
    [
        "© 2021 Elsevier B.V. All rights reserved.",
        "Copyright © 2020, IEEE.",
        "(c) 2019 The Author(s). Published by Elsevier Ltd. This is an open access article under the CC BY license.",
        "(C) 2019 Elsevier Ltd. All rights reserved.",
        "Published by Elsevier Ltd.",
        "Springer Nature Switzerland AG",
        "2012 Elsevier Inc.",
        "© 2018 Copyright held by the owner/author(s). Publication rights licensed to ACM. 978-1-23-5...$15.00",
        "© 2020, Springer Nature. © 2020, The Author(s), under exclusive licence.",
        "This article is protected by copyright. All rights reserved.",
        "© 2017 IEEE. Personal use of this material is permitted.",
        "(PsycINFO Database Record (c) 2020 APA, all rights reserved)",
        "Copyright of Towel Letters is the property of Towel Press and its content may not be copied.",
        "This work is licensed under a Creative Commons Attribution 4.0 License.",
        "�� 2020 Elsevier",
        "Keywords: robots, folding, towels",
        "KEYWORDS: robots; towels. © 2020 IEEE.",
        "**Keywords:** robots",
        "Keywords robots · towels",
        "Index Terms—Robots, towels.",
        "CCS Concepts: • Computing methodologies → Robots",
        "Comment: 12 pages, accepted at a workshop",
        "Comments: 8 pages, 3 figures Subjects: Robotics (cs.RO)",
    ],
)
def test_what_follows_an_abstract_is_cut(tail: str, gap: str) -> None:
    assert own(clean(TEXT + gap + tail)) == TEXT


@pytest.mark.parametrize(
    "head",
    [
        "© 2021 IEEE.",
        "© 2019 Elsevier B.V.",
        "© 2019 Elsevier B.V. All rights reserved.",
        "Copyright © 2020 for this paper by its authors. Use permitted under Creative Commons License (CC BY 4.0).",
        "Abstract",
        "ABSTRACT:",
        "Abstract—",
        "Abstract -",
        "[Abstract]",
        "**Abstract.**",
        "# Abstract\n",
        "Summary.",
        "Abstract: © 2021 IEEE.",
        "© 2021 IEEE. Abstract:",
    ],
)
@pytest.mark.parametrize("gap", ["", " "])
def test_what_precedes_an_abstract_is_cut(head: str, gap: str) -> None:
    assert own(clean(head + gap + TEXT)) == TEXT


@pytest.mark.parametrize(
    "heading",
    ["1 Introduction Towels", "1. INTRODUCTION Towels", "References [1] A. Towel.", "References Towel, A. 2001."],
)
def test_what_follows_a_long_abstract_is_cut_whatever_it_says(heading: str) -> None:
    long = " ".join([TEXT] * 4)
    assert own(f"{long} {heading} We go on about our towels.") == long
    assert own(f"{TEXT} {heading} We go on.") == f"{TEXT} {heading} We go on."


@pytest.mark.parametrize(
    "text",
    [
        "We study copyright infringement by machines that fold. Copyright law is old.",
        "Robots memorise folds. Copyright of folds is unclear.",
        f"{TEXT} Copyright is a concern for those who publish folds.",
        f"{TEXT} Code is available at https://example.org/towels.",
        f"{TEXT} Keywords help readers to find towels.",
        f"{TEXT} Our towels are licensed under CC BY 4.0.",
        f"{TEXT} IEEE test cases are solved by it.",
        f"{TEXT} Introduction of noise helps.",
        "© is a sign that we teach a robot to draw. It does so well.",
        "We fold (a) towels, (b) shirts and (c) 2019 socks.",
        "Abstract reasoning is hard for towels of this kind.",
        "Abstract Towel Machines are solved by robots.",
        "Abstract-level planning of folds is hard.",
        "Summary statistics of towels are learnt.",
        "Objective: We fold. Methods: Robots. Results: Good.",
        "We fold towels and ...",
    ],
)
def test_the_authors_own_sentences_stay(text: str) -> None:
    assert own(text) == text


@pytest.mark.parametrize(
    ("reason", "texts"),
    [
        (
            "placeholder abstract",
            "N/A|TBA|None.|-|?|...|Unavailable|see pdf|Abstract|No abstract available|To be added",
        ),
        ("placeholder abstract", "[No abstract available]|Abstract not available for this article|Your abstract here"),
        ("placeholder abstract", "There is no abstract for this paper|This article has no abstract|暂无摘要"),
        (
            "placeholder abstract",
            "Abstract will be available soon|Please see the attached PDF|Lorem ipsum dolor sit amet",
        ),
        ("placeholder abstract", "<p>Abstract: N/A</p>|N/A. © 2020 IEEE"),
        ("withdrawn", "Withdrawn|[Withdrawn]|Paper withdrawn|WITHDRAWN: Towels and how to fold them"),
        ("withdrawn", "This paper has been withdrawn by the author due to a crucial sign error in its second fold."),
        ("withdrawn", "The authors have withdrawn this paper.|The author wishes to withdraw this paper."),
        ("withdrawn", "I have withdrawn this manuscript.|We withdraw this paper because of an error."),
        ("withdrawn", "This article has been retracted at the request of the editor."),
        ("withdrawn", "This submission has been withdrawn by arXiv administrators due to disputed towels."),
        ("withdrawn", "This paper has been superseded by another one."),
        (
            "error page",
            "403 Forbidden|Error 404: Not Found|Please enable JavaScript to view this page.|Just a moment...",
        ),
        ("link only", "https://example.org/abs/2101.00001|doi:10.1000/xyz|10.1000/xyz.1|paper_final-2.pdf"),
        ("no abstract", "<p></p><div></div>|© 2020 IEEE. All rights reserved."),
        ("title only", "Folding of Towels"),
        ("too short", "We fold towels."),
    ],
)
def test_what_is_no_abstract_is_rejected_with_its_reason(reason: str, texts: str) -> None:
    found = {text: _reason(text, "Folding of towels.") for text in texts.split("|")}
    assert found == dict.fromkeys(found, reason)


@pytest.mark.parametrize(
    "text",
    [
        "Withdrawn submissions are a rich source of reviews that nobody has folded.",
        "Retracted papers keep being cited for years, and we say why.",
        "This paper studies withdrawn drugs and their towels.",
        "None of the methods work well on long towels.",
        "Abstract domains are not available for towels of this size and kind.",
        "Error 404 pages are common on the towel web.",
        "Unavailable data are imputed by a network of robots.",
    ],
)
def test_a_paper_about_such_things_is_none_of_them(text: str) -> None:
    assert fault(text) is None


def test_cutting_is_done_once_for_all() -> None:
    text = own(f"Abstract: {TEXT} Keywords: a, b. © 2020 IEEE. © 2021 Elsevier B.V. Comments: 3 pages")
    assert own(text) == text == TEXT


@pytest.mark.parametrize(
    "piece", ["© 2020 ", "Keywords: ", " Published by A", "References [1] ", "a.pdf", "withdrawn ", "A. ", " "]
)
def test_hostile_text_takes_no_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    start = time.perf_counter()
    own(text), fault(text)
    assert time.perf_counter() - start < 10
