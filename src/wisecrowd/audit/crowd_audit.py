"""Complete audit: every part that the data allow, with all findings in one list."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from wisecrowd.audit.default_fit import fit_with_law
from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import SEVERITIES, Finding, check_severity
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.validation import as_crowd_labels

if TYPE_CHECKING:
    from wisecrowd.core.aggregator import Aggregator
    from wisecrowd.families.dependence import Dependence

# Name → "module:function" in wisecrowd.audit. Adding a part is one file and one line here;
# wisecrowd.audit.part.Part describes the arguments and the result of such a function.
PARTS = {
    "spammers": "spammers:find_spammers",
    "clones": "clones:find_clones",
    "collusion": "collusion:find_collusion",
    "groups": "groups:find_dependent_groups",
    "label-distribution": "label_distribution:find_label_outliers",
    "response-times": "response_times:find_fast_workers",
    "drift": "drift:find_drift",
    "agreement": "agreement_report:measure_agreement",
    "accuracy": "accuracy:estimate_accuracy",
    "identifiability": "identifiability:identifiability_report",
    "fit": "fit:check_fit",
}


class Findings(Sequence[Finding]):
    """Findings in order of severity, then score.

    Examples
    --------
    >>> found = Findings([Finding("spammers", "high", 0.9, ("w7",), "Random.", "Prune.")])
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
        text: str = importlib.import_module("wisecrowd.reporting.notebook").findings_html(self)
        return text

    def at_least(self, severity: str) -> Findings:
        """Return the findings of this severity or a higher one."""
        check_severity("severity", severity)
        lowest = SEVERITIES.index(severity)
        return Findings(f for f in self if SEVERITIES.index(f.severity) >= lowest)

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"findings": [...]}``, ready for JSON."""
        return {"findings": [finding.to_dict() for finding in self]}


@dataclass(frozen=True, eq=False)
class Audit:
    """Result of an audit.

    Attributes
    ----------
    labels : CrowdLabels
    parts : mapping of name to part
        ``audit["spammers"]`` is the same as ``audit.parts["spammers"]``.
    skipped : mapping of name to sentence
        Parts that were skipped, and the data that they lack.
    """

    labels: CrowdLabels
    parts: Mapping[str, Part]
    skipped: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        if name in self.parts:
            return self.parts[name]
        reason = self.skipped.get(name)
        known = reason or f"it has {', '.join(self.parts)}{suggestion(name, self.parts)}."
        raise KeyError(f"This audit has no part {name!r}: {known}")

    @cached_property
    def findings(self) -> Findings:
        """All findings, most severe first."""
        return Findings(found for part in self.parts.values() for found in part.findings())

    def tables(self) -> dict[str, Table]:
        """Return the tables of all parts by name."""
        return {
            name: table for part in self.parts.values() for name, table in part.tables().items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return sizes, findings, parts and skipped parts, ready for JSON."""
        return {
            "n_tasks": self.labels.n_tasks,
            "n_workers": self.labels.n_workers,
            "n_classes": self.labels.n_classes,
            "n_labels": self.labels.n_annotations,
            **self.findings.to_dict(),
            "parts": {name: part.to_dict() for name, part in self.parts.items()},
            "skipped": dict(self.skipped),
        }


def audit_crowd(
    labels: Any,
    *,
    gold: Any = None,
    parts: Iterable[str] | None = None,
    fit: Aggregator | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    random_state: Any = 0,
) -> Audit:
    """Audit labels for spammers, colluders, weak agreement and other problems.

    Parameters
    ----------
    labels : CrowdLabels or data of any accepted form
    gold : mapping from task to class, (task, label) frame, or (n_tasks,) array with None
        Known classes, for the parts that use them.
    parts : names, optional
        Parts to run; by default all that the data allow.
    fit : fitted method, optional
        A fit of these labels. Without one, the parts share a fit of the default method. So do
        parts that need a label law if the given fit has none.
    options : mapping of part name to keywords, optional
        Keyword arguments of parts, such as ``{"spammers": {"level": 0.01}}``.
    random_state : int, Generator or None

    Returns
    -------
    Audit

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(
    ...     400, 8 * simulate.OneCoinWorkers(8, 2) + 2 * simulate.Spammers(), n_classes=3
    ... )
    >>> audit = audit_crowd(crowd.labels, parts=["spammers"])
    >>> [(found.id, found.severity, found.affected) for found in audit.findings.at_least("medium")]
    [('extreme-spammers', 'high', (9, 8))]
    """
    known = as_crowd_labels(labels)
    chosen = check_parts(parts)
    check_parts(options)
    return run_parts(known, chosen, Shared(known, gold, fit, random_state), options or {})


def run_parts(
    labels: CrowdLabels,
    names: Iterable[str],
    shared: Shared,
    options: Mapping[str, Mapping[str, Any]],
    skip_on: tuple[type[Exception], ...] = (NotApplicable,),
) -> Audit:
    """Run parts by name; a part that raises an error in ``skip_on`` is skipped with its message.

    The options of a part take precedence over shared arguments.
    """
    done: dict[str, Part] = {}
    skipped: dict[str, str] = {}
    for name in names:
        function, own = _load(name), options.get(name, {})
        try:
            done[name] = function(labels, **shared.keywords(function, without=own), **own)
        except skip_on as reason:
            skipped[name] = str(reason)
    return Audit(labels, done, skipped)


class Shared:
    """Arguments that several parts take; fit and comparison are made once, when first needed."""

    def __init__(
        self, labels: CrowdLabels, gold: Any, fit: Aggregator | None, random_state: Any
    ) -> None:
        self._labels, self._gold, self._given, self._seed = labels, gold, fit, random_state

    @cached_property
    def fit(self) -> Aggregator:
        """The given fit if it has a label law, else a fit of the default method."""
        found: Aggregator = fit_with_law(self._labels, self._given)
        return found

    @cached_property
    def found(self) -> Dependence | None:
        """The tested pairs of workers, which several parts look at; None with one class."""
        from wisecrowd.families.worker_groups import compare_workers

        return compare_workers(self._labels) if self._labels.n_classes > 1 else None

    def keywords(self, function: Callable[..., Part], without: Iterable[str]) -> dict[str, Any]:
        """Return the shared arguments that a part takes and that its options do not set."""
        named = inspect.signature(function).parameters.keys() - set(without)
        found: dict[str, Any] = {"gold": self._gold, "random_state": self._seed}
        found = {name: value for name, value in found.items() if name in named}
        if "source" in named:  # this part assesses the given fit, with or without a law
            found |= {"source": self.fit} | ({"fit": self._given} if "fit" in named else {})
        elif "fit" in named:
            found["fit"] = self.fit
        if "found" in named:
            found["found"] = self.found
        return found


def check_parts(parts: Iterable[str] | None) -> list[str]:
    """Return the distinct names of parts, all for None; unknown names are an error."""
    chosen = list(PARTS) if parts is None else list(dict.fromkeys(parts))
    for name in chosen:
        if name not in PARTS:
            raise ParameterError(
                f"There is no audit part {name!r}{suggestion(name, PARTS)}; there are "
                f"{', '.join(PARTS)}."
            )
    return chosen


def _load(name: str) -> Callable[..., Part]:
    module, _, function = PARTS[name].partition(":")
    loaded: Callable[..., Part] = getattr(
        importlib.import_module(f"wisecrowd.audit.{module}"), function
    )
    return loaded
