"""The input matrix on a few methods, and that its judge can tell every outcome."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.inputs import (
    INPUT_CASES,
    Given,
    InputCase,
    Outcome,
    Trace,
    Verdict,
    judge,
    try_command_line,
    try_python,
)
from tests.support.inputs.check import available, check_inputs, judged

from wisecrowd.aggregation import DawidSkene
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.registry import get_method
from wisecrowd.testing import maker

REQUIRED = (
    *(f"a {role} named {word}" for role in ("class", "worker", "task")
      for word in ("label", "task", "worker", "nan", "None")),
    *(f"a {role} that is empty" for role in ("label", "worker", "task")),
    "classes that differ by a space behind", "classes that differ by case",
    "classes 2^53 and 2^53 + 1", "truth values", "times as tasks",
    "pandas categories with unused levels", "a pandas index that repeats",
    "pandas columns of one name", "arrays that cannot be written",
    *(f"a weight that is {what}" for what in ("NaN", "infinite", "negative")),
    "tol of NaN", "max_iter of 0", "100 000 classes", "one task with a million labels",
    "a worker who answered one task", "groups that never meet",
)  # fmt: skip


def test_the_matrix_is_large_and_every_case_has_a_name_of_its_own():
    names = [case.name for case in INPUT_CASES]
    assert len(names) == len(set(names)) >= 100
    assert set(REQUIRED) <= set(names)


@pytest.mark.parametrize("name", ["majority-vote", "dawid-skene", "eigen-ratio"])
def test_every_input_in_python(name):
    check_inputs(maker(get_method(name)))


def test_every_input_on_the_command_line(tmp_path):
    make, bad = maker(DawidSkene), []
    for number, case in enumerate(available(INPUT_CASES)):
        given = case.make()
        if given.file is None:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        trace = try_command_line(given, "dawid-skene", folder)
        result = judged(case, given, trace, make, shell=True)
        if not result.outcome.good:
            bad.append((case.name, result))
    assert bad == []


# ------------------------------------------------------------------------- the judge can be severe

LABELS = {"t": "cat"}
GOOD = Trace(labels={"t": "cat"})
RIGHT = Verdict("right", labels=LABELS)
REJECTED = Verdict("rejected", words=("column", "row 3"))
WARNED = Verdict("warned", words=("twice",), labels=LABELS)
CLEAR = "The label column is empty in row 3; fill it in."


@pytest.mark.parametrize(
    ("verdict", "trace", "expected"),
    [
        (RIGHT, GOOD, Outcome.RIGHT),
        (RIGHT, Trace(labels={"t": "dog"}), Outcome.SILENTLY_WRONG),
        (RIGHT, Trace(labels={"u": "cat"}), Outcome.SILENTLY_WRONG),
        (RIGHT, Trace(labels={"t": "cat"}, finite=False), Outcome.NOT_A_NUMBER),
        (RIGHT, Trace(labels={"t": "cat"}, seconds=1e6), Outcome.OVER_BUDGET),
        (RIGHT, Trace(failure="KeyError: 'x'"), Outcome.OBSCURE),
        (RIGHT, Trace(refusal=CLEAR), Outcome.WRONGLY_REFUSED),
        (REJECTED, Trace(refusal=CLEAR), Outcome.REJECTED),
        (REJECTED, Trace(refusal="The label column is bad; mend it."), Outcome.OBSCURE),
        (REJECTED, Trace(refusal=CLEAR[:-1]), Outcome.OBSCURE),
        (REJECTED, Trace(refusal=CLEAR.replace(";", "?;")), Outcome.OBSCURE),
        (REJECTED, Trace(failure="ValueError: column row 3"), Outcome.OBSCURE),
        (REJECTED, GOOD, Outcome.SILENTLY_ACCEPTED),
        (WARNED, Trace(labels={"t": "cat"}, warnings=["It is there twice."]), Outcome.WARNED),
        (WARNED, Trace(labels={"t": "dog"}, warnings=["It is twice."]), Outcome.SILENTLY_WRONG),
        (WARNED, GOOD, Outcome.SILENTLY_ACCEPTED),
    ],
)
def test_every_outcome_is_told(verdict, trace, expected):
    case = InputCase(name="x", verdict=verdict, make=Given)
    assert judge(case, trace).outcome is expected


def test_the_command_line_must_not_speak_python():
    case = InputCase(name="x", verdict=REJECTED, make=Given)
    trace = Trace(refusal="The label column is bad in row 3; give duplicates='keep'.")
    assert judge(case, trace).outcome is Outcome.REJECTED
    assert judge(case, trace, shell=True).outcome is Outcome.OBSCURE


def test_methods_may_refuse_what_they_cannot_do():
    case = InputCase(name="x", verdict=RIGHT, make=Given)
    refusal = Trace(refusal="KOS handles two classes; wrap it: OneVsRest(KOS()).")
    assert judge(case, refusal, binary=True).outcome is Outcome.REJECTED
    assert judge(case, refusal).outcome is Outcome.WRONGLY_REFUSED
    lenient = InputCase(name="x", verdict=Verdict("right", may_refuse=True), make=Given)
    assert judge(lenient, refusal).outcome is Outcome.REJECTED


def test_a_parameter_that_a_method_lacks_must_be_named():
    case = InputCase(name="x", verdict=REJECTED, make=Given)
    trace = Trace(refusal="MajorityVote has no parameter 'tol'; it has none.")
    assert judge(case, trace, lacks="tol").outcome is Outcome.REJECTED
    assert judge(case, trace).outcome is Outcome.OBSCURE


class Broken(DawidSkene):
    """Dawid and Skene's method with one fault."""

    def _fit(self, problem):
        return self.spoil(super()._fit(problem), problem.data)


class DividesByZero(Broken):
    def spoil(self, result, labels):
        np.zeros(1) / np.zeros(1)
        return result


class Accepts(Broken):
    def _validate_parameters(self):
        pass

    def spoil(self, result, labels):
        return result


class ForgetsNames(Broken):
    def spoil(self, result, labels):
        if "nan" in labels.classes.tolist():
            result.probas[:] = result.probas[:, ::-1].copy()
        return result


class Raises(Broken):
    def spoil(self, result, labels):
        if labels.n_tasks == 1:
            raise IndexError("list index out of range")
        return result


class SaysNothing(Broken):
    def spoil(self, result, labels):
        raise DataError("Bad data.")


@pytest.mark.parametrize(
    ("method", "name", "outcome"),
    [
        (DividesByZero, "a mapping of lists", Outcome.OBSCURE),
        (Accepts, "tol of NaN", Outcome.SILENTLY_ACCEPTED),
        (ForgetsNames, "a class named nan", Outcome.SILENTLY_WRONG),
        (Raises, "one annotation", Outcome.OBSCURE),
        (SaysNothing, "one annotation", Outcome.OBSCURE),
    ],
)
def test_a_broken_method_is_noticed(method, name, outcome):
    case = next(case for case in INPUT_CASES if case.name == name)
    make, given = maker(method), case.make()
    assert judged(case, given, try_python(given, make), make).outcome is outcome


def test_the_check_fails_at_the_first_bad_outcome():
    message = r"check_inputs \(DividesByZero\): a class named label: obscure: RuntimeWarning"
    with pytest.raises(AssertionError, match=message):
        check_inputs(maker(DividesByZero))


def test_traces_tell_what_was_said():
    given = Given(data={"task": ["t", "t"], "worker": ["a", "a"], "label": ["x", "y"]})
    trace = try_python(given, maker(DawidSkene))
    assert trace.labels == {"t": "y"}
    assert "repeat a (task, worker) pair" in trace.warnings[0]
    assert trace.finite
