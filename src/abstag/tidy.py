"""Runs as rows of one tidy table: one for each run and part, with the settings that vary and all metrics as columns."""

from collections.abc import Mapping, Sequence
from typing import Any

from abstag.files import canonical_hash, to_json, without_nan
from abstag.metrics import AREA_METRICS, METRICS
from abstag.results import RunResult, flat

_TOLD = frozenset({"classifier._target_", "name", "seed", "metric_part"})  # by columns of their own
_OF_AREA = ("positives", *AREA_METRICS)


def rows(results: Sequence[RunResult]) -> list[dict[str, Any]]:
    """Return a flat row for each part of each run, and one without a part for a run that failed.

    All rows have the same keys; what a run has not, or what is undefined, is None. Keys with a dot are the
    settings that differ between runs that have them.
    """
    known = [{"decision.calibrate": True} | flat(result.config) for result in results]
    varying = _varying(known)
    areas = list(dict.fromkeys(area for result in results for area in result.areas))
    found = []
    for result, own in zip(results, known, strict=True):
        run = _of_run(result) | {key: column(own.get(key)) for key, column in varying.items()}
        for part in result.parts or (None,):
            values = {} if part is None else result.parts[part]
            found.append(run | {"part": part} | figures(values, areas) | _costs(result))
    return [dict(row) for row in without_nan(found)]


def _varying(known: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings that differ, each with what gives its column one type: numbers, truth values, or texts."""
    found: dict[str, Any] = {}
    for key in sorted({key for own in known for key in own} - _TOLD):
        values = [own[key] for own in known if key in own]
        kinds = {type(value) for value in values if value is not None}
        if len(set(map(canonical_hash, values))) > 1:
            plain = kinds <= {int, float} or kinds in ({bool}, {str})
            found[key] = (lambda value: value) if plain else _as_text
    return found


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else to_json(value)


def figures(values: Mapping[str, Any], areas: Sequence[str]) -> dict[str, Any]:
    """Return the metrics of a part flat, ``f1_A`` and others for each area A; None where a part has none."""
    low, high = values.get("interval") or (None, None)
    of_area = values.get("areas") or {}
    return {
        "n": values.get("n"),
        **{name: values.get(name) for name in METRICS},
        "macro_f1_low": low,
        "macro_f1_high": high,
        **{f"{name}_{area}": of_area.get(area, {}).get(name) for area in areas for name in _OF_AREA},
    }


def _of_run(result: RunResult) -> dict[str, Any]:
    return {
        "run": result.id,
        "status": result.status,
        "experiment": result.experiment,
        "classifier": result.classifier,
        "seed": result.seed,
        "corpus": result.corpus["name"],
        "fingerprint": result.corpus["fingerprint"],
        "metric_part": result.metric_part,
    }


def _costs(result: RunResult) -> dict[str, Any]:
    names = ("training_papers", "fit_seconds", "texts_per_second", "peak_mb", "looks", "started", "command", "error")
    return {name: getattr(result, name) for name in names}
