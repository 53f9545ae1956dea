"""Plan of a report on a kind: its study, content, sections and commands.

The plan of a kind is ``PLAN`` in its module ``report``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.kinds import all_kinds, get_kind, kind_of

Content = Callable[[Any], Any]  # function of the study


@dataclass(frozen=True, kw_only=True)
class ReportPlan:
    """What a report on one kind consists of.

    Attributes
    ----------
    study : function of (data, method, fit, gold, truth, options, random_state)
        Fits and audits the data.
    content : mapping of name to function of study
        Parts of the summary, in order, between the next steps and the way to reproduce them.
    sections : mapping of name to (heading, function of summary)
        A third element names the template; by default it has the name of the section.
    commands, calls : mappings of finding to shell command and to Python call
    worker_findings : tuple of str
        Findings whose affected ids are workers.
    methods : tuple of str
        Methods that the report compares.
    optional : tuple of str
        Parts of the content that are left out, with their sections, if they are None.
    """

    study: Callable[..., Any]
    content: Mapping[str, Content]
    sections: Mapping[str, Any]
    commands: Mapping[str, str]
    calls: Mapping[str, str]
    worker_findings: tuple[str, ...]
    methods: tuple[str, ...]
    optional: tuple[str, ...] = ("money",)


def report_plan(data: Annotations) -> ReportPlan:
    """Return the plan of a report on these data."""
    return plan_of_kind(kind_of(data).name)


def plan_of_kind(name: str) -> ReportPlan:
    """Return the plan of a report on a kind.

    Examples
    --------
    >>> list(plan_of_kind("pairs").content)[:2]
    ['verdict', 'ranking']
    """
    module = get_kind(name).part("report")
    if module is None:
        known = [other for other, kind in all_kinds().items() if kind.has_part("report")]
        raise ParameterError(f"There is no report on {name}; reports are for {', '.join(known)}.")
    plan: ReportPlan = module.PLAN
    return plan
