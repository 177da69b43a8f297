"""The errors that a user meets: one line that says where, what and the remedy."""

import difflib
import errno
from collections.abc import Iterable

_OS_REMEDIES = {
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOSPC: "make room, or choose another place",
    errno.EFBIG: "make room, or choose another place",
    errno.ENOTDIR: "a file is where a folder should be; choose another name",
    errno.EEXIST: "a file is where a folder should be; choose another name",
}


class AbstagError(Exception):
    """Base of all errors that are the input's or the configuration's fault, not a defect of abstag.

    Parameters
    ----------
    what
        What happened.
    where
        File, ``file:line`` or configuration key.
    remedy
        What the user can do about it.
    """

    def __init__(self, what: str, *, where: object = None, remedy: str | None = None) -> None:
        self.what, self.where, self.remedy = what, where, remedy
        place = "" if where is None else f"{where}: "
        advice = "" if remedy is None else f"; {remedy}"
        super().__init__(" ".join(f"{place}{what}{advice}".split()))


class DataError(AbstagError):
    """A dump, a label file or a corpus cannot be used as it is."""


class ConfigError(AbstagError):
    """A configuration key, value or combination is wrong."""


class ArtifactError(AbstagError):
    """A run, bundle or output on disk is missing, damaged, of another version, or in the way."""


def refused(error: OSError, what: str, where: object) -> ArtifactError:
    """Return the error of a file that the system refuses, with the reason and the remedy."""
    remedy = _OS_REMEDIES.get(error.errno or 0, "check the path and its permissions")
    return ArtifactError(f"{what}: {error.strerror or error}", where=where, remedy=remedy)


def near(word: str, known: Iterable[str]) -> str:
    """Return the remedy for an unknown word: the known one that it resembles, or all."""
    names = list(known)
    found = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    return f"did you mean {found[0]!r}?" if found else f"known: {', '.join(names) or 'none'}"


class MissingExtraError(AbstagError):
    """An optional dependency is not installed; the message names the ``pip install``."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed", remedy=f"pip install 'abstag[{extra}]'")
