"""Whole dumps through `abstag tag`: papers a second with one process and with two, and memory by size.

usage: python benchmarks/dumps.py [--papers N] [--rounds R] [-o FILE]

Papers are those of tagging.py. The command runs as a user would give it, start and end included, with one process and
with two in turn; memory is the highest of all its processes together, sampled, for a quarter of the papers and for all.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
from tagging import made_up

from abstag.environment import versions

CHUNK = 10_000


def main() -> None:
    """Print the figures, and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--papers", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", dest="out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder), options.papers, options.rounds)
    print(json.dumps(found, indent=2))
    if options.out:
        options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def measured(folder: Path, papers: int, rounds: int) -> dict[str, Any]:
    quarter, whole = (write(folder / f"{size}.jsonl", size) for size in (papers // 4, papers))
    rates: dict[str, list[float]] = {"1": [], "2": []}
    peaks: dict[str, list[float]] = {"1": [], "2": []}
    for _ in range(rounds):
        for processes, found in rates.items():
            seconds, peak = tag(whole, processes)
            found.append(papers / seconds)
            peaks[processes].append(peak)
    gains = [two / one for one, two in zip(rates["1"], rates["2"], strict=True)]
    return {
        "papers": papers,
        "papers_per_second": rates,
        "efficiency_of_two": median(gains) / 2,
        "peak_mb": {name: max(found) for name, found in peaks.items()},
        "peak_mb_of_a_quarter": tag(quarter, "1")[1],
        "cores": psutil.cpu_count(),
        "load_before": psutil.getloadavg()[0],
        "versions": versions(),
    }


def write(path: Path, size: int) -> Path:
    with path.open("w", encoding="utf-8") as stream:
        for start in range(0, size, CHUNK):
            documents, _ = made_up(min(CHUNK, size - start), np.random.default_rng(start))
            for number, (title, abstract) in enumerate(zip(documents.titles, documents.abstracts, strict=True)):
                record = {"id": str(start + number), "title": title, "abstract": abstract}
                stream.write(json.dumps(record) + "\n")
    return path


def tag(dump: Path, processes: str) -> tuple[float, float]:
    """Tag a dump anew; return seconds and the highest memory of all processes, MiB."""
    out = dump.with_suffix(f".{processes}.tags.jsonl")
    words = [sys.executable, "-m", "abstag", "--quiet", "tag", str(dump), "-o", str(out), "--threads", processes]
    begun = time.perf_counter()
    process, peak = psutil.Popen([*words, "--force"]), 0.0
    while process.poll() is None:
        peak = max(peak, memory(process))
        time.sleep(0.05)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    return time.perf_counter() - begun, peak


def memory(process: psutil.Popen) -> float:
    used = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            used += one.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return used / 2**20


if __name__ == "__main__":
    main()
