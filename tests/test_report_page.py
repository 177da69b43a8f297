"""The page in a real browser: rows sort, filters narrow, papers open, nothing is logged, no script gets in."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abstag.report.write import write_report
from abstag.store import Store
from tests.conftest import make_scores
from tests.test_report_write import SCRIPT, documents_of, save

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("CI has no browser: install Debian's chromium")
        pytest.skip("no Chromium on this machine")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=QUIET)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of four runs, one of them undefined, with hostile titles."""
    folder = tmp_path_factory.mktemp("report")
    store = Store(folder / "runs")
    made = []
    for seed, (run, wrong) in enumerate([("svm-1", 0.05), ("nb-1", 0.2), ("keywords-1", 0.4)]):
        scores = make_scores(wrong=wrong, seed=seed)
        made.append(save(store, scores, run, documents_of(scores, SCRIPT), fit_seconds=10.0 * (3 - seed)))
    silent = replace(make_scores(), tags=np.zeros((80, 2), dtype=np.bool_))
    made.append(save(store, silent, "prior-1", fit_seconds=None, experiment="other"))
    return write_report(made, folder / "out")


@contextmanager
def opened(browser: "Browser", page: Path, **options: Any) -> Iterator["Page"]:
    """Open the page; whatever it logs, throws or asks the network for fails the test."""
    context = browser.new_context(**options)
    tab, heard = context.new_page(), list[str]()
    tab.on("console", lambda message: heard.append(message.text))
    tab.on("pageerror", lambda error: heard.append(str(error)))
    tab.on("dialog", lambda dialog: heard.append(dialog.message))
    tab.on("request", lambda request: heard.append(request.url) if "report.html" not in request.url else None)
    tab.goto(page.as_uri())
    yield tab
    assert heard == []
    context.close()


def first_column(tab: "Page") -> list[str]:
    return tab.locator("#runs tbody tr:visible th").all_inner_texts()


def test_rows_sort_by_click_and_by_keyboard(browser: "Browser", report: Path) -> None:
    with opened(browser, report) as tab:
        assert first_column(tab)[0] == "svm"
        head = tab.get_by_role("button", name="macro-F1", exact=True)
        head.click()
        assert first_column(tab)[-1] == "svm"
        assert tab.locator("#runs th[aria-sort]").get_attribute("aria-sort") == "ascending"
        tab.get_by_role("button", name="fit s").focus()
        tab.keyboard.press("Enter")
        assert first_column(tab) == ["keywords", "nb", "svm", "prior"], "the cheapest first, undefined last"
        tab.keyboard.press("Enter")
        assert first_column(tab) == ["svm", "nb", "keywords", "prior"], "undefined stays last"
        tab.get_by_role("button", name="classifier", exact=True).click()
        assert first_column(tab) == ["keywords", "nb", "prior", "svm"]


def test_filter_and_part_narrow(browser: "Browser", report: Path) -> None:
    with opened(browser, report) as tab:
        tab.get_by_label("Filter").fill("nb")
        assert first_column(tab) == ["nb"]
        assert tab.locator("#table-count").inner_text() == "1 of 4 runs"
        tab.get_by_label("Filter").fill("")
        before = tab.locator("#runs tbody tr:visible td").first.inner_text()
        tab.get_by_label("Ranking on part").select_option("test")
        assert len(first_column(tab)) == 4
        assert tab.locator("#runs tbody tr:visible td").first.inner_text() != before


def test_papers_open_and_filter_by_area_kind_and_word(browser: "Browser", report: Path) -> None:
    with opened(browser, report) as tab:
        cards = tab.locator("#papers details")
        everything = tab.locator("#paper-count").inner_text()
        paper = cards.first
        paper.locator("summary").focus()
        tab.keyboard.press("Enter")
        assert paper.locator("p.abstract").inner_text() == "We study widgets."
        assert paper.locator("tbody tr").count() == 4
        assert "widget +0.50" in paper.locator("tbody").inner_text()
        for field, value in (("kind", "missed"), ("area", "1"), ("who", "2")):
            tab.locator(f"#{field}").select_option(value)
        narrowed = tab.locator("#paper-count").inner_text()
        assert int(narrowed.split()[0]) < int(everything.split()[0])
        cards.first.locator("summary").click()
        assert "✗ missed" in cards.first.locator("tbody tr").nth(2).locator("td").nth(1).inner_text()
        tab.get_by_label("Search").fill("no such word")
        assert tab.locator("#paper-count").inner_text() == "no paper fits"
        assert cards.count() == 0


def test_more_papers_come_on_demand(browser: "Browser", report: Path) -> None:
    with opened(browser, report) as tab:
        cards = tab.locator("#papers details")
        assert cards.count() == 25
        tab.get_by_role("button", name="Show more").click()
        assert cards.count() > 25


def test_titles_stay_text(browser: "Browser", report: Path) -> None:
    with opened(browser, report) as tab:
        tab.locator("#papers details summary").first.click()
        assert tab.locator("#papers .title").first.inner_text().startswith(SCRIPT)
        assert "abstag report" in tab.title()
        assert tab.locator("main img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_page_fits_phone_and_desk_in_light_and_dark(browser: "Browser", report: Path, width: int, scheme: str) -> None:
    with opened(browser, report, viewport={"width": width, "height": 800}, color_scheme=scheme) as tab:
        tab.locator("#papers details summary").first.click()
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        page, ink = tab.evaluate(
            "(({backgroundColor, color}) => [backgroundColor, color])(getComputedStyle(document.body))"
        )
        light = [sum(map(int, colour[4:-1].split(","))) for colour in (page, ink)]
        assert (light[0] > light[1]) == (scheme == "light")


def test_print_hides_controls_and_shows_papers(browser: "Browser", report: Path) -> None:
    with opened(browser, report) as tab:
        tab.emulate_media(media="print")
        assert not tab.get_by_label("Filter").is_visible()
        assert tab.locator("#papers details").first.is_visible()
        assert len(tab.pdf()) > 10_000
