"""Areas are data: what they are called, by which words they are told, and how venues are spelt."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from abstag.errors import DataError, near
from abstag.records import BoolArray
from abstag.resources import resource

_AREA_ID = re.compile(r"[a-z][a-z0-9_-]*\Z")
_KEYS = ("areas", "name", "venues", "version")
_AREA_KEYS = ("declared", "description", "id", "keywords", "name")


@dataclass(frozen=True, slots=True)
class Area:
    """One research area: ``id`` in files, ``keywords`` for rules, ``declared`` for what authors declare."""

    id: str
    name: str
    description: str = ""
    keywords: tuple[str, ...] = ()
    declared: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """The areas in their fixed order, and the venues' aliases.

    ``digest`` is the hash of the whole content; two taxonomies with one digest tag alike.
    """

    name: str
    version: int
    areas: tuple[Area, ...]
    venues: Mapping[str, tuple[str, ...]]
    source: Mapping[str, Any] = field(repr=False)

    @property
    def ids(self) -> tuple[str, ...]:
        """The area ids in order."""
        return tuple(area.id for area in self.areas)

    @property
    def digest(self) -> str:
        """First 12 hex digits of the hash of the content."""
        text = json.dumps(self.source, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def encode(self, areas: Iterable[str]) -> BoolArray:
        """Return the (k,) bool row of a set of area ids; raises DataError on an unknown one."""
        chosen = set(areas)
        unknown = sorted(chosen - set(self.ids))
        if unknown:
            raise DataError(
                f"unknown area {', '.join(map(repr, unknown))}",
                remedy=f"the taxonomy {self.name!r} has {', '.join(self.ids)}",
            )
        return np.array([area in chosen for area in self.ids], dtype=np.bool_)

    def decode(self, row: Sequence[bool] | BoolArray) -> list[str]:
        """Return the area ids of a (k,) bool row, in order."""
        return [area for area, holds in zip(self.ids, row, strict=True) if holds]

    def declared(self, strings: Iterable[str]) -> list[str]:
        """Return the areas that what authors declared (keywords, primary area, topic) points to, in order."""
        texts = list(strings)
        return [area.id for area in self.areas if any(p.search(text) for p in area.declared for text in texts)]

    def venue(self, raw: str | None) -> str | None:
        """Return the venue's usual name ("ICLR 2024 poster" → "ICLR"), or the raw one when none is known."""
        folded = (raw or "").casefold()
        for venue, spellings in self.venues.items():
            names = (re.escape(name.casefold()) for name in (venue, *spellings))
            if any(re.search(rf"(?<![^\W_]){name}(?![^\W\d_])", folded) for name in names):
                return venue
        return raw or None


def load_taxonomy(path: Path | str | None = None) -> Taxonomy:
    """Read a taxonomy file; None is the one that ships.

    Raises
    ------
    DataError
        When the file is missing, is no YAML, has an unknown key, or an area lacks an id or repeats one.
    """
    import yaml

    file = Path(path) if path is not None else resource("data/taxonomy.yaml")
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the taxonomy: {error}", where=file) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DataError(f"the taxonomy is not YAML: {error}", where=file) from error
    return parse_taxonomy(content, where=str(file))


def parse_taxonomy(content: Any, *, where: str = "taxonomy") -> Taxonomy:
    """Build a taxonomy from parsed YAML or JSON; raises DataError as `load_taxonomy` does."""
    if isinstance(content, dict):
        _refuse_unknown(content, _KEYS, where)
    if not isinstance(content, dict) or not isinstance(content.get("areas"), list) or not content["areas"]:
        raise DataError("a taxonomy needs a list `areas`", where=where)
    areas = tuple(_area(item, f"{where}: area {n}") for n, item in enumerate(content["areas"], start=1))
    ids = [area.id for area in areas]
    if len(set(ids)) < len(ids):
        raise DataError("two areas have one id", where=where, remedy="ids must differ")
    version = content.get("version", 1)
    if not isinstance(version, int):
        raise DataError(f"version must be a whole number, not {version!r}", where=where)
    name = _text(content, "name", "taxonomy", where)
    return Taxonomy(name, version, areas, _venues(content, where), _plain(content))


def _plain(value: Any) -> Any:
    """Return what JSON can hold: keys, dates and NaN as strings, no half of a surrogate pair."""
    if isinstance(value, dict):
        return {_plain(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return value if value is None or number else str(value).encode("utf-8", "replace").decode()


def _refuse_unknown(mapping: Mapping[Any, Any], known: Sequence[str], where: str) -> None:
    unknown = sorted(str(key) for key in mapping if key not in known)
    if unknown:
        raise DataError(f"unknown key {unknown[0]!r}", where=where, remedy=near(unknown[0], known))


def _area(item: Any, where: str) -> Area:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str) or not _AREA_ID.match(item["id"]):
        raise DataError("an area needs an id of lower-case letters, digits, - and _", where=where)
    _refuse_unknown(item, _AREA_KEYS, where)
    return Area(
        id=item["id"],
        name=_text(item, "name", item["id"], where),
        description=_text(item, "description", "", where).strip(),
        keywords=_strings(item, "keywords", where),
        declared=tuple(_pattern(text, where) for text in _strings(item, "declared", where)),
    )


def _venues(content: Mapping[str, Any], where: str) -> dict[str, tuple[str, ...]]:
    venues = content.get("venues") or {}
    if not isinstance(venues, dict):
        raise DataError("`venues` must map a name to a list of spellings", where=where)
    if not all(str(venue).strip() for venue in venues):
        raise DataError("a venue has an empty name", where=where)
    return {str(venue): _strings(venues, venue, where) for venue in venues}


def _text(mapping: Mapping[str, Any], key: str, default: str, where: str) -> str:
    value = mapping.get(key)
    if isinstance(value, list | dict):
        raise DataError(f"`{key}` must be a text", where=where)
    return str(value or default)


def _strings(mapping: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = mapping.get(key) or []
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise DataError(f"`{key}` must be a list of strings", where=where)
    if not all(text.strip() for text in value):
        raise DataError(f"`{key}` holds an empty string", where=where, remedy="take it out")
    return tuple(value)


def _pattern(text: str, where: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise DataError(f"{text!r} is not a regular expression: {error}", where=where) from error
