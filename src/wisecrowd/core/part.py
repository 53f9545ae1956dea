"""What a part of an audit is, and the plan that lists the parts for a kind of labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.plain_values import plain

MOST_ALONE = 0.5  # share of tasks with a single label
Table = Mapping[str, NDArray[Any]]


class NotApplicable(Exception):  # noqa: N818 - a reason to skip, not an error
    """Raised by a part without the data that it needs, such as drift without timestamps.

    The message tells the user in one sentence what is missing. An audit records it and continues.
    """


@dataclass(frozen=True, eq=False)
class Part:
    """Base of the results of audit parts: a frozen dataclass of arrays and numbers.

    A part is a function ``part(labels, *, gold=None, fit=None, random_state=0, ...)`` of
    CrowdLabels. It may take any of the three named keywords: known classes in any form that
    ``Aggregator.fit`` takes, a fit of the same labels with a label law (None: fit one), and the
    seed. It returns a subclass of this class or raises :class:`NotApplicable`. Parts for other
    kinds take their own container and, as ``view``, what their plan shares. One line in the
    plan of its kind adds a part to every audit.

    Attributes
    ----------
    table, column_names : str, tuple of str
        Name of the only table, and the fields that are its columns; otherwise define ``tables``.

    Examples
    --------
    >>> import numpy as np
    >>> @dataclass(frozen=True, eq=False)
    ... class Sizes(Part):
    ...     n_labels: NDArray[Any]
    ...     def findings(self):
    ...         return []
    >>> Sizes(np.array([2, 1])).to_dict()
    {'n_labels': [2, 1]}
    """

    table: ClassVar[str] = ""
    column_names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Keep dataclasses from replacing the short repr by one of all arrays."""
        super().__init_subclass__()
        type.__setattr__(cls, "__repr__", Part.__repr__)

    def __repr__(self) -> str:
        found = ", ".join(dict.fromkeys(finding.id for finding in self.findings()))
        return f"{type(self).__name__}({found or 'nothing found'})"

    def findings(self) -> list[Finding]:
        """Return the findings in any order; the list may be empty."""
        raise TypeError(f"{type(self).__name__} must define findings.")

    def tables(self) -> dict[str, Table]:
        """Return the tables to write to files, by name; each is a mapping of column to values."""
        if not self.table:
            return {}
        return {self.table: {name: getattr(self, name) for name in self.column_names}}

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON, without those whose names start with _."""
        return {
            field.name: plain(getattr(self, field.name))
            for field in fields(self)
            if not field.name.startswith("_")
        }


class WorkerPart(Part):
    """A part about workers, with a table of them and findings about some of them.

    Subclasses have a field ``workers``, the ids, and then one that counts what each worker gave. It
    and all later fields with one entry per worker are the columns of the table, without ``worker_``
    in front of their names.

    Attributes
    ----------
    noun, percent : str
        What was counted, such as "all votes", and the format of shares of it.

    Examples
    --------
    >>> @dataclass(frozen=True, eq=False)
    ... class Lazy(WorkerPart):
    ...     workers: NDArray[Any]
    ...     n_labels: NDArray[Any]
    ...     lazy: NDArray[Any]
    ...     def findings(self):
    ...         return self.about("lazy", self.lazy, "stopped early", "Ask them why.")
    >>> part = Lazy(np.array(["ann", "bob"]), np.array([9, 1]), np.array([False, True]))
    >>> part.findings()[0].explanation
    "1 worker ('bob'; 10.0% of all labels, which is the score) stopped early."
    """

    noun: ClassVar[str] = "all labels"
    percent: ClassVar[str] = ".1%"
    workers: NDArray[Any]

    def _columns(self) -> dict[str, Any]:
        names = [field.name for field in fields(self)]
        return {name: getattr(self, name) for name in names[names.index("workers") + 1 :]}

    @property
    def counts(self) -> NDArray[np.int64]:
        """(n_workers,): the field after ``workers``."""
        found: NDArray[np.int64] = next(iter(self._columns().values()))
        return found

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        found = {
            name.removeprefix("worker_"): values
            for name, values in self._columns().items()
            if np.shape(values) == self.workers.shape
        }
        return {self.table: {"worker": self.workers} | found}

    def largest(self, who: Any, by: Any = None) -> NDArray[np.intp]:
        """Return the numbers of these workers, the largest first; by default by their counts."""
        order = np.flatnonzero(who)
        size = np.asarray(self.counts if by is None else by, dtype=np.float64)
        return order[np.argsort(-size[order], kind="stable")]

    def share_of(self, who: Any) -> float:
        """Return the share of these workers in all that was counted."""
        return float(self.counts[who].sum() / max(int(self.counts.sum()), 1))

    def named(self, order: NDArray[np.intp], detail: str = "") -> str:
        """Return how many workers these are, and who."""
        several = "s" if len(order) > 1 else ""
        return f"{len(order)} worker{several} ({describe_ids(self.workers[order])}{detail})"

    def about(
        self, name: str, who: Any, did: str, remedy: str, severity: str = "", by: Any = None
    ) -> list[Finding]:
        """Return a finding about these workers, with their share as score; none for nobody."""
        if not np.any(who):
            return []
        order, share = self.largest(who, by), self.share_of(who)
        usual = "high" if share >= 0.2 else "medium" if share >= 0.02 else "low"
        score = f"; {share:{self.percent}} of {self.noun}, which is the score"
        return [Finding(
            name, severity or usual, share, tuple(self.workers[order].tolist()),
            f"{self.named(order, score)} {did}.", remedy,
        )]  # fmt: skip


def no_signal(of: str, why: str, remedy: str) -> Finding:
    """Return the finding that no worker follows the others."""
    text = f"No worker's {of} follow those of the others: they are all random, or {why}."
    return Finding("no-signal", "high", 1.0, (), text, remedy)


def single_labels(share: float) -> list[Finding]:
    """Return the finding that most tasks have a single label, if this share is most of them."""
    if not share > MOST_ALONE:
        return []
    return [Finding(
        "one-label-per-task", "medium", share, (),
        f"{share:.0%} of the tasks, which is the score, have a single label, so neither these "
        "labels nor their workers can be checked.",
        "Ask a second worker about some of these tasks.",
    )]  # fmt: skip


def prune_or(method: str, does: str, effect: Any, options: str = "", data: str = "data") -> str:
    """Return the advice to prune workers, or to use a method that gives them little weight."""
    how = for_reader(
        f'wisecrowd.audit.clean({data}, ["spammers"])',
        f"wisecrowd audit FILE {options}--prune-to CLEAN.csv",
    )
    if effect is None:
        return f"Prune them ({how}), or use {method}, {does}."
    if effect.helps:
        return f"Prune them ({how}): for {method}, {effect}."
    return f"Use {method}, {does}: {effect}. Do not give them more tasks."


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """What an audit of one kind consists of.

    Attributes
    ----------
    parts : mapping of name to function of (data, ...)
        See :class:`Part`.
    shared : mapping of keyword to function of (data, fit)
        What several parts take by this keyword. It is computed once, when first needed; ``fit`` is
        the fit that the user gave, or None.
    prunable : tuple of str
        What :func:`wisecrowd.audit.clean` can remove, in this order.
    """

    parts: Mapping[str, Callable[..., Any]]
    shared: Mapping[str, Callable[[Any, Any], Any]] = field(default_factory=dict)
    prunable: tuple[str, ...] = ()
