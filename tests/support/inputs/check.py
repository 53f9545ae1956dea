"""The input matrix as a check: every input that is not costly, given to a method in Python."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator

from tests.support.inputs import INPUT_CASES
from tests.support.inputs.case import Given, InputCase
from tests.support.inputs.judging import CaseResult, Trace, judge, try_python

from wisecrowd.testing.foundation import Make, check, require


def available(cases: Iterable[InputCase]) -> Iterator[InputCase]:
    """Yield the cases that are not costly and whose libraries are installed."""
    for case in cases:
        if not case.costly and (case.needs is None or importlib.util.find_spec(case.needs)):
            yield case


def judged(
    case: InputCase, given: Given, trace: Trace, make: Make, *, shell: bool = False
) -> CaseResult:
    """Judge a trace, given what the method is and which parameters it has."""
    method = make()
    own = method.get_params(deep=False)
    lacks = next((name for name in given.params if name not in own), "")
    return judge(case, trace, binary=method.tags().binary, lacks=lacks, shell=shell)


@check
def check_inputs(make: Make) -> None:
    """Require that inputs are answered rightly, refused clearly, or answered with a warning."""
    for case in available(INPUT_CASES):
        given = case.make()
        if given.data is None:
            continue
        result = judged(case, given, try_python(given, make), make)
        require(result.outcome.good, f"{case.name}: {result.outcome.value}: {result.detail}")
