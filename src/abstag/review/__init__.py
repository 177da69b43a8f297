"""Review: the papers most worth a look go out as a sheet, and the filled sheet comes back as labels."""

import re
from collections.abc import Mapping

from abstag.records import text_hash

RANDOM, REST, DIFFER, DRIFT, UNSURE = "random", "random of the rest", "taggers differ", "unlike training", "least sure"
EXPORTED = ("id", "key", "title", "abstract", "suggested", "why", "scores")
SHEET = (*EXPORTED, "areas", "none", "sure", "reviewer", "date", "comment", "check")


def check_of(cells: Mapping[str, str]) -> str:
    """Return a short hash of what a reviewer leaves alone; of the title what every encoding keeps."""
    title = re.sub(r"[^a-z0-9]", "", cells["title"].lower())
    return text_hash("\n".join([*(cells[name] for name in ("id", "key", "suggested", "why")), title]))[:8]
