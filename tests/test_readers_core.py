"""Packed files and archives, encodings, Parquet and Arrow, and what becomes of a file that cannot be read."""

import bz2
import gzip
import io
import json
import lzma
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from abstag.errors import AbstagError, ConfigError, DataError
from abstag.ingest import ingest
from abstag.readers import expand, open_dump
from abstag.records import Record, Reject
from abstag.taxonomy import load_taxonomy
from tests.bibliography import A, B
from tests.conftest import Go

LINES = "".join(json.dumps({"title": f"Paper {n}", "abstract": text}) + "\n" for n, text in enumerate((A, B))).encode()


def zstd(data: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd as module
    else:
        from backports import zstd as module
    return module.compress(data)


PACKERS: Mapping[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd,
}


def write(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def items(path: str, mapping: dict[str, str] | None = None) -> list[Record | Reject]:
    return list(open_dump(path, mapping=mapping).items)


def abstracts(path: str, mapping: dict[str, str] | None = None) -> list[str]:
    return [item.abstract for item in items(path, mapping) if isinstance(item, Record)]


def make_zip(path: Path, files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> str:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return str(path)


class TestPacked:
    @pytest.mark.parametrize("kind", PACKERS)
    def test_one_stream_several_and_a_pipe(self, tmp_path: Path, kind: str) -> None:
        pack = PACKERS[kind]
        assert abstracts(write(tmp_path / "dump", pack(LINES))) == [A, B]
        assert abstracts(write(tmp_path / f"two.jsonl.{kind}", pack(LINES) + pack(LINES))) == [A, B, A, B]
        code = "from abstag.readers import open_dump; print(len(list(open_dump('-').items)))"
        done = subprocess.run([sys.executable, "-c", code], input=pack(LINES), capture_output=True, check=True)
        assert done.stdout.strip() == b"2"

    @pytest.mark.parametrize("kind", PACKERS)
    @pytest.mark.parametrize("damage", ["cut", "flipped"])
    def test_damage_is_one_error(self, tmp_path: Path, kind: str, damage: str) -> None:
        text = "".join(json.dumps({"abstract": f"{A} {n * n * 7919}"}) + "\n" for n in range(4000))
        data = PACKERS[kind](text.encode())
        middle = len(data) // 2
        broken = data[:middle] if damage == "cut" else data[:middle] + bytes(99) + data[middle + 99 :]
        with pytest.raises(DataError, match=r"damaged (gzip|bzip2|xz|zstd): .*; fetch or pack the file again"):
            items(write(tmp_path / "dump", broken))

    def test_packed_twice(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="packed twice"):
            items(write(tmp_path / "dump.gz", gzip.compress(gzip.compress(LINES))))

    @pytest.fixture
    def small_floor(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("abstag.readers._packed._HARMLESS", 1 << 21)

    @pytest.mark.usefixtures("small_floor")
    @pytest.mark.parametrize("kind", PACKERS)
    def test_a_bomb_is_stopped(self, tmp_path: Path, kind: str) -> None:
        dump = open_dump(write(tmp_path / "bomb", PACKERS[kind](LINES * 300 + bytes(5_000_000))))
        with pytest.raises(DataError, match=r"more than 200 times as big .* ABSTAG_MAX_RATIO higher"):
            list(dump.items)

    @pytest.mark.usefixtures("small_floor")
    def test_limits_can_be_set(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write(tmp_path / "big.gz", gzip.compress(LINES + b" \n" * 2_000_000))
        monkeypatch.setenv("ABSTAG_MAX_RATIO", "2000")
        monkeypatch.setenv("ABSTAG_MAX_UNPACKED", "3000000")
        with pytest.raises(DataError, match=r"more than 3000000 bytes; .* ABSTAG_MAX_UNPACKED higher"):
            items(path)
        monkeypatch.setenv("ABSTAG_MAX_UNPACKED", "much")
        with pytest.raises(ConfigError, match="ABSTAG_MAX_UNPACKED: 'much' is no whole number"):
            items(path)
        monkeypatch.delenv("ABSTAG_MAX_UNPACKED")
        assert abstracts(path) == [A, B]


class TestZip:
    def test_members_are_read_as_a_folder_would_be(self, tmp_path: Path) -> None:
        files = {
            "b/two.jsonl.gz": gzip.compress(LINES),
            "a.jsonl": LINES,
            "README.md": b"about",
            ".hidden": b"x",
            "__MACOSX/._a.jsonl": b"x",
            "b/.git/c": b"x",
            "b/": b"",
        }
        path = make_zip(tmp_path / "d.zip", files)
        for named in (path, str(tmp_path), f"{tmp_path}/*.zip"):
            found = expand([named])
            assert found == [f"{path}/a.jsonl", f"{path}/b/two.jsonl.gz"]
        assert [abstracts(file) for file in found] == [[A, B], [A, B]]
        assert {item.file for item in items(found[1])} == {found[1]}

    @pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_methods(self, tmp_path: Path, method: int) -> None:
        (file,) = expand([make_zip(tmp_path / "d.zip", {"a.jsonl": LINES}, method)])
        assert abstracts(file) == [A, B]

    def test_parquet_inside(self, tmp_path: Path) -> None:
        buffer = io.BytesIO()
        pq.write_table(pa.table({"abstract": [A, B]}), buffer)
        (file,) = expand([make_zip(tmp_path / "d.zip", {"a.parquet": buffer.getvalue()})])
        assert abstracts(file) == [A, B]

    def test_what_cannot_be_listed_is_one_error(self, tmp_path: Path) -> None:
        good = Path(make_zip(tmp_path / "good.zip", {"a.jsonl": LINES})).read_bytes()
        locked = bytearray(good)
        locked[6] |= 1
        locked[good.index(b"PK\x01\x02") + 8] |= 1
        bad = {
            "damaged zip: .*; fetch": good[:-30],
            r"the archive is encrypted \(a\.jsonl\); unpack it": bytes(locked),
            "holds no file": Path(make_zip(tmp_path / "empty.zip", {".hidden": b""})).read_bytes(),
            "unknown format .zip archive or document": Path(
                make_zip(tmp_path / "x.docx", {"[Content_Types].xml": b"", "word/document.xml": b""})
            ).read_bytes(),
        }
        for number, (why, content) in enumerate(bad.items()):
            (file,) = expand([write(tmp_path / f"{number}.zip", content)])
            with pytest.raises(DataError, match=why):
                items(file)

    def test_a_zip_inside_a_zip(self, tmp_path: Path) -> None:
        inner = Path(make_zip(tmp_path / "i.zip", {"a.jsonl": LINES})).read_bytes()
        (file,) = expand([make_zip(tmp_path / "o.zip", {"i.zip": inner})])
        with pytest.raises(DataError, match=r"o\.zip/i\.zip: unknown format \(zip archive or document\)"):
            items(file)

    def test_bombs(self, tmp_path: Path) -> None:
        files = {f"{n}.jsonl": bytes(50_000_000) for n in range(2)}
        (file,) = expand([make_zip(tmp_path / "d.zip", files)])
        with pytest.raises(DataError, match="more than 200 times as big as packed"):
            items(file)

    @pytest.mark.slow
    def test_many_members_take_no_square_of_time(self, tmp_path: Path) -> None:
        files = expand([make_zip(tmp_path / "d.zip", {f"{n}.jsonl": LINES for n in range(3000)})])
        start = time.perf_counter()
        assert sum(len(abstracts(file)) for file in files) == 6000
        assert time.perf_counter() - start < 60  # the directory read anew for each: many minutes

    def test_missing_member(self, tmp_path: Path) -> None:
        path = make_zip(tmp_path / "d.zip", {"a.jsonl": LINES})
        with pytest.raises(DataError, match=r"there is no b\.jsonl in"):
            open_dump(f"{path}/b.jsonl")


class TestEncodings:
    def test_windows_1252_is_repaired_and_told(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        text = f'title,abstract\nCafé – “Łódź”,"{A}"\n'.replace("Łódź", "Zoë")
        with caplog.at_level("INFO", logger="abstag"):
            dump = open_dump(write(tmp_path / "a.csv", text.encode("cp1252")))
            (record,) = dump.items
        assert isinstance(record, Record)
        assert record.title == "Café – “Zoë”"
        assert dump.encoding is not None
        assert (dump.encoding.name, dump.encoding.repaired) == ("utf-8", 5)
        assert "a.csv: 5 bytes are not UTF-8, the first in line 2; they were read as Windows-1252" in caplog.text

    def test_good_text_around_bad_bytes_stays(self, tmp_path: Path) -> None:
        lines = [json.dumps({"title": f"Żółć {n}", "abstract": A}, ensure_ascii=False) for n in range(3000)]
        data = "\n".join(lines).encode()
        bad = data.replace("Żółć 2000".encode(), "Żółć ".encode() + b"\xe9\x81 2000")
        dump = open_dump(write(tmp_path / "a.jsonl", bad))
        titles = [item.title for item in dump.items]
        assert titles[2000] == "Żółć é\x81 2000"
        assert [title for n, title in enumerate(titles) if n != 2000] == [f"Żółć {n}" for n in range(3000) if n != 2000]
        assert dump.encoding is not None
        assert dump.encoding.repaired == 2

    @pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
    def test_utf16_without_a_mark(self, tmp_path: Path, encoding: str) -> None:
        dump = open_dump(write(tmp_path / "a.csv", f'title,abstract\nŻółć,"{A}"\n'.encode(encoding)))
        assert [item.title for item in dump.items] == ["Żółć"]
        assert dump.encoding is not None
        assert dump.encoding.name == encoding

    @pytest.mark.parametrize("content", [bytes(300_000), LINES[:10] + bytes(99), bytes(range(256)) * 99])
    def test_nuls_and_noise_are_one_error(self, tmp_path: Path, content: bytes) -> None:
        with pytest.raises(DataError, match=r"begins with NULs alone|unknown format \(binary\)"):
            items(write(tmp_path / "a.txt", content))

    @pytest.mark.slow
    @pytest.mark.parametrize("letter", ["x", "é", "\0"])
    def test_a_line_of_50_mb_is_linear(self, tmp_path: Path, letter: str) -> None:
        start = time.perf_counter()
        found = items(write(tmp_path / "a.jsonl", LINES * 300 + letter.encode("latin-1") * 50_000_000 + b"\n" + LINES))
        assert [item.n for item in found if isinstance(item, Reject)] == [601]
        assert len(found) == 603
        assert time.perf_counter() - start < 60


ROWS = {
    "Title": ["Gardens", "Lamps", "Nothing"],
    "abstract": [A, B, None],
    "paper_id": [7, 8, 9],
    "year": [date(2021, 5, 1), None, date(2020, 1, 1)],
    "keywords": [["graphs", "trees"], [], None],
    "vector": [[0.5] * 8] * 3,
}


def arrow(table: pa.Table, path: Path, kind: str) -> str:
    if kind == "parquet":
        pq.write_table(table, path)
        return str(path)
    maker = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with maker(str(path), table.schema) as sink:
        sink.write_table(table, max_chunksize=1000)
    return str(path)


@pytest.mark.parametrize("kind", ["parquet", "file", "stream"])
class TestParquet:
    @pytest.mark.parametrize("packed", [False, True])
    def test_rows(self, tmp_path: Path, kind: str, *, packed: bool) -> None:
        path = arrow(pa.table(ROWS), tmp_path / "a", kind)
        if packed:
            path = write(tmp_path / "a.gz", gzip.compress(Path(path).read_bytes()))
        dump = open_dump(path)
        first, second, third = dump.items
        assert (dump.format, dump.why, dump.encoding) == ("parquet", "content", None)
        assert isinstance(first, Record)
        assert (first.title, first.abstract, first.id, first.year) == ("Gardens", A, "7", 2021)
        assert first.declared == ("graphs", "trees")
        assert isinstance(second, Record)
        assert (second.year, second.declared) == (None, ())
        assert third == Reject(path, 3, None, "no abstract", "missing or null", "Nothing", "9")

    def test_mapping_and_structs(self, tmp_path: Path, kind: str) -> None:
        content = [{"Text": {"value": A}, "n": 1}, {"Text": {"value": B}, "n": 2}, None]
        path = arrow(pa.table({"content": content, "Label": [["llm"], [], None]}), tmp_path / "a", kind)
        found = items(path, {"abstract": "content.Text.value", "areas": "label"})
        assert [item.areas if isinstance(item, Record) else item.reason for item in found] == [
            ("llm",),
            (),
            "no abstract",
        ]
        with pytest.raises(DataError, match=r"--map title: there is no column 'x'; the columns are: content\.Text\.v"):
            items(path, {"title": "x"})
        with pytest.raises(DataError, match="no abstract column"):
            items(path)

    def test_bytes_and_bad_texts(self, tmp_path: Path, kind: str) -> None:
        bad = pa.Array.from_buffers(
            pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0\4\0\0\0"), pa.py_buffer(b"ok\xff\xfe")]
        )
        path = arrow(pa.table({"abstract": [A.encode(), B.encode()], "title": bad}), tmp_path / "a", kind)
        first, second = items(path)
        assert isinstance(first, Record)
        assert (first.abstract, first.title) == (A, "ok")
        assert isinstance(second, Reject)
        assert (second.n, second.reason) == (2, "bad row")

    def test_damage(self, tmp_path: Path, kind: str) -> None:
        data = Path(arrow(pa.table({"abstract": [f"{A} {n}" for n in range(5000)]}), tmp_path / "a", kind)).read_bytes()
        for cut in (12, len(data) // 2):
            with pytest.raises(AbstagError):
                items(write(tmp_path / "b", data[:cut]))

    @pytest.mark.slow
    def test_memory_stays_flat(self, tmp_path: Path, kind: str) -> None:
        table = pa.table({"abstract": [f"{A} {B} {n}" for n in range(20_000)]})
        path = arrow(table, tmp_path / "a", kind)
        del table
        tracemalloc.start()
        assert sum(isinstance(item, Record) for item in open_dump(path).items) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_damaged_places_of_texts_cost_their_rows(tmp_path: Path, kind: str) -> None:
    places = pa.py_buffer(np.array([0, 2, 9, 4], dtype=np.int32).tobytes())
    titles = pa.Array.from_buffers(pa.string(), 3, [None, places, pa.py_buffer(b"okay")])
    found = items(arrow(pa.table({"abstract": [A, B, A], "title": titles}), tmp_path / "a", kind))
    assert [item.title if isinstance(item, Record) else item.reason for item in found] == ["ok", "bad row", "bad row"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (LINES, "begins like neither"),
        (b"\xff\xff\xff\xff\xff\xff\xff\0\x10\0\0\0" + bytes(99), "Expected to read 16777215 metadata bytes"),
    ],
)
def test_no_memory_for_what_is_not_there(tmp_path: Path, data: bytes, message: str) -> None:
    path = write(tmp_path / "a", data)
    tracemalloc.start()
    with pytest.raises(DataError, match=message):
        list(open_dump(path, format="parquet").items)
    assert tracemalloc.get_traced_memory()[1] < 4_000_000
    tracemalloc.stop()


def test_a_saved_dataset(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    rows = Dataset.from_dict({"title": ["x", "y"], "abstract": [A, B]})
    DatasetDict({"train": rows, "test": rows}).save_to_disk(str(tmp_path / "d"))
    (tmp_path / "d" / "train" / "cache-0a1b.arrow").write_bytes(b"x")
    files = expand([str(tmp_path / "d")])
    assert [Path(file).parent.name for file in files] == ["test", "train"]
    assert [abstracts(file) for file in files] == [[A, B], [A, B]]


class TestUnreadable:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / "dumps"
        folder.mkdir()
        (folder / "a.jsonl").write_bytes(LINES)
        (folder / "b.pdf").write_bytes(b"%PDF-1.7 ...")
        (folder / "c.jsonl.gz").write_bytes(gzip.compress(LINES)[:-4])
        (folder / "d.csv").write_bytes(f'title,abstract\nCafé,"{A}"\n'.encode("latin-1"))
        return folder

    def test_one_reject_of_its_own_in_a_corpus(self, folder: Path, tmp_path: Path) -> None:
        manifest = ingest([str(folder)], tmp_path / "out", taxonomy=load_taxonomy())
        lines = (tmp_path / "out" / "rejects.jsonl").read_text().splitlines()
        found = [json.loads(line) for line in lines]
        assert [(Path(row["file"]).name, row["n"], row["reason"]) for row in found] == [
            ("b.pdf", 1, "unreadable file"),
            ("c.jsonl.gz", 3, "unreadable file"),
        ]
        assert found[0]["detail"] == "unknown format (PDF)"
        assert (manifest["read"], manifest["records"], manifest["rejects"]) == (7, 5, 2)
        told = [[row[key] for key in ("format", "records", "duplicates", "repaired")] for row in manifest["sources"]]
        assert told == [["json", 2, 0, 0], ["unknown", 0, 0, 0], ["json", 2, 2, 0], ["table", 1, 1, 1]]
        assert manifest["sources"][1]["reasons"] == {"unreadable file": 1}
        assert manifest["duplicates"] == 3

    @pytest.mark.parametrize("names", [["a.jsonl", "b.pdf"], ["b.pdf"]])
    def test_one_that_was_named_is_an_error(self, folder: Path, tmp_path: Path, names: list[str]) -> None:
        with pytest.raises(DataError, match=r"unknown format \(PDF\)"):
            ingest([str(folder / name) for name in names], tmp_path / "out", taxonomy=load_taxonomy())

    def test_the_only_one_is_an_error(self, folder: Path, tmp_path: Path) -> None:
        for name in ("a.jsonl", "c.jsonl.gz", "d.csv"):
            (folder / name).unlink()
        with pytest.raises(DataError, match=r"unknown format \(PDF\)"):
            ingest([str(folder)], tmp_path / "out", taxonomy=load_taxonomy())
        (folder / "e.pdf").write_bytes(b"%PDF-1.7 ...")
        with pytest.raises(DataError, match=r"no usable record among 2: 2 unreadable file \(unknown format \(PDF\)\)"):
            ingest([str(folder)], tmp_path / "out", taxonomy=load_taxonomy())

    def test_the_table_and_strict(self, go: Go, folder: Path, tmp_path: Path) -> None:
        ran = go("ingest", folder, "-o", tmp_path / "out", "--strict", code=1)
        assert "2 rejected, and --strict allows none" in ran.err
        rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in ran.out.splitlines() if "|" in line]
        assert rows[0] == ["dump", "format", "taken by", "records", "rejects", "duplicates", "encoding"]
        assert rows[3][1:] == ["unknown", "", "0", "1 (unreadable file 1)", "0", "–"]
        assert rows[5][1:] == ["table", "content and suffix", "1", "0", "1", "utf-8 (1 bytes repaired)"]
        assert (tmp_path / "out" / "manifest.json").exists()
        assert go("ingest", folder / "a.jsonl", "-o", tmp_path / "two", "--strict", code=0).out

    def test_tags(self, go: Go, folder: Path, tmp_path: Path) -> None:
        archive = tmp_path / "dumps.zip"
        make_zip(archive, {path.name: path.read_bytes() for path in folder.iterdir()})
        for out in (tmp_path / "tags.jsonl", tmp_path / "tags.md"):
            ran = go("tag", archive, "-o", out, code=1)
            assert "2 of 4 files could not be read to the end" in ran.err
        lines = [json.loads(line) for line in (tmp_path / "tags.jsonl").read_text().splitlines()]
        assert [(Path(line["file"]).name, line["n"]) for line in lines if line["decision"] == "reject"] == [
            ("b.pdf", 1),
            ("c.jsonl.gz", 3),
        ]
        assert len(lines) == 7
        assert (
            "allows none" in go("tag", folder / "a.jsonl", write(tmp_path / "r.jsonl", b"{}\n"), "--strict", code=1).err
        )
