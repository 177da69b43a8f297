"""What the writers of bibliographies share: original entries changed, entries of other formats made anew."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO

from abstag.files import storable
from abstag.records import Record, Reject

DOI = re.compile(r"10\.\d{4,9}/\S+")


def write_entries(
    tagged: Iterable[tuple[Record | Reject, Mapping[str, Any]]],
    out: BinaryIO,
    names: Mapping[str, str],
    change: Callable[[str, Sequence[str]], str | None],
    make: Callable[[Record, str, Sequence[str]], str],
) -> None:
    """Write one text a record or reject, as UTF-8 without changes of line ends.

    Parameters
    ----------
    change
        Returns an original text with names of areas added; None if it is of another format.
    make
        Returns a new entry, with a line end, for a record, its id in the output, and names of areas.
    """
    file, ended = None, True
    for item, line in tagged:
        areas = [names[area] for area in line["areas"]]
        text = None if item.raw is None else change(item.raw, areas)
        is_new = text is None
        if text is None:
            if isinstance(item, Reject):
                continue
            text = make(item, line["id"], areas)
        if file is not None and (is_new or item.file != file):
            out.write(b"\n" * (is_new + (not ended)))
        out.write(storable(text).encode())
        file, ended = item.file, text.endswith(("\n", "\r"))


def one_line(text: str | None) -> str:
    """Return a text without line ends and doubled white space."""
    return " ".join((text or "").split())
