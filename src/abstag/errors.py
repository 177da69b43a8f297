"""The errors that a user meets: one line that says where, what and the remedy."""


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


class MissingExtraError(AbstagError):
    """An optional dependency is not installed; the message names the ``pip install``."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed", remedy=f"pip install 'abstag[{extra}]'")
