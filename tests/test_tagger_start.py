"""Tagging starts quickly: nothing heavy is imported for a linear tagger."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "sklearn",
    "datasets",
    "torch",
    "transformers",
    "numba",
    "hydra",
    "matplotlib",
    "pandas",
    "pyarrow",
    "scipy.optimize",
)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "md"])
def test_tagging_imports_nothing_heavy(suffix: str, dump: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from abstag.cli import main; "
        f"code = main(['--quiet', 'tag', {str(dump)!r}, '-o', {str(tmp_path / 'o')!r} + '.{suffix}']); "
        f"print(code, *sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
