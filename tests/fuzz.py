"""Fuzzing of one family led by what code runs, by hand: `python -m tests.fuzz FAMILY [FOLDER] [-max_total_time=600 …]`.

It needs atheris (`pip install atheris`, Linux), whose options, those of libFuzzer, follow: ``-rss_limit_mb`` bounds
memory. FOLDER keeps the inputs that reached new code, so that a later run goes on from them. An input that breaks
something is written to ``crash-…``.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris

with atheris.instrument_imports(include=["abstag"]):
    from tests.fuzzing import FAMILIES, check, seeds


def main() -> None:
    """Fuzz the family that the command line names."""
    program, family, *options = sys.argv
    if family not in FAMILIES:
        raise SystemExit(f"no family {family!r}; there are {', '.join(FAMILIES)}")
    with TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds(family)):
            check(family, seed)
            (Path(folder) / str(number)).write_bytes(seed)
        atheris.Setup([program, *options, folder], lambda data: check(family, data, once=True))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
