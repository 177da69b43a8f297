"""Reading dumps, format by format: MB and records per CPU second, and the peak memory of a process that only reads.

usage: python benchmarks/readers.py [--mb N] [--rounds R] [--memory-mb SMALL LARGE] [--only FORMAT,…] [-o FILE]

Dumps are made of invented sentences, in a temporary folder. The clock beside each format is `json.loads` on the same
papers as JSON Lines, read in turn: the ratio says how many times as long a record takes. Memory is that of a child
process for a dump of many small records, and for one several times as large.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from html import escape
from itertools import chain, islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from abstag.environment import versions
from abstag.readers import open_dump
from abstag.records import Reject

Paper = Mapping[str, str]
WHOLE = ("markdown", "XLSX", "Parquet")  # held whole, or made whole: of these a tenth, and no figures of memory
CHILD = r"""
import re, sys
from pathlib import Path
from abstag.readers import open_dump
read = sum(1 for _ in open_dump(sys.argv[1]).items)
status = Path("/proc/self/status").read_text()  # not `getrusage`: a child begins with its parent's peak there
print(read, re.search(r"VmHWM:\s+(\d+)", status)[1])
"""


def main() -> None:
    """Print the figures, and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-mb", type=float, nargs=2, default=(30, 100))
    parser.add_argument("--only", default=",".join(FORMATS))
    parser.add_argument("-o", dest="out", type=Path)
    options = parser.parse_args()
    names = options.only.split(",")
    with TemporaryDirectory() as folder:
        place = Path(folder)
        found = {
            "speed": {name: speed(place, name, options.mb * 1e6, options.rounds) for name in names},
            "memory": {name: memory(place, name, options.memory_mb) for name in names if name not in WHOLE},
            "cores": psutil.cpu_count(),
            "load_before": psutil.getloadavg()[0],
            "versions": versions(),
        }
    print(json.dumps(found, indent=2))
    if options.out:
        options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def speed(folder: Path, name: str, size: float, rounds: int) -> dict[str, Any]:
    """Return sizes, and for each round CPU seconds of reading and of the clock."""
    dump, records = write(folder, name, size / (10 if name in WHOLE else 1), sentences=8)
    lines = [json.dumps(paper).encode() for paper in islice(papers(8), min(records, 5000))]
    seconds, clock = list[float](), list[float]()
    for _ in range(rounds):
        begun = time.process_time()
        read = sum(not isinstance(item, Reject) for item in open_dump(str(dump)).items)
        seconds.append(time.process_time() - begun)
        if read != records:
            raise AssertionError(f"{name}: {read} of {records} records")
        begun = time.process_time()
        for line in lines:
            json.loads(line)
        clock.append((time.process_time() - begun) * records / len(lines))
    megabytes = dump.stat().st_size / 1e6
    dump.unlink()
    return {
        "records": records,
        "mb": megabytes,
        "mb_per_cpu_second": [megabytes / one for one in seconds],
        "records_per_cpu_second": [records / one for one in seconds],
        "ratio_to_json_loads": median(one / base for one, base in zip(seconds, clock, strict=True)),
    }


def memory(folder: Path, name: str, sizes: tuple[float, float]) -> list[dict[str, float]]:
    """Return size, records and peak MB of a process that reads a dump of small records, for each size."""
    found = []
    for size in sizes:
        dump, records = write(folder, name, size * 1e6, sentences=2)
        ran = subprocess.run([sys.executable, "-c", CHILD, str(dump)], capture_output=True, text=True, check=True)
        read, peak = map(int, ran.stdout.split())
        if read != records:
            raise AssertionError(f"{name}: {read} of {records} records")
        found.append({"mb": dump.stat().st_size / 1e6, "records": records, "peak_mb": peak * 1024 / 1e6})
        dump.unlink()
    return found


def papers(sentences: int) -> Iterator[Paper]:
    """Yield papers without end, each with so many sentences of invented words."""
    drawn = random.Random(sentences)
    subjects, verbs = ("gardens", "lamps", "ships", "towels", "clocks"), ("count", "fold", "name", "light", "measure")
    pool = [
        f"We {drawn.choice(verbs)} the {drawn.choice(subjects)} of {number} {drawn.choice(subjects)}, "
        f"and show that the {drawn.choice(subjects)} stay even when all of the {drawn.choice(subjects)} are wet."
        for number in range(500)
    ]
    number = 0
    while True:
        number += 1
        abstract = " ".join(drawn.choices(pool, k=sentences))
        title = f"On {subjects[number % 5]} and {verbs[number % 3]}s, part {number}"
        yield {"id": f"p{number}", "title": title, "abstract": abstract, "venue": "ICML", "year": "2024"}


def write(folder: Path, name: str, size: float, *, sentences: int) -> tuple[Path, int]:
    """Write a dump of about so many bytes; return where it is, and how many records it has."""
    suffix, text = FORMATS[name]
    path, written, records = folder / f"dump{suffix}", 0, 0
    if not isinstance(text, Template):
        held = list(islice(papers(sentences), int(size / (100 * sentences + 100))))
        text(held, path)
        return path, len(held)
    with path.open("w", encoding="utf-8") as stream:
        stream.write(text.before)
        for paper in papers(sentences):
            entry = (text.between if records else "") + text.entry(paper)
            stream.write(entry)
            written, records = written + len(entry), records + 1
            if written > size:
                break
        stream.write(text.after)
    return path, records


class Template:
    """How papers become a text: what stands before all, between two and after all, and an entry."""

    def __init__(self, entry: Callable[[Paper], str], before: str = "", between: str = "", after: str = "") -> None:
        self.entry, self.before, self.between, self.after = entry, before, between, after


def filled(entry: str) -> Callable[[Paper], str]:
    return entry.format_map


def pubmed(paper: Paper) -> str:
    safe = {name: escape(value) for name, value in paper.items()}
    return (
        "<PubmedArticle><MedlineCitation><PMID>{id}</PMID><Article><Journal><Title>{venue}</Title><JournalIssue>"
        "<PubDate><Year>{year}</Year></PubDate></JournalIssue></Journal><ArticleTitle>{title}</ArticleTitle><Abstract>"
        "<AbstractText>{abstract}</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle>\n"
    ).format_map(safe)


def workbook(held: list[Paper], path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in chain([list(held[0])], (list(paper.values()) for paper in held)):
        sheet.append(row)
    book.save(path)


def columns(held: list[Paper], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(held), path, row_group_size=10_000)


FORMATS: dict[str, tuple[str, Template | Callable[[list[Paper], Path], None]]] = {
    "JSON Lines": (".jsonl", Template(lambda paper: json.dumps(paper) + "\n")),
    "JSON array": (".json", Template(json.dumps, "[\n", ",\n", "\n]\n")),
    "CSV": (".csv", Template(filled('{id},"{title}","{abstract}",{venue},{year}\n'), "id,title,abstract,venue,year\n")),
    "RIS": (
        ".ris",
        Template(
            filled("TY  - CONF\nID  - {id}\nTI  - {title}\nAB  - {abstract}\nT2  - {venue}\nPY  - {year}\nER  - \n\n")
        ),
    ),
    "BibTeX": (
        ".bib",
        Template(
            filled(
                "@inproceedings{{{id},\n  title = {{{title}}},\n  abstract = {{{abstract}}},\n"
                "  booktitle = {{{venue}}},\n  year = {year}\n}}\n\n"
            )
        ),
    ),
    "XML (PubMed)": (
        ".xml",
        Template(pubmed, "<?xml version='1.0'?>\n<PubmedArticleSet>\n", "", "</PubmedArticleSet>\n"),
    ),
    "Web of Science": (
        ".ciw",
        Template(
            filled("PT J\nTI {title}\nSO {venue}\nAB {abstract}\nPY {year}\nUT {id}\nER\n\n"),
            "FN Clarivate Analytics Web of Science\nVR 1.0\n",
            "",
            "EF\n",
        ),
    ),
    "plain": (".txt", Template(filled("{abstract}\n\n"), "ICML 2024 Papers\n\n")),
    "markdown": (".md", Template(filled("## {title}\n\n**Abstract:** {abstract}\n\n"), "# ICML 2024\n\n")),
    "Parquet": (".parquet", columns),
    "XLSX": (".xlsx", workbook),
}

if __name__ == "__main__":
    main()
