"""Parquet and Arrow, in file and in stream form, as `datasets` and the hub keep them."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, BinaryIO, Literal

from abstag.errors import DataError
from abstag.readers._fields import Place, columns, item
from abstag.records import Record, Reject

NAME = "parquet"
SUFFIXES = (".parquet", ".arrow", ".feather")
BINARY: Literal[True] = True

_ROWS, _HEAD = 1024, 12
_PARQUET, _FILE, _STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"


class _Bounded(io.RawIOBase):
    """A seekable stream of which no more is asked for than there is: damage may say any size."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._size = stream, stream.seek(0, io.SEEK_END)
        stream.seek(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stream.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self.tell())
        return self._stream.read(left if size < 0 else min(size, left))


def recognise(head: bytes) -> bool:
    """Whether this begins as Parquet, an Arrow file, or an Arrow stream (two small numbers after the mark)."""
    return head.startswith((_PARQUET, _FILE)) or (head.startswith(_STREAM) and head[7:8] + head[9:12] == bytes(4))


def read(stream: BinaryIO, file: str, mapping: Mapping[str, str]) -> Iterator[Record | Reject]:
    """Yield one item a row, few rows at a time; a column inside a struct is called ``outer.inner``.

    Raises
    ------
    DataError
        Damaged, no abstract column, or a mapped column is not there.
    """
    import pyarrow as pa

    n = 0
    try:
        schema, parts = _opened(stream)
        found = _columns(_flat(schema.empty_table()).column_names, file, mapping)
        needed = [name for name in schema.names if any(f"{one}.".startswith(f"{name}.") for one in found.values())]
        for part in parts(needed):
            for row in _rows(_flat(part), found):
                n += 1
                place = Place(file, n, None)
                yield Reject(*place, "bad row", str(row)[:200]) if isinstance(row, Exception) else item(row, place)
    except (pa.ArrowException, OSError, ValueError) as error:
        what = f"damaged Parquet or Arrow: {' '.join(str(error).split())[:200]}"
        raise DataError(what, where=file, remedy="fetch or write the file again") from error


def _opened(stream: BinaryIO) -> tuple[Any, Callable[[list[str]], Iterator[Any]]]:
    """Return the schema, and what gives the columns of some names as tables of few rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    bounded: Any = _Bounded(stream)
    magic = bounded.read(_HEAD)
    bounded.seek(0)
    if not recognise(magic):  # Arrow would take any four bytes for the size of what it holds
        raise ValueError("it begins like neither")
    if magic.startswith(_PARQUET):
        file = pq.ParquetFile(bounded)
        return file.schema_arrow, lambda names: _tables(file.iter_batches(_ROWS, columns=names), names)
    if magic.startswith(_FILE):
        arrow = pa.ipc.open_file(bounded)
        return arrow.schema, lambda names: _tables(map(arrow.get_batch, range(arrow.num_record_batches)), names)
    arrow = pa.ipc.open_stream(bounded)
    return arrow.schema, lambda names: _tables(arrow, names)


def _tables(batches: Iterator[Any], names: list[str]) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        table = pa.Table.from_batches([batch])
        chosen = table.select([table.column_names.index(name) for name in names])
        yield from (chosen.slice(start, _ROWS) for start in range(0, len(chosen), _ROWS))


def _flat(table: Any) -> Any:
    import pyarrow as pa

    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table


def _columns(names: Sequence[str], file: str, mapping: Mapping[str, str]) -> dict[str, str]:
    """Return the column of each field of ours; a mapped name stands for one that differs in capitals, too."""
    found = {field: names[number] for field, number in columns(names).items()}
    folded = [name.casefold() for name in names]
    for field, name in mapping.items():
        if name.casefold() not in folded:
            raise _missing(f"--map {field}: there is no column {name!r}", file, names)
        found[field] = name if name in names else names[folded.index(name.casefold())]
    if "abstract" not in found:
        raise _missing("no abstract column; name it with --map abstract=NAME", file, names)
    return found


def _missing(what: str, file: str, names: Sequence[str]) -> DataError:
    return DataError(what, where=file, remedy=f"the columns are: {', '.join(name[:40] for name in names[:20])}")


def _rows(table: Any, found: Mapping[str, str]) -> Iterator[dict[str, object] | Exception]:
    """Yield the fields of each row, an error for one whose text is not UTF-8, or whose values mean nothing."""
    chosen = {field: table.column(table.column_names.index(name)) for field, name in found.items()}
    try:
        for column in chosen.values():
            column.validate(full=True)  # else damaged offsets lead outside of what was read
        values = [column.to_pylist() for column in chosen.values()]
    except (ValueError, OverflowError) as error:
        if len(table) > 1:
            for row in range(len(table)):
                yield from _rows(table.slice(row, 1), found)
        else:
            yield error
        return
    for cells in zip(*values, strict=True):
        yield dict(zip(chosen, map(_plain, cells), strict=True))


def _plain(value: object) -> object:
    """Return bytes and dates as texts."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value) if isinstance(value, date) else value
