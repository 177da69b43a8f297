"""What a run ran on: versions, revision, memory."""

import ast
import hashlib
import importlib.metadata
import platform
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from abstag import __version__
from abstag.resources import resource

NUMERIC = ("numpy", "scipy", "scikit-learn")
_INTERVAL = 0.02


def numeric_versions() -> dict[str, str]:
    """Return the versions that can change numbers."""
    return {"abstag": __version__} | {name: importlib.metadata.version(name) for name in NUMERIC}


def installed_versions() -> dict[str, str]:
    """Return the versions that can change numbers, of what runs encoders too where that is installed."""
    return numeric_versions() | _installed("torch", "transformers", "accelerate")


def versions() -> dict[str, str]:
    """Return the versions and machine that a result is kept with, the git revision of a checkout among them."""
    machine = {"machine": platform.machine(), "cpu": _cpu(), "system": platform.system()}
    return installed_versions() | {"python": platform.python_version()} | machine | {"git": _git_revision()}


def _cpu() -> str:
    """Return the CPU family as the linear algebra library sees it, which decides in what order it adds."""
    from threadpoolctl import threadpool_info

    families = {library["architecture"] for library in threadpool_info() if library.get("architecture")}
    return ", ".join(sorted(families)) or platform.processor() or "unknown"


def code_digest(*modules: str) -> str:
    """Return 12 hex digits for the source of these modules and of all that they import from their own packages.

    Raises
    ------
    ImportError
        A module is not there.
    """
    left, found = [(name, _source(name)) for name in modules], dict[str, Path]()
    missing = [name for name, path in left if path is None]
    if missing:
        raise ImportError(f"there is no module {missing[0]}")
    while left:
        name, path = left.pop()
        if path is not None and name not in found:
            found[name] = path
            left += [(other, _source(other)) for other in _imports(path, name.partition(".")[0])]
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(name.encode() + b"\0" + found[name].read_bytes() + b"\0")
    return digest.hexdigest()[:12]


@cache
def _source(module: str) -> Path | None:
    """Return the file of a module, which is not imported; None when there is none, or no module of that name."""
    package, *rest = module.split(".")
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    if not rest:
        return Path(spec.origin)
    base = Path(spec.origin).parent.joinpath(*rest)
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


@cache
def _imports(path: Path, package: str) -> list[str]:
    """Return the modules of ``package`` that a file imports, those inside functions too; some are names in modules."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.partition(".")[0] == package]


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
