"""A process that makes calls for this one, one after the other, and may hang or die without taking this one with it."""

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import connection, util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


class ChildError(Exception):
    """The process ended, or was ended, before the call did; the message says why."""


class Child:
    """One process at a time, started when it is needed: what it has imported and cached serves all calls.

    It ignores Ctrl-C, which reaches it along with its parent, and ends when its parent does. What calls print to
    standard output is dropped, as the output of its parent is a result; standard error is shared.

    Parameters
    ----------
    preload
        A module that is imported once, so that the next process starts in no time.
    """

    def __init__(self, preload: str) -> None:
        self._context: BaseContext = multiprocessing.get_context(_METHOD)
        self._context.set_forkserver_preload([preload])
        self._process: Any = None
        self._pipe: connection.Connection | None = None
        util.Finalize(self, self.stop, exitpriority=100)  # else the end of this process waits for that one

    def call(self, function: Callable[..., Any], *arguments: Any, timeout: float | None = None) -> Any:
        """Return what ``function`` does, whose name and arguments pickle can carry.

        Raises
        ------
        ChildError
            The call ended its process, or did not return in ``timeout`` seconds, > 0, and goes on until `stop`.
        """
        pipe, ready = self.start(), True
        try:
            pipe.send((function, arguments))
            ready = bool(connection.wait([pipe, self._process.sentinel], timeout))
            if pipe.poll():
                return pipe.recv()
        except (EOFError, ConnectionError):  # it is dead
            pass
        except BaseException:
            self.stop()
            raise
        if not ready:
            raise ChildError(f"no end after {timeout:g} s (timeout), stopped")
        self._process.join()
        raise ChildError(_reason(self._process.exitcode))

    def start(self) -> connection.Connection:
        """Have the process begin, unless it has, and return the way to it."""
        if self._pipe is None or not self._process.is_alive():
            self._pipe, theirs = self._context.Pipe()
            level = logging.getLogger("abstag").getEffectiveLevel()
            self._process = self._context.Process(target=_serve, args=(theirs, level, dict(os.environ)))  # type: ignore[attr-defined]
            self._process.start()
            theirs.close()
        return self._pipe

    def stop(self) -> None:
        """End the process and those that it started."""
        import psutil

        if self._pipe is None:
            return
        self._pipe.close()
        self._pipe = None
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self._process.pid)
            for one in (process, *process.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    one.kill()
        self._process.join()


def _reason(code: int | None) -> str:
    if code is None or code >= 0:
        return f"its process ended by itself with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ", as the system does when memory is short" if name == "SIGKILL" else ""
    return f"its process was killed by {name}{hint}"


def _serve(pipe: connection.Connection, level: int, environment: dict[str, str]) -> None:
    os.environ.update(environment)  # that of the fork server is as old as the server
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    logging.basicConfig(format="%(message)s")
    logging.getLogger("abstag").setLevel(level)
    with suppress(EOFError):
        while True:
            function, arguments = pipe.recv()
            pipe.send(function(*arguments))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
