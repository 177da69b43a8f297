"""Code blocks of README and docs run, in order, in an empty folder; figures shown come from committed results."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if BLOCK.search(path.read_text())]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run(page: Path, tmp_path: Path) -> None:
    """All blocks of a page run as one script, so that a later block may use what an earlier one made."""
    script = ["set -euo pipefail"]
    python: list[str] = []
    for language, code in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            python.append(code)
            name = tmp_path / f"block{len(python)}.py"
            name.write_text("\n".join(python), encoding="utf-8")
            script.append(f"python {name.name}")
        else:
            script.append(code)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("experiments/*/*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_verb_and_changelog_version_is_documented() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for verb in ("fetch", "ingest", "run", "runs", "compare", "tag", "eval"):
        assert f"abstag {verb}" in readme
