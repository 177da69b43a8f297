"""What the tests of readers and of bibliographies share."""

import io
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from abstag.readers import open_dump, text_formats
from abstag.records import Record, Reject

A = (
    "We walk through a garden of small gradients and count the petals that fall from each of them. "
    "The count turns out to be even on Sundays, and odd on the days when the gardener sleeps late."
)
B = (
    "A lighthouse sends one bit an hour, and we ask how many ships can be named with so little light. "
    "We prove a bound that is tight when the fog is thin, and test it with three lamps on a table."
)
NAMES = {"graphs": "Learning on graphs", "llm": "Large language models", "lamps": "Lamps & 50% light"}
Items = list[Record | Reject]


def read(kind: str, text: str) -> Items:
    """Read a text and hold its raws against it."""
    stream: Any = io.BufferedReader(io.BytesIO(text.encode()))
    items = list(text_formats()[kind].read(stream, "dump", {}))
    assert not items or "".join(item.raw or "" for item in items) == text
    return items


def facts(items: Iterable[Record | Reject]) -> list[tuple[Any, ...]]:
    """Return of a record line, id, title, abstract, venue, year and keywords; of a reject line, id and reason."""
    return [
        (item.line, item.id, item.title, item.abstract, item.venue, item.year, item.declared)
        if isinstance(item, Record)
        else (item.line, item.id, f"{item.reason}: {item.detail}")
        for item in items
    ]


def written(writer: Any, items: Iterable[Record | Reject], *areas: str) -> str:
    """Write items, each record with the areas."""
    out = io.BytesIO()
    lines = ({"id": item.id or f"n{item.n}", "areas": [*areas] * isinstance(item, Record)} for item in items)
    writer.write(zip(items, lines, strict=True), out, names=NAMES)
    return out.getvalue().decode()


def is_flat(path: Path, entry: str) -> bool:
    """Whether less than 2 MB are needed to read 6 MB of an entry."""
    count = 6_000_000 // len(entry)
    path.write_text(entry * count)
    next(open_dump(str(path)).items)
    tracemalloc.start()
    try:
        assert sum(isinstance(item, Record) for item in open_dump(str(path)).items) == count
        return tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def is_linear(work: Callable[[str], object], text: Callable[[int], str], size: int) -> bool:
    """Whether eight times the text takes less than 24 times the processor time (a square: 64 times)."""

    def seconds(count: int) -> float:
        content, start = text(count), time.process_time()
        work(content)
        return time.process_time() - start

    return any(seconds(8 * size) < 24 * seconds(size) + 0.05 for _ in range(3))
