"""Base class of the parts of an audit: tables, findings and plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.plain_values import plain

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
    kinds take their own container and, as ``view``, what their plan shares. One line in
    ``wisecrowd.audit.plans`` adds a part to every audit of its kind.

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
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON, without those whose names start with _."""
        return {
            field.name: plain(getattr(self, field.name))
            for field in fields(self)
            if not field.name.startswith("_")
        }
