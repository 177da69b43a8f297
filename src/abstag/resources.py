"""Find the configuration and data that ship with the package, installed or in a checkout."""

from pathlib import Path

from abstag.errors import ArtifactError

_PACKAGE = Path(__file__).resolve().parent


def resource(name: str) -> Path:
    """Return the path of ``conf`` or ``data`` (or a path below them).

    An installed package carries both beside its modules; a checkout has them at its top.

    Raises
    ------
    ArtifactError
        When neither place holds it.
    """
    for base in (_PACKAGE, _PACKAGE.parents[1]):
        if (base / name).exists():
            return base / name
    raise ArtifactError(f"{name} is missing from the installation", remedy="reinstall abstag")
