"""Do the statistics hold what they say? False alarms of the test, and coverage of the intervals, in simulations.

usage: python benchmarks/coverage.py [--trials N] [--draws D] [-o FILE]

In each trial papers are drawn anew, two systems tag them with known chances of a hit and of a false tag, half of their
errors in common, and everything that `abstag compare` says of them is computed. The truth follows from the chances.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstag import metrics, statistics
from abstag.environment import versions

AREAS = 4


class Setting(NamedTuple):
    """What is simulated.

    Attributes
    ----------
    papers, positives
        How many papers, and of them in each area on average.
    recall, precision
        Of each of the two systems.
    copies
        Every paper stands so many times, as one duplicate group.
    """

    papers: int
    positives: int
    recall: tuple[float, float] = (0.9, 0.9)
    precision: tuple[float, float] = (0.9, 0.9)
    copies: int = 1


SETTINGS = {
    "alike, 100 positives an area": Setting(500, 100),
    "alike, 200 positives an area": Setting(800, 200, (0.85, 0.85), (0.8, 0.8)),
    "alike, 30 positives an area": Setting(400, 30),
    "alike, 100 positives an area, every paper twice": Setting(500, 100, copies=2),
    "one better, 100 positives an area": Setting(500, 100, (0.9, 0.85), (0.9, 0.85)),
}


def simulate(setting: Setting, *, trials: int, draws: int, seed: int = 0) -> dict[str, float]:
    """Return shares of the trials: false alarms at 0.05 (found differences where systems differ), and coverage."""
    rng = np.random.default_rng(seed)
    f1 = [2 * r * p / (r + p) for r, p in zip(setting.recall, setting.precision, strict=True)]
    groups = np.repeat(np.arange(setting.papers), setting.copies)
    found: dict[str, list[bool]] = {}

    def note(name: str, value: bool) -> None:  # noqa: FBT001
        found.setdefault(name, []).append(value)

    for trial in range(trials):
        first, second = (np.repeat(counted, setting.copies, axis=0) for counted in _two_systems(setting, rng))
        tested = statistics.randomization_test(first, second, groups, _measures, draws=draws, seed=trial)
        a, b = statistics.bootstrap([first, second], groups, _measures, draws=draws, seed=trial)
        note("p below 0.05, macro-F1", bool(tested[0] < 0.05))
        note("p below 0.05, F1 of an area", bool(tested[1] < 0.05))
        note("interval of macro-F1", _covers(statistics.interval(a[:, 0]), f1[0]))
        note("interval of the difference of macro-F1", _covers(statistics.interval(a[:, 0] - b[:, 0]), f1[0] - f1[1]))
        note("interval of an area's F1", _covers(statistics.interval(a[:, 1]), f1[0]))
        hits, wrong, missed = first[:: setting.copies, 0].sum(axis=0)
        note("posterior interval of an area's F1", _covers(statistics.f1_posterior(hits, wrong + missed), f1[0]))
    return {name: float(np.mean(values)) for name, values in found.items()}


def _two_systems(setting: Setting, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    shape, prevalence = (setting.papers, AREAS), setting.positives / setting.papers
    gold = rng.random(shape) < prevalence
    shared, own = rng.random(shape), rng.random((2, *shape))
    common = rng.random(shape) < 0.5
    systems = []
    for number, (recall, precision) in enumerate(zip(setting.recall, setting.precision, strict=True)):
        false = recall * prevalence * (1 - precision) / precision / (1 - prevalence)
        luck = np.where(common, shared, own[number])
        tags = np.where(gold, luck < recall, luck < false)
        scored = metrics.Scored(gold, np.ones(shape, dtype=np.bool_), tags.astype(np.float64), tags, luck[:, 0])
        systems.append(metrics.counts(scored))
    return systems


def _measures(counted: NDArray[Any]) -> NDArray[np.float64]:
    return np.stack([metrics.macro_f1(counted), metrics.f1(counted)[..., 0]], axis=-1)


def _covers(interval: statistics.Interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("-o", dest="out", type=Path)
    options = parser.parse_args()
    shares = {
        name: setting._asdict() | {"shares": simulate(setting, trials=options.trials, draws=options.draws)}
        for name, setting in SETTINGS.items()
    }
    result = {"trials": options.trials, "draws": options.draws, "versions": versions(), "settings": shares}
    text = json.dumps(result, indent=2) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
