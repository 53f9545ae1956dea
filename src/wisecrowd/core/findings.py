"""Finding: the record of one problem with labels or with a result."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wisecrowd.core.exceptions import FindingWarning
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_choice

SEVERITIES = ("info", "low", "medium", "high")


def check_severity(name: str, value: Any) -> None:
    """Raise a ParameterError, which names the parameter, if a value is not a severity."""
    check_choice(name, value, SEVERITIES)


@dataclass(frozen=True)
class Finding:
    """A problem with a crowd, a fit or a method, and its remedy.

    Attributes
    ----------
    id : str
        The kind, such as "clones".
    severity : "info", "low", "medium" or "high"
    score : float
        A value on the scale that the explanation names.
    affected : tuple of ids
        Workers, tasks or classes, most affected first.
    explanation, remedy : str
        One sentence each: what was found, and what to do.
    examples : tuple of mappings of str to str
        Up to three rows of the data that show it, by column name; an audit adds them.

    Examples
    --------
    >>> str(Finding("clones", "high", 1.0, ("a", "b"), "Two sheets are equal.", "Count one."))
    'Two sheets are equal. Count one.'
    """

    id: str
    severity: str
    score: float
    affected: tuple[Any, ...]
    explanation: str
    remedy: str
    examples: tuple[Mapping[str, str], ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        check_severity("severity", self.severity)

    def __str__(self) -> str:
        return f"{self.explanation} {self.remedy}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: NumPy scalars become Python numbers."""
        affected = [value.item() if hasattr(value, "item") else value for value in self.affected]
        return {
            **vars(self),
            "score": float(self.score),
            "affected": affected,
            "examples": [dict(row) for row in self.examples],
        }


def not_converged(n_iter: int, name: str) -> Finding:
    """Return the finding for a fit that did not converge."""
    more = for_reader("max_iter", "-p max_iter")
    return Finding(
        "not-converged", "medium", float(n_iter), (),
        f"{name} did not converge in {n_iter} iterations: what it says may still change.",
        f"Raise {more}.",
    )  # fmt: skip


def warn_of(findings: Iterable[Finding], stacklevel: int) -> None:
    """Issue a FindingWarning for each finding of medium or high severity."""
    for finding in findings:
        if finding.severity in ("medium", "high"):
            warnings.warn(str(finding), FindingWarning, stacklevel=stacklevel + 1)
