"""Metric types and the Prometheus text format (version 0.0.4).

The format is a few lines of text, so it is written here; a label's values are few and none is chosen by a peer.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric family, with the labels that identify it. `suffix` is used by a histogram's parts."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """Numbers of one meaning. `kind` is `counter`, `gauge` or `histogram`."""

    name: str
    kind: str
    meaning: str
    samples: Sequence[Sample]


@dataclass(slots=True)
class Histogram:
    """Histogram of durations in seconds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(_SECONDS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(_SECONDS, seconds)] += 1
        self.total += seconds

    def samples(self, labels: Mapping[str, str] = _NO_LABELS) -> list[Sample]:
        """Return the samples of the histogram; each bucket counts all smaller ones."""
        found: list[Sample] = []
        count = 0
        for bound, more in zip([*map(str, _SECONDS), "+Inf"], self.counts, strict=True):
            count += more
            found.append(Sample(count, {**labels, "le": bound}, "_bucket"))
        return [*found, Sample(self.total, labels, "_sum"), Sample(count, labels, "_count")]


def render(families: Iterable[Family]) -> str:
    """Return the text of a scrape."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escaped(family.meaning)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for sample in family.samples:
            labels = ",".join(
                f'{name}="{_escaped(value).replace(chr(34), chr(92) + chr(34))}"'
                for name, value in sample.labels.items()
            )
            value = repr(float(sample.value)) if sample.value % 1 else str(int(sample.value))
            lines.append(f"{family.name}{sample.suffix}{'{' + labels + '}' if labels else ''} {value}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
