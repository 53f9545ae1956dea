"""The input matrix: inputs good, bad and doubtful, and what every method must make of them.

>>> from tests.support.inputs import INPUT_CASES
>>> len(INPUT_CASES) >= 100
True
>>> INPUT_CASES[0].name
'a class named label'
"""

from tests.support.inputs import (
    files,
    id_types,
    layouts,
    names,
    not_classes,
    option_cases,
    platform_exports,
    ranges,
    shapes,
    table_cases,
)
from tests.support.inputs.case import Given, InputCase, Verdict
from tests.support.inputs.judging import (
    CaseResult,
    Outcome,
    Trace,
    judge,
    try_command_line,
    try_python,
)

INPUT_CASES: tuple[InputCase, ...] = (
    *names.CASES, *id_types.CASES, *table_cases.CASES, *option_cases.CASES, *shapes.CASES,
    *layouts.CASES, *platform_exports.CASES, *files.CASES, *not_classes.CASES, *ranges.CASES,
)  # fmt: skip

__all__ = [
    "INPUT_CASES",
    "CaseResult",
    "Given",
    "InputCase",
    "Outcome",
    "Trace",
    "Verdict",
    "judge",
    "try_command_line",
    "try_python",
]  # fmt: skip
