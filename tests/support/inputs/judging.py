"""Try an input on a method, from Python or from the command line, and judge what came of it."""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import math
import re
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.inputs.case import Given, InputCase, Verdict

from wisecrowd.cli import main
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import WisecrowdError, WisecrowdWarning
from wisecrowd.core.registry import get_method
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.testing.foundation import Make, with_params

BUDGET = 30.0  # seconds of processor time that any input may take
# How a method is fitted does not matter here, only to what: one start and few draws will do.
BRIEF = {"n_init": 1, "n_chains": 4, "n_sweeps": 50, "n_burn_in": 25}


class Outcome(Enum):
    """What came of an input; the first three are good."""

    RIGHT = "right"
    REJECTED = "rejected clearly"
    WARNED = "answered with a warning"
    OBSCURE = "obscure"
    SILENTLY_WRONG = "silently wrong"
    SILENTLY_ACCEPTED = "silently accepted"
    OVERCONFIDENT = "overconfident"
    NOT_A_NUMBER = "NaN"
    OVER_BUDGET = "over budget"
    WRONGLY_REFUSED = "wrongly refused"

    @property
    def good(self) -> bool:
        """Whether this is what should come of an input."""
        return self in (Outcome.RIGHT, Outcome.REJECTED, Outcome.WARNED)


@dataclass
class Trace:
    """What a method did with an input.

    Attributes
    ----------
    refusal : str or None
        The message, if the input was refused by a sentence meant for the user.
    failure : str or None
        The error, if it was any other.
    warnings : list of str
        What the user was warned of.
    labels : mapping of task to class, or None
    finite : bool
        Whether all probabilities and accuracies are numbers.
    seconds : float
    """

    refusal: str | None = None
    failure: str | None = None
    warnings: list[str] = field(default_factory=list)
    labels: Mapping[Any, Any] | None = None
    finite: bool = True
    seconds: float = 0.0


@dataclass(frozen=True)
class CaseResult:
    """An outcome, and why."""

    outcome: Outcome
    detail: str = ""


# --------------------------------------------------------------------------------------- trying it


@contextlib.contextmanager
def _watched(trace: Trace) -> Any:
    """Fill in what every attempt has: time, warnings, and errors that are nobody's sentence."""
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")  # a division by zero is no answer
        warnings.filterwarnings("always", category=WisecrowdWarning)
        try:
            yield
        except WisecrowdError as error:
            trace.refusal = str(error)
        except Exception as error:  # whatever it is, it is what the user would see
            trace.failure = f"{type(error).__name__}: {error}"
    trace.warnings += [str(warning.message) for warning in caught]
    trace.seconds = time.process_time() - start


def try_python(given: Given, make: Make) -> Trace:
    """Fit a method to what Python is given."""
    trace = Trace()
    with _watched(trace):
        method = with_params(make, **BRIEF).set_params(**given.params)
        fitted = method.fit(_labels(given), **given.fit)
        trace.labels = dict(zip(map(plain, fitted.tasks_), map(plain, fitted.labels_), strict=True))
        trace.finite = _is_finite(fitted)
    return trace


def _labels(given: Given) -> Any:
    if isinstance(given.data, Mapping):
        return CrowdLabels.from_frame(given.data, **given.reading)
    if not given.reading:
        return given.data
    if isinstance(given.data, tuple):
        return CrowdLabels.from_arrays(*given.data, **given.reading)
    return CrowdLabels.from_matrix(given.data, **given.reading)


def _is_finite(fitted: Aggregator) -> bool:
    stored = fitted.probas_.data if hasattr(fitted.probas_, "tocsr") else fitted.probas_
    numbers = (stored, fitted.worker_accuracy_, fitted.worker_accuracy_error_, fitted.confidence_)
    return all(bool(np.isfinite(values).all()) for values in numbers)


def try_command_line(given: Given, method: str, folder: Path) -> Trace:
    """Run ``wisecrowd aggregate`` in this process on the files of a case."""
    assert given.file is not None
    name, content = given.file
    (folder / name).write_bytes(content)
    arguments = ["aggregate", str(folder / name), "-m", method, "--json", *given.arguments]
    own = get_method(method)().get_params(deep=False)
    for parameter in BRIEF.keys() & own.keys() - given.params.keys():
        arguments += ["-p", f"{parameter}={BRIEF[parameter]}"]
    if given.gold is not None:
        (folder / "gold.csv").write_bytes(given.gold)
        arguments += ["--gold", str(folder / "gold.csv")]
    out, err = _Captured(), _Captured()
    trace = Trace()
    with (
        _watched(trace),
        contextlib.redirect_stdout(out.stream),
        contextlib.redirect_stderr(err.stream),
    ):
        code = main.run(arguments)
        told = err.text().replace(f"{folder}/", "").splitlines()
        if code == 0:
            _read_result(trace, json.loads(out.text()), told)
        elif code in (2, 3) and told and told[-1].startswith("wisecrowd: "):
            trace.refusal = told[-1].removeprefix("wisecrowd: ")
            trace.warnings += told[:-1]
        else:
            trace.failure = f"exit code {code}: {told}"
    return trace


class _Captured:
    """A stream of text, and of bytes beneath it, that remembers what was written."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        self.stream = io.TextIOWrapper(self._bytes, encoding="utf-8")

    def text(self) -> str:
        self.stream.flush()
        return self._bytes.getvalue().decode("utf-8", "backslashreplace")


def _read_result(trace: Trace, found: dict[str, Any], told: list[str]) -> None:
    trace.warnings += told
    trace.labels = {row["task"]: row["label"] for row in found["labels"]}
    numbers = [row["confidence"] for row in found["labels"]]
    numbers += [
        row[name]
        for row in found["workers"]
        for name in ("agreement_with_result", "standard_error")
    ]
    trace.finite = all(number is not None and math.isfinite(number) for number in numbers)


def plain(value: Any) -> Any:
    """Return an id as Python's own kind of value, times and days as text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, datetime.date | datetime.timedelta):
        return str(value)
    return value


# ----------------------------------------------------------------------------------------- judging

_PYTHON_OPTION = re.compile(
    r"\b(abstain|classes|duplicates|encoding|format|label|missing|task|type|weight|worker)=['\[-]"
)
_PUNCTUATION = re.compile(r"\?[.;,]|(?<!\.)\.\.(?![./])|;;|,,")


def judge(
    case: InputCase, trace: Trace, *, binary: bool = False, lacks: str = "", shell: bool = False
) -> CaseResult:
    """Judge what came of a case.

    Parameters
    ----------
    case : InputCase
    trace : Trace
    binary : bool
        Whether the method is one of two classes, which may refuse more.
    lacks : str
        The parameter of the case, where the method has none of that name and must say so.
    shell : bool
        Whether it came from the command line.
    """
    verdict = case.verdict
    if trace.failure is not None:
        return CaseResult(Outcome.OBSCURE, trace.failure)
    if trace.seconds > BUDGET:
        return CaseResult(Outcome.OVER_BUDGET, f"{trace.seconds:.1f} s")
    for message in [*trace.warnings, *([trace.refusal] if trace.refusal else [])]:
        fault = _fault(message, shell)
        if fault:
            return CaseResult(Outcome.OBSCURE, f"{fault}: {message}")
    if trace.refusal is not None:
        return _judge_refusal(verdict, trace.refusal, binary=binary, lacks=lacks, shell=shell)
    return _judge_answer(verdict, trace, shell)


def _fault(message: str, shell: bool) -> str:
    if shell and _PYTHON_OPTION.search(message):
        return "the command line speaks Python"
    return "punctuation" if _PUNCTUATION.search(message) else ""


def _words(verdict: Verdict, shell: bool) -> tuple[str, ...]:
    return verdict.shell_words if shell and verdict.shell_words is not None else verdict.words


def _judge_refusal(
    verdict: Verdict, message: str, *, binary: bool, lacks: str, shell: bool
) -> CaseResult:
    if not message.endswith((".", "?", "?)")) or len(message) < 20:
        return CaseResult(Outcome.OBSCURE, f"no sentence: {message}")
    if verdict.kind != "rejected":
        if binary and ("OneVsRest(" in message or "-m one-vs-rest" in message):
            return CaseResult(Outcome.REJECTED, message)
        allowed = verdict.may_refuse and ";" in message  # what is wrong; what to do
        return CaseResult(Outcome.REJECTED if allowed else Outcome.WRONGLY_REFUSED, message)
    words = (f"has no parameter {lacks!r}", "it has") if lacks else _words(verdict, shell)
    lacking = [word for word in words if word not in message]
    if lacking:
        return CaseResult(Outcome.OBSCURE, f"{lacking} not in: {message}")
    return CaseResult(Outcome.REJECTED, message)


def _judge_answer(verdict: Verdict, trace: Trace, shell: bool) -> CaseResult:
    if verdict.kind == "rejected":
        return CaseResult(Outcome.SILENTLY_ACCEPTED, f"{trace.labels!r:.200}")
    if not trace.finite:
        return CaseResult(Outcome.NOT_A_NUMBER)
    if verdict.kind == "warned" and not _is_warned(trace.warnings, _words(verdict, shell)):
        return CaseResult(Outcome.SILENTLY_ACCEPTED, f"warnings are {trace.warnings}")
    wrong = _wrong_labels(verdict.labels or {}, trace.labels or {}, shell)
    if wrong:
        return CaseResult(Outcome.SILENTLY_WRONG, wrong)
    return CaseResult(Outcome.WARNED if verdict.kind == "warned" else Outcome.RIGHT)


def _is_warned(messages: list[str], words: tuple[str, ...]) -> bool:
    return any(all(word in message for word in words) for message in messages)


def _wrong_labels(expected: Mapping[Any, Any], found: Mapping[Any, Any], shell: bool) -> str:
    known = found if not shell else {str(key): value for key, value in found.items()}
    for task, label in expected.items():
        asked = plain(task) if not shell else str(plain(task))
        if asked not in known:
            return f"task {asked!r} is not among {list(known)[:5]}"
        got, want = known[asked], plain(label)
        if got != want and not (shell and str(got) == str(want)):
            return f"task {asked!r} has the label {got!r}, not {want!r}"
        if not shell and type(got) is not type(want):
            return f"the label {got!r} is of type {type(got).__name__}"
    return ""
