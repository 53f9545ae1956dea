"""What every part of an audit has in common: its tables, its findings, and plain data of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.plain_values import plain

Table = Mapping[str, NDArray[Any]]


class NotApplicable(Exception):  # noqa: N818 - a reason to go on, not an error
    """Raised by a part whose data are not there, such as drift without timestamps.

    The message is one sentence for the user: what is missing. An audit notes it and goes on.
    """


@dataclass(frozen=True, eq=False)
class Part:
    """Base of what the parts of an audit return: a frozen dataclass of plain arrays and numbers.

    A part is a function ``part(labels, *, gold=None, fit=None, random_state=0, ...)`` of
    CrowdLabels. Of the three named keywords it takes those that it needs: known classes in any form
    that ``Aggregator.fit`` takes, a fit of the same labels that has a label law (None: fit one),
    and the seed. It returns a subclass of this class, or raises :class:`NotApplicable`. One line in
    ``wisecrowd.audit.crowd_audit.PARTS`` makes it a part of every audit.

    Examples
    --------
    >>> @dataclass(frozen=True, eq=False)
    ... class Sizes(Part):
    ...     n_labels: NDArray[Any]
    ...     def findings(self):
    ...         return []
    >>> Sizes(np.array([2, 1])).to_dict()
    {'n_labels': [2, 1]}
    """

    def findings(self) -> list[Finding]:
        """Return what is wrong, in any order; an empty list when nothing is."""
        raise TypeError(f"{type(self).__name__} must define findings.")

    def tables(self) -> dict[str, Table]:
        """Return the part's tables for files, by name: each a mapping of column to values."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON; a field whose name starts with _ stays out."""
        return {
            field.name: plain(getattr(self, field.name))
            for field in fields(self)
            if not field.name.startswith("_")
        }
