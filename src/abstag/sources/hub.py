"""The Hugging Face hub: the rows of a data set's split, by the library `datasets`; HF_ENDPOINT names a mirror."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abstag.errors import ConfigError, DataError
from abstag.sources._collect import Page, Source

if TYPE_CHECKING:
    from datasets import IterableDataset

_ROWS = 1000


def rows(
    name: str, *, config: str | None = None, split: str = "train", revision: str | None = None, columns: Sequence[str]
) -> Source:
    """Return the rows of a split, in order, with these columns (none: all); repeated rows are kept.

    Where no revision is given, it is the newest, and stays that when a fetch goes on.

    Raises
    ------
    ConfigError
        The name is that of a file or folder here.
    """
    if Path(name).exists():
        raise ConfigError("is here already", where=name, remedy="`abstag ingest` reads files and folders")

    def pages(cursor: Any) -> Iterator[Page]:
        try:
            commit, state = cursor or (_commit(name, revision), None)
            opened = _opened(name, config, split, commit, columns)
            yield from _pages(opened, commit, state)
        except (OSError, ValueError, RuntimeError) as error:  # what `datasets` and the hub's client raise
            told = " ".join(str(error).split())[:200] or type(error).__name__
            remedy = "check the name, --config, --split, --columns and the network; run it again to go on"
            raise DataError(told, where=name, remedy=remedy) from error

    asked = {"config": config, "split": split, "revision": revision, "columns": list(columns)}
    return Source({"source": "hub", "dataset": name, **asked}, pages, key=None)


def _commit(name: str, revision: str | None) -> str | None:
    from huggingface_hub import HfApi

    return HfApi().dataset_info(name, revision=revision).sha


def _opened(
    name: str, config: str | None, split: str, revision: str | None, columns: Sequence[str]
) -> "IterableDataset":
    from datasets import load_dataset

    opened = load_dataset(name, config, split=split, revision=revision, streaming=True)
    return opened.select_columns(list(columns)) if columns else opened


def _pages(opened: "IterableDataset", commit: str | None, state: dict[str, Any] | None) -> Iterator[Page]:
    if state:
        opened.load_state_dict(state)
    split = (opened.info.splits or {}).get(str(opened.split))
    expected, found = split.num_examples if split else None, iter(opened)
    while True:
        read = [json.loads(json.dumps(row, default=str)) for row in islice(found, _ROWS)]
        last = len(read) < _ROWS
        yield Page(read, None if last else [commit, opened.state_dict()], expected)
        if last:
            return
