"""A progress bar on standard error, for what takes longer than two seconds."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def progress(items: Iterable[Item], what: str, unit: str = "papers") -> Iterator[Item]:
    """Yield the items under a bar with their number and the time left, where it can be known; none off a terminal."""
    from tqdm import tqdm

    yield from tqdm(items, desc=what, unit=f" {unit}", disable=None, delay=2, leave=False)
