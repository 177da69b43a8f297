"""Parquet, for data frames and databases: one column a field, and ``score_<area>`` of each area.

The scores are columns, not a struct: they are called as in the other tables, each is read without the others, and
every program that reads Parquet knows plain columns.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, BinaryIO

from abstag.files import storable
from abstag.writers._lines import Tagged, header, values

SUFFIXES = (".parquet",)
NEEDS_RECORDS = False

_ROWS = 8192  # in a row group, the most that is held in memory


def write(tagged: Iterable[Tagged], out: BinaryIO, *, names: Mapping[str, str]) -> None:
    """Write one row a record with zstd; ``areas`` and ``uncertain`` are lists, scores float64, null for rejects."""
    import pyarrow.parquet as pq

    schema = _schema(names)
    rows = (values(line, names) for _, line in tagged)
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        while batch := list(islice(rows, _ROWS)):
            writer.write_table(_table(batch, schema))


def _schema(names: Mapping[str, str]) -> Any:
    import pyarrow as pa

    areas = pa.list_(pa.string())
    types = {"n": pa.int64(), "areas": areas, "uncertain": areas} | {f"score_{area}": pa.float64() for area in names}
    return pa.schema([(name, types.get(name, pa.string())) for name in header(names)])


def _table(rows: list[list[Any]], schema: Any) -> Any:
    import pyarrow as pa

    columns = (
        [storable(value) if isinstance(value, str) else value for value in column] for column in zip(*rows, strict=True)
    )
    return pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema)
