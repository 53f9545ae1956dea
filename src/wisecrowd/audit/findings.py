"""What an audit found: one record per problem, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, overload

from wisecrowd.core.cautions import Caution
from wisecrowd.core.parameters import check_choice

SEVERITIES = ("info", "low", "medium", "high")


def check_severity(name: str, value: Any) -> None:
    """Raise a ParameterError, under the name of the parameter, for what is no severity."""
    check_choice(name, value, SEVERITIES)


@dataclass(frozen=True)
class Finding(Caution):
    """One thing that is wrong with a crowd, or worth knowing about it.

    A :class:`~wisecrowd.core.cautions.Caution` whose severity may also be "info", and that can be
    written down as JSON.
    """

    def __post_init__(self) -> None:
        check_severity("severity", self.severity)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: numpy scalars become Python's own."""
        return {
            "id": self.id,
            "severity": self.severity,
            "score": float(self.score),
            "affected": [_plain(value) for value in self.affected],
            "explanation": self.explanation,
            "remedy": self.remedy,
        }


class Findings(Sequence[Finding]):
    """Findings in order of severity, then score.

    Examples
    --------
    >>> found = Findings([Finding("spammer", "high", 0.9, ("w7",), "Random.", "Prune.")])
    >>> found.at_least("medium")[0].affected
    ('w7',)
    """

    def __init__(self, findings: Iterable[Finding] = ()) -> None:
        self._findings = sorted(
            findings, key=lambda f: (-SEVERITIES.index(f.severity), -f.score, f.id)
        )

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> Findings: ...
    def __getitem__(self, index: int | slice) -> Finding | Findings:
        if isinstance(index, slice):
            return Findings(self._findings[index])
        return self._findings[index]

    def __len__(self) -> int:
        return len(self._findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings)

    def __repr__(self) -> str:
        return f"Findings({self._findings!r})"

    def _repr_html_(self) -> str:
        text: str = import_module("wisecrowd.reporting.notebook").findings_html(self)
        return text

    def at_least(self, severity: str) -> Findings:
        """Return the findings of this severity or a higher one."""
        check_severity("severity", severity)
        lowest = SEVERITIES.index(severity)
        return Findings(f for f in self if SEVERITIES.index(f.severity) >= lowest)

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"findings": [...]}``, ready for JSON."""
        return {"findings": [finding.to_dict() for finding in self]}


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
