"""Plans of reports: for every kind its study, content, sections and commands.

The table of kinds (``wisecrowd.core.kinds``) names the plan of each kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wisecrowd.audit.plans import load
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.kinds import all_kinds, get_kind, kind_of


@dataclass(frozen=True, kw_only=True)
class ReportPlan:
    """What a report on one kind consists of; functions are given as "module:function".

    Attributes
    ----------
    study : function of (data, method, fit, gold, truth, options, random_state)
        Fits and audits the data.
    content : mapping of name to function of study
        Parts of the summary, in order, between the next steps and the way to reproduce them.
    sections : mapping of name to (heading, function of summary)
    templates : mapping of section to the name of its template, by default that of the section
    commands, calls : mappings of finding to shell command and to Python call
    worker_findings : tuple of str
        Findings whose affected ids are workers.
    methods : tuple of str
        Methods that the report compares.
    optional : tuple of str
        Parts of the content that are left out, with their sections, if they are None.
    """

    study: str
    content: Mapping[str, str]
    sections: str
    commands: str
    calls: str
    worker_findings: str
    methods: tuple[str, ...]
    optional: tuple[str, ...] = ("money",)


_SAME = "wisecrowd.reporting"
CLASSES = ReportPlan(
    study=f"{_SAME}.study:study_crowd",
    content={
        "verdict": f"{_SAME}.verdict:verdict",
        "workers": f"{_SAME}.workers:workers",
        "tasks": f"{_SAME}.tasks:tasks",
        "classes": f"{_SAME}.tasks:confused_classes",
        "groups": f"{_SAME}.group_content:groups_of_tasks",
        "worker_groups": f"{_SAME}.worker_group_content:groups_of_workers",
        "network": f"{_SAME}.network:network",
        "methods": f"{_SAME}.method_comparison:methods_compared",
        "calibration": f"{_SAME}.method_comparison:calibration",
        "budget": f"{_SAME}.budget:budget",
        "money": f"{_SAME}.money:money",
        "health": f"{_SAME}.health:health",
    },
    sections=f"{_SAME}.sections:SECTIONS",
    commands=f"{_SAME}.verdict:COMMANDS",
    calls=f"{_SAME}.verdict:CALLS",
    worker_findings=f"{_SAME}.verdict:WORKER_FINDINGS",
    methods=("majority-vote", "wawa", "one-coin", "dawid-skene", "glad"),
    optional=("groups", "worker_groups", "money"),
)
ORDERED = ReportPlan(
    study=f"{_SAME}.study:study_crowd",
    content={
        **{name: part for name, part in CLASSES.content.items()
           if name not in ("calibration", "budget", "health")},
        "bias": f"{_SAME}.worker_bias:grader_bias",
        "health": f"{_SAME}.health:health",
    },
    sections=f"{_SAME}.kind_sections:ORDERED_SECTIONS",
    commands=f"{_SAME}.kind_commands:ORDERED_COMMANDS",
    calls=f"{_SAME}.kind_commands:ORDERED_CALLS",
    worker_findings=f"{_SAME}.kind_commands:ORDERED_WORKER_FINDINGS",
    methods=("majority-vote", "dawid-skene", "thresholds", "ordinal-latent"),
    optional=CLASSES.optional,
)  # fmt: skip
NUMBERS = ReportPlan(
    study=f"{_SAME}.answer_study:study_answers",
    content={
        "verdict": f"{_SAME}.number_content:verdict",
        "workers": f"{_SAME}.number_content:workers",
        "tasks": f"{_SAME}.number_content:tasks",
        "shared": f"{_SAME}.number_content:shared_errors",
        "methods": f"{_SAME}.answer_methods:methods_by_held_out_score",
        "money": f"{_SAME}.money:money",
        "health": f"{_SAME}.answer_study:health",
    },
    sections=f"{_SAME}.kind_sections:NUMBER_SECTIONS",
    commands=f"{_SAME}.kind_commands:NUMBER_COMMANDS",
    calls=f"{_SAME}.kind_commands:NUMBER_CALLS",
    worker_findings=f"{_SAME}.kind_commands:NUMBER_WORKER_FINDINGS",
    methods=("mean", "median", "gaussian-em", "student-em"),
)
PAIRS = ReportPlan(
    study=f"{_SAME}.answer_study:study_answers",
    content={
        "verdict": f"{_SAME}.pair_content:verdict",
        "ranking": f"{_SAME}.pair_content:ranking",
        "workers": f"{_SAME}.pair_content:workers",
        "sides": f"{_SAME}.pair_content:sides_and_ties",
        "contradictions": f"{_SAME}.pair_content:contradictions",
        "connectivity": f"{_SAME}.pair_content:connectivity",
        "methods": f"{_SAME}.answer_methods:methods_by_held_out_score",
        "money": f"{_SAME}.money:money",
        "health": f"{_SAME}.answer_study:health",
    },
    sections=f"{_SAME}.kind_sections:PAIR_SECTIONS",
    commands=f"{_SAME}.kind_commands:PAIR_COMMANDS",
    calls=f"{_SAME}.kind_commands:PAIR_CALLS",
    worker_findings=f"{_SAME}.kind_commands:PAIR_WORKER_FINDINGS",
    methods=("bradley-terry", "crowd-bt", "davidson", "worker-ties"),
)
SEQUENCES = ReportPlan(
    study=f"{_SAME}.answer_study:study_answers",
    content={
        "verdict": f"{_SAME}.sequence_content:verdict",
        "boundaries": f"{_SAME}.sequence_content:boundaries_and_types",
        "workers": f"{_SAME}.sequence_content:workers",
        "tasks": f"{_SAME}.sequence_content:tasks",
        "methods": f"{_SAME}.answer_methods:methods_by_held_out_score",
        "money": f"{_SAME}.money:money",
        "health": f"{_SAME}.answer_study:health",
    },
    sections=f"{_SAME}.kind_sections:SEQUENCE_SECTIONS",
    commands=f"{_SAME}.kind_commands:SEQUENCE_COMMANDS",
    calls=f"{_SAME}.kind_commands:SEQUENCE_CALLS",
    worker_findings=f"{_SAME}.kind_commands:SEQUENCE_WORKER_FINDINGS",
    methods=("token-wise", "hmm-crowd", "bsc"),
)
SETS = ReportPlan(
    study=f"{_SAME}.answer_study:study_answers",
    content={
        "verdict": f"{_SAME}.set_content:verdict",
        "workers": f"{_SAME}.set_content:workers",
        "classes": f"{_SAME}.set_content:classes",
        "tasks": f"{_SAME}.set_content:tasks",
        "methods": f"{_SAME}.answer_methods:methods_by_held_out_score",
        "money": f"{_SAME}.money:money",
        "health": f"{_SAME}.answer_study:health",
    },
    sections=f"{_SAME}.kind_sections:SET_SECTIONS",
    commands=f"{_SAME}.kind_commands:SET_COMMANDS",
    calls=f"{_SAME}.kind_commands:SET_CALLS",
    worker_findings=f"{_SAME}.kind_commands:SET_WORKER_FINDINGS",
    methods=("set-vote", "shared-two-coin", "label-set-mixture"),
)
BOXES = ReportPlan(
    study=f"{_SAME}.answer_study:study_answers",
    content={
        "verdict": f"{_SAME}.box_content:verdict",
        "workers": f"{_SAME}.box_content:workers",
        "tasks": f"{_SAME}.box_content:images",
        "copies": f"{_SAME}.box_content:copies",
        "methods": f"{_SAME}.answer_methods:methods_by_held_out_score",
        "money": f"{_SAME}.money:money",
        "health": f"{_SAME}.answer_study:health",
    },
    sections=f"{_SAME}.kind_sections:BOX_SECTIONS",
    commands=f"{_SAME}.kind_commands:BOX_COMMANDS",
    calls=f"{_SAME}.kind_commands:BOX_CALLS",
    worker_findings=f"{_SAME}.kind_commands:BOX_WORKER_FINDINGS",
    methods=("box-consensus", "box-em"),
)

SAME = ReportPlan(
    study=f"{_SAME}.answer_study:study_answers",
    content={
        "verdict": f"{_SAME}.same_content:verdict",
        "clusters": f"{_SAME}.same_content:clusters",
        "workers": f"{_SAME}.same_content:workers",
        "contradictions": f"{_SAME}.same_content:contradictions",
        "methods": f"{_SAME}.answer_methods:methods_by_held_out_score",
        "money": f"{_SAME}.money:money",
        "health": f"{_SAME}.answer_study:health",
    },
    sections=f"{_SAME}.same_sections:SAME_SECTIONS",
    commands=f"{_SAME}.same_sections:SAME_COMMANDS",
    calls=f"{_SAME}.same_sections:SAME_CALLS",
    worker_findings=f"{_SAME}.same_sections:SAME_WORKER_FINDINGS",
    methods=("signed-spectral", "crowd-clustering"),
)
TEXTS = ReportPlan(
    study=f"{_SAME}.answer_study:study_answers",
    content={
        "verdict": f"{_SAME}.text_content:verdict",
        "workers": f"{_SAME}.text_content:workers",
        "tasks": f"{_SAME}.text_content:tasks",
        "methods": f"{_SAME}.answer_methods:methods_by_held_out_score",
        "money": f"{_SAME}.money:money",
        "health": f"{_SAME}.answer_study:health",
    },
    sections=f"{_SAME}.kind_sections:TEXT_SECTIONS",
    commands=f"{_SAME}.kind_commands:TEXT_COMMANDS",
    calls=f"{_SAME}.kind_commands:TEXT_CALLS",
    worker_findings=f"{_SAME}.kind_commands:TEXT_WORKER_FINDINGS",
    methods=("rover", "text-medoid"),
)
MASKS = ReportPlan(
    study=f"{_SAME}.answer_study:study_answers",
    content={
        "verdict": f"{_SAME}.mask_content:verdict",
        "workers": f"{_SAME}.mask_content:workers",
        "tasks": f"{_SAME}.mask_content:tasks",
        "methods": f"{_SAME}.answer_methods:methods_by_held_out_score",
        "money": f"{_SAME}.money:money",
        "health": f"{_SAME}.answer_study:health",
    },
    sections=f"{_SAME}.mask_sections:MASK_SECTIONS",
    commands=f"{_SAME}.mask_sections:MASK_COMMANDS",
    calls=f"{_SAME}.mask_sections:MASK_CALLS",
    worker_findings=f"{_SAME}.mask_sections:MASK_WORKER_FINDINGS",
    methods=("mask-vote", "mask-em"),
)


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
    kind = get_kind(name)
    if not kind.report:
        known = [other for other, one in all_kinds().items() if one.report]
        raise ParameterError(f"There is no report on {name}; reports are for {', '.join(known)}.")
    plan: ReportPlan = load(kind.report)
    return plan
