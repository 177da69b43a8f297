"""The processes that clean, score and decide."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Protocol, TypeVar

from abstag.bundle import Bundle
from abstag.errors import ArtifactError

Given = TypeVar("Given")
Made = TypeVar("Made")
Given_contra = TypeVar("Given_contra", contravariant=True)
Made_co = TypeVar("Made_co", covariant=True)


class Task(Protocol[Given_contra, Made_co]):
    """A function that another process can be given, or a `functools.partial` of one."""

    def __call__(self, given: Given_contra, bundle: Bundle, /) -> Made_co:
        """Return what is made of what is given."""


class Workers:
    """Does tasks with a bundle, here or in a pool of processes that have it."""

    def __init__(self, bundle: Bundle, pool: ProcessPoolExecutor | None, number: int) -> None:
        self._bundle, self._pool, self._number = bundle, pool, number

    def map(self, task: Task[Given, Made], items: Iterable[Given]) -> Iterator[Made]:
        """Yield what the task makes of each item, in their order; a few are taken ahead.

        Raises
        ------
        ArtifactError
            A process was killed.
        """
        if self._pool is None:
            yield from (task(item, self._bundle) for item in items)
            return
        waiting: deque[Future[Made]] = deque()
        try:
            for item in items:
                waiting.append(self._pool.submit(_done, task, item))
                if len(waiting) > 2 * self._number:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenExecutor as error:
            remedy = "give the command again, with fewer --threads where memory is short"
            raise ArtifactError("a process that scored was killed", remedy=remedy) from error


@contextmanager
def workers(bundle: Bundle, threads: int | None) -> Iterator[Workers]:
    """Give so many processes; none but this one for None, and for a scorer that has threads of its own."""
    if threads is None or bundle.scorer.use_threads(threads) or threads == 1:
        yield Workers(bundle, None, 1)
        return
    with ProcessPoolExecutor(threads, get_context("spawn"), _adopt, (bundle,)) as pool:
        try:
            yield Workers(bundle, pool, threads)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_adopted: list[Bundle] = []  # what a process of the pool does its tasks with


def _adopt(bundle: Bundle) -> None:
    _adopted[:] = [bundle]


def _done(task: Task[Given, Made], given: Given) -> Made:
    (bundle,) = _adopted
    return task(given, bundle)
