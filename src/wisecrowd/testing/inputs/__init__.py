"""The input matrix: inputs good, bad and doubtful, and what every method must make of them.

>>> from wisecrowd.testing.inputs import INPUT_CASES
>>> len(INPUT_CASES) >= 100
True
>>> INPUT_CASES[0].name
'a class named label'
"""

from wisecrowd.testing.inputs import (
    files,
    id_types,
    layouts,
    names,
    not_classes,
    options,
    platform_exports,
    ranges,
    shapes,
    tables,
)
from wisecrowd.testing.inputs.case import Given, InputCase, Verdict
from wisecrowd.testing.inputs.judging import (
    Judgement,
    Outcome,
    Trace,
    judge,
    try_command_line,
    try_python,
)

INPUT_CASES: tuple[InputCase, ...] = (
    *names.CASES, *id_types.CASES, *tables.CASES, *options.CASES, *shapes.CASES,
    *layouts.CASES, *platform_exports.CASES, *files.CASES, *not_classes.CASES, *ranges.CASES,
)  # fmt: skip

__all__ = [
    "INPUT_CASES", "Given", "InputCase", "Judgement", "Outcome", "Trace", "Verdict", "judge",
    "try_command_line", "try_python",
]  # fmt: skip
