"""JSON Lines: the output lines as docs/contracts.md says, one a record."""

from collections.abc import Iterable, Mapping
from typing import BinaryIO

from abstag.files import to_json
from abstag.writers._lines import Tagged

SUFFIXES = (".jsonl", ".ndjson")
NEEDS_RECORDS = False


def write(tagged: Iterable[Tagged], out: BinaryIO, *, names: Mapping[str, str]) -> None:  # noqa: ARG001
    """Write one line a record in UTF-8; NaN is null, half of a surrogate pair "?"."""
    out.writelines(f"{to_json(line)}\n".encode() for _, line in tagged)
