"""The noun that leaves an experiment: the result of one run."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self

Status = Literal["done", "failed", "running"]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run found; its JSON form is fixed in docs/contracts.md.

    Attributes
    ----------
    corpus
        ``name`` and ``fingerprint``.
    parts
        Metrics of each part of the test rows, as `metrics.evaluate` gives them, with the interval of macro-F1, the
        figures at threshold 0.5 (``at_half``) and of sure labels alone (``sure``).
    fit_seconds
        Wall time of all fits: those for out-of-fold scores and the final one.
    texts_per_second
        Test papers scored in a second, features included.
    peak_mb
        Highest resident memory of the process during the run, MiB.
    looks
        How many different runs, this one included, had scored these test rows in this store when this one ended.
    """

    id: str
    status: Status
    experiment: str
    classifier: str
    seed: int
    corpus: dict[str, str]
    areas: list[str] = field(default_factory=list)
    taxonomy: dict[str, Any] = field(default_factory=dict)
    metric_part: str = "all"
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    decision: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, Any] = field(default_factory=dict)
    fit_seconds: float | None = None
    texts_per_second: float | None = None
    peak_mb: float | None = None
    looks: int | None = None
    config: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    started: str = ""
    error: str | None = None

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of ``metric_part``; empty when the run failed."""
        return self.parts.get(self.metric_part, {})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form (NaN not yet null)."""
        return asdict(self) | {"metrics": self.metrics}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Rebuild from the JSON form; unknown keys of newer versions are ignored."""
        names = {item.name for item in fields(cls)}
        return cls(**{key: item for key, item in value.items() if key in names})
