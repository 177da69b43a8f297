"""Rank labels by how little a model that has not seen them believes them: those to read again first.

usage: python experiments/noise/rank.py RUN_FOLDER > experiments/noise/results/doubtful.csv

The probability of the label as it stands, by a model that has not seen it, is its self-confidence (Northcutt, Jiang and
Chuang 2021).
"""

import csv
import sys
from pathlib import Path

import numpy as np

from abstag.store import read_scores

SHOWN = 200


def main() -> None:
    """Write the least believed labels: paper, area, label, probability of the area."""
    table = read_scores(Path(sys.argv[1]))
    believed = np.where(table.gold, table.scores, 1 - table.scores)
    papers, areas = np.nonzero(table.known)
    order = np.argsort(believed[papers, areas], kind="stable")[:SHOWN]
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["id", "area", "label", "probability"])
    for paper, area in zip(papers[order].tolist(), areas[order].tolist(), strict=True):
        label, probability = int(table.gold[paper, area]), table.scores[paper, area]
        out.writerow([table.ids[paper], table.areas[area], label, f"{probability:.4f}"])


if __name__ == "__main__":
    main()
