"""Writers: one module a format, found by its name; tagged papers in, the bytes of a file out.

A format is a module here with ``SUFFIXES`` (with the dot, lower case), ``NEEDS_RECORDS`` and ``write`` (see `Format`).
A module whose name begins with "_" is none.
"""

import gzip
import pkgutil
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from abstag.errors import ArtifactError, near
from abstag.writers._lines import Tagged

DEFAULT = "jsonl"
_COMPRESSED = frozenset({"parquet", "xlsx"})  # programs that read these do not look behind a .gz
_GZIP = ".gz"
_GZIP_LEVEL = 6


class Format(Protocol):
    """What each format module offers.

    Attributes
    ----------
    NEEDS_RECORDS
        Whether ``write`` wants each record as read; else it may be given None in its place.
    """

    SUFFIXES: tuple[str, ...]
    NEEDS_RECORDS: bool

    @staticmethod
    def write(tagged: Iterable[Tagged], out: BinaryIO, *, names: Mapping[str, str]) -> None:
        """Write the papers in the order given, as they come; ``names`` are the areas' names by id, in order."""


@cache
def formats() -> Mapping[str, Format]:
    """Return the format modules by their name."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    return {name: cast("Format", import_module(f"{__name__}.{name}")) for name in names}


def writer_for(path: Path | str, format: str | None = None) -> Format:  # noqa: A002
    """Return the format of an output file by its suffix; JSON Lines when it has none, as "-" for standard output.

    Parameters
    ----------
    format
        Name of a format, instead of looking at the suffix.

    Raises
    ------
    ArtifactError
        No format has this suffix or name, or ``.gz`` stands behind a format that is compressed in itself.
    """
    if format is not None and format not in formats():
        raise ArtifactError(f"there is no output format {format!r}", where=path, remedy=near(format, formats()))
    name = format or _by_suffix(path)
    if name in _COMPRESSED and _is_packed(path):
        raise ArtifactError(f"{name} is compressed in itself", where=path, remedy=f"leave {_GZIP} out")
    return formats()[name]


def write(
    tagged: Iterable[Tagged],
    out: BinaryIO,
    path: Path | str,
    *,
    names: Mapping[str, str],
    format: str | None = None,  # noqa: A002
) -> None:
    """Write tagged papers to ``out`` in the format that ``path`` or ``format`` says, packed when ``path`` ends in .gz.

    The same papers give the same bytes, whatever the time or the path. ``out`` stays open.

    Parameters
    ----------
    tagged
        Pairs of the record or reject as read (None, unless the format needs it) and its output line, as
        docs/contracts.md says; taken one at a time.
    path
        What the file is to be called; only its suffixes are looked at.
    names
        The areas' names by id, in the taxonomy's order.

    Raises
    ------
    ArtifactError
        As `writer_for`, or the papers do not fit into the format.
    """
    module = writer_for(path, format)
    with gzip.GzipFile("", "wb", _GZIP_LEVEL, out, mtime=0) if _is_packed(path) else nullcontext(out) as stream:
        module.write(tagged, cast("BinaryIO", stream), names=names)


def _by_suffix(path: Path | str) -> str:
    suffix = Path(Path(path).name.lower().removesuffix(_GZIP)).suffix
    known = {own: name for name, module in formats().items() for own in module.SUFFIXES}
    if suffix and suffix not in known:
        listed = ", ".join(sorted(known))
        raise ArtifactError(
            f"no output format has the suffix {suffix!r}",
            where=path,
            remedy=f"known suffixes: {listed}, all but the compressed formats also with {_GZIP}",
        )
    return known.get(suffix, DEFAULT)


def _is_packed(path: Path | str) -> bool:
    return Path(path).name.lower().endswith(_GZIP)
