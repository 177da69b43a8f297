"""What a run ran on: versions, revision, memory."""

import importlib.metadata
import platform
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from abstag import __version__
from abstag.resources import resource

NUMERIC = ("numpy", "scipy", "scikit-learn")
_INTERVAL = 0.02


def numeric_versions() -> dict[str, str]:
    """Return the versions that can change numbers."""
    return {"abstag": __version__} | {name: importlib.metadata.version(name) for name in NUMERIC}


def versions() -> dict[str, str]:
    """Return the versions and machine that a result is kept with, the git revision of a checkout among them."""
    machine = {"machine": platform.machine(), "cpu": _cpu(), "system": platform.system()}
    libraries = _installed("torch", "transformers", "accelerate") | {"python": platform.python_version()}
    return numeric_versions() | libraries | machine | {"git": _git_revision()}


def _cpu() -> str:
    """Return the CPU family as the linear algebra library sees it, which decides in what order it adds."""
    from threadpoolctl import threadpool_info

    families = {library["architecture"] for library in threadpool_info() if library.get("architecture")}
    return ", ".join(sorted(families)) or platform.processor() or "unknown"


def _installed(*names: str) -> dict[str, str]:
    found = {}
    for name in names:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _git_revision() -> str:
    checkout = resource("conf").parent
    if not (checkout / ".git").exists():
        return "none"
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return "none"
    return found.stdout.strip() or "none"


class Peak:
    """Highest resident memory seen, in MiB."""

    mebibytes: float = 0.0

    def see(self) -> None:
        """Look at the memory of this process now."""
        import psutil

        self.mebibytes = max(self.mebibytes, psutil.Process().memory_info().rss / 2**20)


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Sample the resident memory of this process every 20 ms while the block runs.

    ``ru_maxrss`` would not do: it never falls, so that the second run of a sweep would inherit the first one's peak.
    """
    peak, ended = Peak(), threading.Event()

    def watch() -> None:
        while not ended.wait(_INTERVAL):
            peak.see()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()
        peak.see()
