"""The dumps below `tests/dumps/FAMILY/`: each oddity that people's dumps have, with exactly what is read from it.

``NAME.expected.json`` beside the dump ``NAME`` (a file or a folder) holds ``format``, ``records`` and ``rejects``. Of a
record it tells ``n`` and whatever else is there of line, id, title, abstract (both cleaned), venue, year and declared;
of a reject ``n``, line and reason, and where a dump holds several files ``file``, its name, of both.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from abstag.ingest import CleanRecord, cleaned
from abstag.readers import expand, open_dump
from abstag.records import Record, Reject

_DUMPS = Path(__file__).parent / "dumps"
_ENDING = ".expected.json"
_EXPECTED = sorted(_DUMPS.glob(f"*/*{_ENDING}"))


@pytest.mark.parametrize("path", _EXPECTED, ids=lambda path: str(path.relative_to(_DUMPS)).removesuffix(_ENDING))
def test_each_dump_gives_exactly_its_records_and_rejects(path: Path) -> None:
    files = expand([str(path).removesuffix(_ENDING)])
    dumps = [open_dump(file) for file in files]
    told = [_told(item, several=len(files) > 1) for dump in dumps for item in dump.items]
    assert {
        "format": sorted({dump.format for dump in dumps}),
        "records": [item for item in told if "reason" not in item],
        "rejects": [item for item in told if "reason" in item],
    } == json.loads(path.read_text(encoding="utf-8"))


def test_each_dump_has_its_expectation() -> None:
    dumps = {path for path in _DUMPS.glob("*/*") if not path.name.endswith(_ENDING)}
    assert dumps == {Path(str(path).removesuffix(_ENDING)) for path in _EXPECTED}
    assert dumps


def _told(item: Record | Reject, *, several: bool) -> dict[str, Any]:
    found = cleaned(item) if isinstance(item, Record) else item
    file = Path(item.file).name if several else None
    if isinstance(found, CleanRecord):
        raw = found.raw
        fields: dict[str, Any] = {"id": raw.id, "title": found.title, "abstract": found.abstract, "venue": raw.venue}
        fields |= {"year": raw.year, "declared": list(raw.declared)}
    else:
        fields = {"reason": found.reason}
    told = {"file": file, "n": item.n, "line": item.line, **fields}
    return {name: value for name, value in told.items() if value not in (None, "", [])}
