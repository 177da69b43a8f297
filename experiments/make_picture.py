"""Draw README's picture: the top of the demo's report, as Chromium shows it.

usage: python experiments/make_picture.py    (after `make demo`; needs the dev extra and Chromium)
"""

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "runs" / "demo-report" / "report.html"
WIDTH, HEIGHT = 1180, 1160


def main() -> None:
    """Write docs/report.png."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(REPORT.as_uri())
        page.screenshot(path=ROOT / "docs" / "report.png")
        browser.close()


if __name__ == "__main__":
    main()
