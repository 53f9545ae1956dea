"""Complete audit: every part that the data allow, with all findings in one list."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from wisecrowd.audit.evidence import with_examples
from wisecrowd.core.annotations import NOBODY, Annotations
from wisecrowd.core.answers import one_worker_finding, only_worker
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import SEVERITIES, Finding, check_severity
from wisecrowd.core.kinds import Kind, all_kinds, kind_of
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.part import AuditPlan, NotApplicable, Part, Table
from wisecrowd.kinds.classes.columns import as_crowd_labels

if TYPE_CHECKING:
    from wisecrowd.core.aggregator import Aggregator


def plan_of(data: Annotations) -> AuditPlan:
    """Return the plan of an audit of these data.

    Examples
    --------
    >>> from wisecrowd import CrowdNumbers
    >>> "bias" in plan_of(CrowdNumbers.from_arrays(["t"], ["w"], [1.5])).parts
    True
    """
    kind = kind_of(data)
    plan = audit_plan(kind)
    if plan is None:
        known = [name for name, one in all_kinds().items() if one.has_part("audit")]
        raise ParameterError(
            f"There is no audit for {kind.name}; audits are for {', '.join(known)}."
        )
    return plan


def audit_plan(kind: Kind) -> AuditPlan | None:
    """Return the plan of an audit of a kind: ``PLAN`` in its part ``audit``; None without any."""
    module = kind.part("audit.plan") or kind.part("audit")
    return None if module is None else module.PLAN


def notebook() -> Any:
    """Return the module that draws in notebooks; reporting stands above audits."""
    return importlib.import_module("wisecrowd.reporting.notebook")


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
        text: str = notebook().findings_html(self)
        return text

    def at_least(self, severity: str) -> Findings:
        """Return the findings of this severity or a higher one."""
        check_severity("severity", severity)
        lowest = SEVERITIES.index(severity)
        return Findings(f for f in self if SEVERITIES.index(f.severity) >= lowest)

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"findings": [...]}``, ready for JSON."""
        return {"findings": [finding.to_dict() for finding in self]}


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Result of an audit.

    Attributes
    ----------
    labels : CrowdLabels, or annotations of another kind
    parts : mapping of name to part
        ``audit["spammers"]`` is the same as ``audit.parts["spammers"]``.
    skipped : mapping of name to sentence
        Parts that were skipped, and the data that they lack.
    general : findings about the whole crowd, which are of no part
    """

    labels: Any
    parts: Mapping[str, Part]
    skipped: Mapping[str, str] = field(default_factory=dict)
    general: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        ids = ", ".join(dict.fromkeys(finding.id for finding in self.findings))
        return f"Audit of {self.labels!r}: {ids or 'nothing found'}"

    def _repr_html_(self) -> str:
        text: str = notebook().audit_html(self)
        return text

    def __getitem__(self, name: str) -> Any:
        if name in self.parts:
            return self.parts[name]
        reason = self.skipped.get(name)
        known = reason or f"it has {', '.join(self.parts)}{suggestion(name, self.parts)}."
        raise KeyError(f"This audit has no part {name!r}: {known}")

    @cached_property
    def findings(self) -> Findings:
        """All findings, most severe first, with rows of evidence."""
        found = [found for part in self.parts.values() for found in part.findings()]
        return Findings(with_examples([*self.general, *found], self.labels, self.parts))

    def tables(self) -> dict[str, Table]:
        """Return the tables of all parts by name."""
        return {
            name: table for part in self.parts.values() for name, table in part.tables().items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return sizes, findings, parts and skipped parts, ready for JSON."""
        sizes = {f"n_{name}": len(ids) for name, ids in self.labels.vocabularies().items()}
        return {
            **sizes,
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
    labels : CrowdLabels, CrowdNumbers, CrowdPairs, or data of any form accepted for classes
    gold : mapping from task to class, (task, label) frame, or (n_tasks,) array with None
        Known classes, for the parts that use them; for classes only.
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
    [('spammers', 'medium', (9, 8))]
    """
    known = labels if isinstance(labels, Annotations) else as_crowd_labels(labels)
    plan = plan_of(known)
    if gold is not None and "fit" not in plan.shared:
        raise ParameterError(f"An audit of {kind_of(known).name} takes no gold; leave it out.")
    chosen = check_parts(parts, plan.parts)
    check_parts(options, plan.parts)
    found = run_parts(known, chosen, Shared(known, gold, fit, random_state), options or {})
    informed = gold is not None or getattr(fit, "saw_gold_", False)
    return found if informed else replace(found, general=_alone(known))


def _alone(data: Annotations) -> tuple[Finding, ...]:
    """Return the finding that all labels are by one worker, if they are."""
    worker = only_worker(data)
    if worker is None or worker == NOBODY:
        return ()
    return (one_worker_finding(worker, "an audit has nobody to compare with"),)


def run_parts(
    labels: Any,
    parts: Mapping[str, Callable[..., Any]],
    shared: Shared,
    options: Mapping[str, Mapping[str, Any]],
    skip_on: tuple[type[Exception], ...] = (NotApplicable,),
) -> Audit:
    """Run parts; a part that raises an error in ``skip_on`` is skipped with its message.

    The options of a part take precedence over shared arguments.
    """
    done: dict[str, Part] = {}
    skipped: dict[str, str] = {}
    for name, function in parts.items():
        own = options.get(name, {})
        try:
            done[name] = function(labels, **shared.keywords(function, without=own), **own)
        except skip_on as reason:
            skipped[name] = str(reason)
    return Audit(labels, done, skipped)


class Shared:
    """Arguments that several parts take; those of the plan are computed when first needed."""

    def __init__(self, labels: Any, gold: Any, fit: Aggregator | None, random_state: Any) -> None:
        self._labels, self._gold, self._given, self._seed = labels, gold, fit, random_state
        self._made: dict[str, Any] = {}

    def made(self, name: str) -> Any:
        """Return a shared argument of the plan, such as the fit or the view of the data."""
        if name not in self._made:
            function = plan_of(self._labels).shared[name]
            self._made[name] = function(self._labels, self._given)
        return self._made[name]

    def keywords(self, function: Callable[..., Part], without: Iterable[str]) -> dict[str, Any]:
        """Return the shared arguments that a part takes and that its options do not set."""
        named = inspect.signature(function).parameters.keys() - set(without)
        found: dict[str, Any] = {"gold": self._gold, "random_state": self._seed}
        found = {name: value for name, value in found.items() if name in named}
        if "source" in named:  # this part assesses the given fit, with or without a law
            found |= {"source": self.made("fit")} | ({"fit": self._given} if "fit" in named else {})
            named -= {"fit"}
        for name in plan_of(self._labels).shared:
            if name in named:
                found[name] = self.made(name)
        return found


def check_parts(
    parts: Iterable[str] | None, known: Mapping[str, Callable[..., Any]]
) -> dict[str, Callable[..., Any]]:
    """Return the named parts with their functions, all for None; unknown names are an error."""
    chosen = list(known) if parts is None else list(dict.fromkeys(parts))
    for name in chosen:
        if name not in known:
            raise ParameterError(
                f"There is no audit part {name!r}{suggestion(name, known)}; there are "
                f"{', '.join(known)}."
            )
    return {name: known[name] for name in chosen}
