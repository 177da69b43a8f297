"""How right papers are that need no review, by the tagger's own line and by that of the dump.

usage: python experiments/ship/review_line.py RUN_FOLDER > experiments/ship/review-line.json

Each test part is taken for a dump, and so are samples of 20 papers of it. Probabilities are those of the run, not
adjusted to the dump.
"""

import json
import sys
from pathlib import Path

import numpy as np

from abstag.decision import RIGHT, review_line
from abstag.records import BoolArray
from abstag.results import ScoreTable
from abstag.store import read_scores

SIZE, DRAWS = 20, 1000


def main() -> None:
    """Write the shares decided, and of these the shares with all areas right."""
    folder = Path(sys.argv[1])
    table = read_scores(folder)
    own = json.loads((folder / "result.json").read_text(encoding="utf-8"))["decision"]["review"][0]
    print(json.dumps({name: told(table, rows, own) for name, rows in parts(table).items()}, indent=2))


def parts(table: ScoreTable) -> dict[str, BoolArray]:
    """Return the rows of each test part, and of the plain random sample over all parts."""
    part, venue = np.array(table.parts), np.array(table.venues)
    found = {f"{v.lower()}-{p}": (part == p) & (venue == v) for p in ("test", "hard") for v in ("ICLR", "arXiv")}
    return {**found, "random": np.array(table.random, dtype=np.bool_)}


def told(table: ScoreTable, rows: BoolArray, own: float) -> dict[str, object]:
    """Return what two lines decide of a dump, and the second of samples of it."""
    tags, gold, known = (array[rows] for array in (table.tags, table.gold, table.known))
    exact = ((tags == gold) | ~known).all(axis=1)
    right = np.where(tags, table.scores[rows], 1 - table.scores[rows]).prod(axis=1)
    rng, samples = np.random.default_rng(0), []
    for _ in range(DRAWS):
        chosen = rng.choice(len(exact), SIZE, replace=False)
        samples.append(chosen[right[chosen] >= review_line(right[chosen], right[chosen], RIGHT)])
    decided = np.concatenate(samples)
    return {
        "papers": len(exact),
        "own_line": shares(table.confidence[rows] >= own, exact),
        "line_of_the_dump": shares(right >= review_line(right, right, RIGHT), exact),
        f"line_of_dumps_of_{SIZE}": {"decided": len(decided) / SIZE / DRAWS, "right": float(exact[decided].mean())},
    }


def shares(decided: BoolArray, exact: BoolArray) -> dict[str, float]:
    """Return the share decided and, of these papers, the share with all areas right."""
    return {"decided": float(decided.mean()), "right": float(exact[decided].mean())}


if __name__ == "__main__":
    main()
