"""The tidy table of runs (see `abstag.tidy`) as CSV, Parquet, JSON, Markdown or LaTeX."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from abstag.files import to_json
from abstag.report.table import csv_table, latex_tabular, markdown, number

_SHOWN = (
    *("run", "classifier", "seed", "corpus", "part", "n", "macro_f1", "macro_f1_low", "macro_f1_high", "micro_f1"),
    *("macro_average_precision", "ece", "automation_95", "fit_seconds", "peak_mb", "error"),
)
Rows = Sequence[Mapping[str, Any]]


def _csv(rows: Rows) -> bytes:
    return csv_table(rows).encode()


def _parquet(rows: Rows) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), out, compression="zstd")
    return out.getvalue()


def _json(rows: Rows) -> bytes:
    return (to_json(rows, indent=2) + "\n").encode()


def _markdown(rows: Rows) -> bytes:
    return (markdown(*_printed(rows)) + "\n").encode()


def _latex(rows: Rows) -> bytes:
    return ("% needs \\usepackage{booktabs}\n" + latex_tabular(*_printed(rows)) + "\n").encode()


def _printed(rows: Rows) -> tuple[list[str], list[list[str]]]:
    """Return heads and cells of the columns that people read, without those that are empty throughout."""
    shown = [name for name in rows[0] if name in _SHOWN or "." in name]
    names = [name for name in shown if any(row[name] is not None for row in rows)]
    return names, [[_text(name, row[name]) for name in names] for row in rows]


def _text(name: str, value: Any) -> str:
    if isinstance(value, float) and "." in name:
        return f"{value:g}"
    return number(value) if value is None or isinstance(value, float) else str(value)


FORMATS: Mapping[str, Callable[[Rows], bytes]] = {
    "csv": _csv,
    "parquet": _parquet,
    "json": _json,
    "markdown": _markdown,
    "latex": _latex,
}
