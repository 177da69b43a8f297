"""Files and folders that are whole or absent: written under a temporary name, then renamed."""

import hashlib
import json
import math
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeVar

from abstag.errors import ArtifactError, refused

Stream = TypeVar("Stream", TextIO, BinaryIO)


def new_file(path: Path, *, force: bool = False) -> AbstractContextManager[TextIO]:
    """Open a text file (UTF-8) that appears at ``path`` only when the block ends without an error.

    Raises
    ------
    ArtifactError
        When ``path`` exists and ``force`` is false, or the disk refuses the file.
    """
    return _whole(path, lambda part: part.open("w", encoding="utf-8", newline="\n"), force=force)


def new_binary_file(path: Path, *, force: bool = False) -> AbstractContextManager[BinaryIO]:
    """Open a file that appears at ``path`` only when the block ends without an error; raises as `new_file` does."""
    return _whole(path, lambda part: part.open("wb"), force=force)


@contextmanager
def _whole(path: Path, opener: Callable[[Path], Stream], *, force: bool) -> Iterator[Stream]:
    part = _part(path, folder=False, force=force)
    with _clear_errors(path), _removed_on_error(part):
        with opener(part) as stream:
            yield stream
        part.replace(path)


@contextmanager
def new_folder(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Give a folder to fill that appears at ``path`` only when the block ends without an error.

    Raises
    ------
    ArtifactError
        When ``path`` exists and ``force`` is false, or the disk refuses the folder.
    """
    part = _part(path, folder=True, force=force)
    old = part.with_suffix(".old")
    with _clear_errors(path), _removed_on_error(part):
        part.mkdir()
        yield part
        if path.exists():
            path.rename(old)
        try:
            part.rename(path)
        except OSError:
            if old.exists():
                old.rename(path)
            raise
        if old.exists():
            with suppress(OSError):  # the new folder is in place; what cannot be removed stays under its hidden name
                _remove(old)


@contextmanager
def new_files(folder: Path, names: Sequence[str], *, force: bool = False) -> Iterator[dict[str, str]]:
    """Give a mapping to fill with the texts of files that appear together, when the block ends without an error.

    Raises
    ------
    ArtifactError
        At once when a file exists and ``force`` is false, or may not be replaced; later when the disk refuses one.
    """
    parts = {name: _part(folder / name, folder=False, force=force) for name in names}
    texts: dict[str, str] = {}
    yield texts
    with ExitStack() as stack:
        stack.enter_context(_clear_errors(folder))
        for part in parts.values():
            stack.enter_context(_removed_on_error(part))
        for name, part in parts.items():
            part.write_text(texts[name], encoding="utf-8", newline="\n")
        for name, part in parts.items():
            part.replace(folder / name)


def refuse_existing(path: Path, *, force: bool = False) -> None:
    """Raise ArtifactError when `new_file` would: something is there that may not be replaced."""
    _part(path, folder=False, force=force)


def write_json(path: Path, value: Any) -> None:
    """Write JSON with two-space indent; NaN becomes null."""
    with new_file(path, force=True) as stream:
        stream.write(to_json(value, indent=2) + "\n")


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON that UTF-8 can hold: NaN becomes null, half of a surrogate pair "?"."""
    write = partial(json.dumps, indent=indent, ensure_ascii=False, allow_nan=False)
    try:
        text = write(value)
    except (ValueError, TypeError):  # a NaN, or a mapping that is no dict
        text = write(without_nan(value))
    return storable(text)


def storable(text: str) -> str:
    """Return the text with each half of a surrogate pair replaced, as UTF-8 cannot hold it."""
    return text.encode("utf-8", "replace").decode("utf-8")


def read_json(path: Path) -> Any:
    """Read a JSON file; raises ArtifactError when it is missing or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ArtifactError(f"cannot be read: {error}", where=path) from error


def without_nan(value: Any) -> Any:
    """Return JSON-like ``value`` with every NaN and infinity replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return value


def canonical_hash(value: Any) -> str:
    """Return the SHA-256 (hex) of JSON-like ``value``: keys sorted, whole floats as integers (1 == 1.0)."""
    return hashlib.sha256(json.dumps(_canonical(value), sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def is_folder(name: str) -> bool:
    """Whether there is a folder of this name; a name that the system refuses is none."""
    return os.path.isdir(name)  # noqa: PTH112  # `Path.is_dir` raises for names that are too long


def file_hash(path: Path) -> str:
    """Return the SHA-256 (hex) of a file's bytes."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise refused(error, "cannot be read", path) from error


def _canonical(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return value


def _part(path: Path, *, folder: bool, force: bool) -> Path:
    """Return the temporary name beside ``path``, unless that may not be replaced."""
    with _clear_errors(path):
        kind = _kind(path)
        inside = Path.cwd().is_relative_to(os.path.realpath(path))
    if inside:
        raise ArtifactError("holds the folder in which you are", where=path, remedy="choose another name")
    if kind in {"file", "folder"} and not force:
        raise ArtifactError("exists already", where=path, remedy="choose another name, or overwrite it with --force")
    if kind not in {None, "folder" if folder else "file"}:
        raise ArtifactError(f"is a {kind}", where=path, remedy="choose another name")
    return path.with_name(f".{path.name[:50]}.{os.getpid()}.part")


def _kind(path: Path) -> str | None:
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "symlink"}
    with suppress(FileNotFoundError):
        return kinds.get(stat.S_IFMT(path.lstat().st_mode), "device or pipe")
    return None


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise refused(error, "cannot be written", path) from error


@contextmanager
def _removed_on_error(part: Path) -> Iterator[None]:
    """Make the folders above ``part``; on an error remove it, and those of them that are new and empty."""
    made = [folder for folder in part.parents if not folder.exists()]
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        with suppress(OSError):
            _remove(part)
            for folder in made:
                folder.rmdir()
        raise


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
