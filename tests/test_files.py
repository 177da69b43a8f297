"""Files and folders are whole or absent, whatever goes wrong in between."""

import errno
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abstag.errors import ArtifactError
from abstag.files import canonical_hash, file_hash, new_file, new_files, new_folder, read_json, without_nan, write_json

ROOM = "make room, or choose another place"


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def fill(folder: Path, text: str) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "file").write_text(text, encoding="utf-8")


class Stop(Exception):  # noqa: N818
    """What a test raises inside a block."""


def break_file(path: Path, error: type[BaseException] | OSError, *, force: bool = False) -> None:
    with new_file(path, force=force) as stream:
        stream.write("half")
        raise error


def break_folder(path: Path, error: type[BaseException] | OSError, *, force: bool = False) -> None:
    with new_folder(path, force=force) as folder:
        fill(folder, "half")
        raise error


def make_folder(path: Path, text: str, *, force: bool = False) -> None:
    with new_folder(path, force=force) as folder:
        fill(folder, text)


def test_a_file_appears_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "new" / "deep" / "out.txt"
    with new_file(target) as stream:
        stream.write("Zürich\nβ\n")
        assert not target.exists()
    assert target.read_bytes() == "Zürich\nβ\n".encode()
    assert below(target.parent) == ["out.txt"]


def test_a_folder_appears_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "new" / "deep"
    with new_folder(target) as folder:
        fill(folder, "a")
        assert not target.exists()
    assert below(tmp_path / "new") == ["deep", "deep/inner", "deep/inner/file"]


@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("force", [False, True])
def test_an_error_inside_leaves_no_file(tmp_path: Path, error: type[BaseException], force: bool) -> None:
    with pytest.raises(error):
        break_file(tmp_path / "out.txt", error, force=force)
    assert below(tmp_path) == []


@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt, SystemExit])
def test_an_error_inside_leaves_no_folder(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error):
        break_folder(tmp_path / "out", error)
    assert below(tmp_path) == []


def test_an_error_inside_keeps_what_was_there_under_force(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "kept").touch()
    with pytest.raises(Stop):
        break_file(tmp_path / "file", Stop, force=True)
    with pytest.raises(Stop):
        break_folder(tmp_path / "folder", Stop, force=True)
    assert below(tmp_path) == ["file", "folder", "folder/kept"]
    assert (tmp_path / "file").read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("make", [new_file, new_folder])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_exists_is_refused_before_the_block_runs(tmp_path: Path, make: Callable[[Path], Any], kind: str) -> None:
    target = tmp_path / "out"
    target.touch() if kind == "file" else target.mkdir()
    ran = False
    with pytest.raises(ArtifactError) as error, make(target):
        ran = True
    assert not ran
    assert str(error.value) == f"{target}: exists already; choose another name, or overwrite it with --force"
    assert below(tmp_path) == ["out"]


def test_force_replaces_a_file(tmp_path: Path) -> None:
    for text in ("old and long", "new"):
        with new_file(tmp_path / "out", force=True) as stream:
            stream.write(text)
    assert (tmp_path / "out").read_text(encoding="utf-8") == "new"
    assert below(tmp_path) == ["out"]


def test_force_replaces_a_folder_by_a_folder(tmp_path: Path) -> None:
    target = tmp_path / "out"
    (target / "stale").mkdir(parents=True)
    (target / "stale" / "file").touch()
    with new_folder(target, force=True) as folder:
        fill(folder, "new")
    assert below(tmp_path) == ["out", "out/inner", "out/inner/file"]


@pytest.mark.parametrize("method", ["open", "replace", "mkdir"])
def test_a_full_disk_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Path, method, full)
        with pytest.raises(ArtifactError) as error, new_file(tmp_path / "out") as stream:
            stream.write("half")
    assert str(error.value) == f"{tmp_path / 'out'}: cannot be written: No space left on device; {ROOM}"
    assert below(tmp_path) == []


@pytest.mark.parametrize("method", ["rename", "mkdir"])
def test_a_full_disk_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Path, method, full)
        with pytest.raises(ArtifactError) as error, new_folder(tmp_path / "out") as folder:
            (folder / "file").touch()
    assert str(error.value) == f"{tmp_path / 'out'}: cannot be written: No space left on device; {ROOM}"
    assert below(tmp_path) == []


def test_a_disk_that_fills_while_writing_leaves_nothing(tmp_path: Path) -> None:
    for broken in (break_file, break_folder):
        with pytest.raises(ArtifactError, match="out: cannot be written: No space left"):
            broken(tmp_path / "out", OSError(errno.ENOSPC, "No space left on device"))
    assert below(tmp_path) == []


def test_a_refused_rename_keeps_the_old_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    fill(tmp_path / "out", "old")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", full)
        with pytest.raises(ArtifactError):
            make_folder(tmp_path / "out", "new", force=True)
    assert below(tmp_path) == ["out", "out/inner", "out/inner/file"]
    assert (tmp_path / "out" / "inner" / "file").read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("name", [".", "", ".."])
@pytest.mark.parametrize("make", [new_file, new_folder])
def test_the_folder_in_which_one_stands_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, make: Callable[..., Any]
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "kept").touch()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(ArtifactError), make(Path(name), force=True):
        pass
    assert below(tmp_path) == ["here", "here/kept"]


def test_json_goes_out_and_comes_back(tmp_path: Path) -> None:
    value = {"b": [1, float("nan"), (2.5, float("-inf"))], "a": {"ü": None, "n": np.float64("nan")}, "t": True}
    write_json(tmp_path / "x.json", value)
    assert read_json(tmp_path / "x.json") == {"b": [1, None, [2.5, None]], "a": {"ü": None, "n": None}, "t": True}
    text = (tmp_path / "x.json").read_text(encoding="utf-8")
    assert text.startswith('{\n  "b": [')
    assert "ü" in text
    assert text.endswith("}\n")
    assert value["b"] != [1, None, (2.5, None)]  # the value given is left alone


@pytest.mark.parametrize("content", [b"", b"{", b"{'a': 1}", b"\xff\xfe{}", b"[" * 100_000])
def test_damaged_json_is_one_error_that_names_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(ArtifactError, match=r"x\.json: cannot be read: "):
        read_json(tmp_path / "x.json")


def test_a_missing_file_is_one_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"none\.json: cannot be read: "):
        read_json(tmp_path / "none.json")
    with pytest.raises(ArtifactError) as error:
        file_hash(tmp_path / "none")
    missing = "cannot be read: No such file or directory; check the path and its permissions"
    assert str(error.value) == f"{tmp_path / 'none'}: {missing}"
    with pytest.raises(ArtifactError, match="cannot be read"):
        file_hash(tmp_path)


def test_file_hash_is_sha256_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\x00\xffabc")
    assert file_hash(tmp_path / "x") == hashlib.sha256(b"\x00\xffabc").hexdigest()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_canonical_hash_joins_equal_numbers_and_orders_keys() -> None:
    assert canonical_hash({"b": 1, "a": [2.0]}) == hashlib.sha256(b'{"a": [2], "b": 1}').hexdigest()
    assert canonical_hash(1) == canonical_hash(1.0) == canonical_hash(np.float64(1))
    assert canonical_hash(-0.0) == canonical_hash(0)
    assert canonical_hash((1, 2)) == canonical_hash([1.0, 2])
    assert canonical_hash({"ü": 1}) == canonical_hash({"ü": 1.0})


def test_canonical_hash_tells_apart() -> None:
    values: list[Any] = [1, "1", True, None, 1.5, [1], {"1": 1}, {"1": [1]}, [], {}, float("nan"), float("inf"), 0]
    assert len({canonical_hash(value) for value in values}) == len(values)
    assert canonical_hash([1, 2]) != canonical_hash([2, 1])


@given(JSON)
def test_canonical_hash_survives_json(value: Any) -> None:
    assert canonical_hash(json.loads(json.dumps(value))) == canonical_hash(value)


@given(st.dictionaries(st.text(), JSON))
def test_canonical_hash_ignores_the_order_of_keys(value: dict[str, Any]) -> None:
    assert canonical_hash(dict(reversed(value.items()))) == canonical_hash(value)


@given(JSON)
def test_without_nan_leaves_finite_values(value: Any) -> None:
    json.dumps(without_nan(value), allow_nan=False)
    if "Infinity" not in json.dumps(value):
        assert without_nan(value) == value


def test_a_folder_never_replaces_a_file_nor_a_file_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "kept").touch()
    with pytest.raises(ArtifactError, match="is a file"), new_folder(tmp_path / "file", force=True):
        pass
    with pytest.raises(ArtifactError, match="is a folder"), new_file(tmp_path / "folder", force=True):
        pass
    assert (tmp_path / "file").read_text(encoding="utf-8") == "kept"
    assert below(tmp_path) == ["file", "folder", "folder/kept"]


@pytest.mark.parametrize("make", [new_file, new_folder])
@pytest.mark.parametrize("kind", ["symlink", "dangling symlink", "pipe"])
@pytest.mark.parametrize("force", [False, True])
def test_what_is_neither_file_nor_folder_is_never_replaced(
    tmp_path: Path, make: Callable[..., Any], kind: str, force: bool
) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    if kind == "pipe":
        os.mkfifo(out)
    else:
        out.symlink_to(other)
    if kind == "symlink":
        other.mkdir() if make is new_folder else other.touch()
    before = below(tmp_path)
    message = f"out: is a {'device or pipe' if kind == 'pipe' else 'symlink'}; choose another name"
    with pytest.raises(ArtifactError, match=message), make(out, force=force):
        pass
    assert below(tmp_path) == before
    assert out.is_fifo() or out.is_symlink()


@pytest.mark.parametrize("broken", [break_file, break_folder])
def test_folders_made_for_the_output_go_with_it(tmp_path: Path, broken: Callable[..., None]) -> None:
    (tmp_path / "old").mkdir()
    with pytest.raises(Stop):
        broken(tmp_path / "old" / "new" / "deep" / "out", Stop)
    assert below(tmp_path) == ["old"]


@pytest.mark.parametrize("make", [new_file, new_folder])
def test_a_name_of_full_length_is_written_and_a_longer_one_refused_before_the_block_runs(
    tmp_path: Path, make: Callable[..., Any]
) -> None:
    with make(tmp_path / ("x" * 255)):
        pass
    assert below(tmp_path) == ["x" * 255]
    with pytest.raises(ArtifactError, match="File name too long; choose a shorter name"), make(tmp_path / ("x" * 256)):
        pytest.fail("the block ran")


def test_a_file_where_a_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ArtifactError, match="out: cannot be written: Not a directory; a file is where"):
        break_file(tmp_path / "file" / "out", Stop)


def test_new_files_appear_together_or_not_at_all(tmp_path: Path) -> None:
    with new_files(tmp_path / "made", ("a", "b")) as texts:
        texts.update(a="one", b="two")
        assert not (tmp_path / "made").exists()
    assert {path.name: path.read_text() for path in (tmp_path / "made").iterdir()} == {"a": "one", "b": "two"}
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "b").write_text("mine")
    with pytest.raises(ArtifactError, match="exists already"), new_files(tmp_path / "half", ("a", "b")) as texts:
        pytest.fail("found out too late")
    (tmp_path / "half" / "c").symlink_to(tmp_path / "half" / "b")
    with pytest.raises(ArtifactError, match="c"), new_files(tmp_path / "half", ("b", "c"), force=True) as texts:
        pytest.fail("found out too late")
    with pytest.raises(KeyError), new_files(tmp_path / "none", ("a", "b")) as texts:
        texts["a"] = "one"
    assert not (tmp_path / "none").exists()
    assert {path.name for path in (tmp_path / "half").iterdir()} == {"b", "c"}
    assert (tmp_path / "half" / "b").read_text() == "mine"
