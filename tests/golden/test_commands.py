"""Stored results of every command: exit codes, printed text and written files.

On the kind of machine that wrote them, text is the same and numbers agree to 1e-10. Elsewhere
numbers in text agree to about the last digit printed, others to 1e-7, with the exceptions in
``LOOSER``.
"""

from __future__ import annotations

import math

import pytest
from tests.golden import machine
from tests.golden.command_runs import CASES, masked, options_of, read_runs, run_case
from tests.golden.results import write_again
from tests.printed_numbers import same_output

PRINTED = 2e-5  # relative: estimates in text have six digits, the last of which may round otherwise
# PyTorch chooses its kernels by processor, and training multiplies what they round differently.
LOOSER = {"train": 1e-3, "predict": 1e-3, "compare": 1e-3}
# A simulator draws from floats, so that another processor may draw another label.
DRAWN = "simulate"


def differences(found, stored, tolerance, where=""):
    """Return where two JSON values differ; a tolerance of more than 1e-10 means another machine."""
    if isinstance(stored, dict) and isinstance(found, dict):
        if list(found) != list(stored):
            return [f"{where}: {list(found)} instead of {list(stored)}"]
        pairs = [(f"{where}.{name}", found[name], stored[name]) for name in stored]
        return [line for x, a, b in pairs for line in differences(a, b, tolerance, x)]
    if isinstance(stored, list) and isinstance(found, list) and len(found) == len(stored):
        both = zip(found, stored, strict=True)
        pairs = [(f"{where}[{i}]", a, b) for i, (a, b) in enumerate(both)]
        return [line for x, a, b in pairs for line in differences(a, b, tolerance, x)]
    if same_value(found, stored, tolerance):
        return []
    return [f"{where}: {found!r} instead of {stored!r}"]


def same_value(found, stored, tolerance):
    """Tell whether two values that are not containers agree."""
    if isinstance(stored, float) and isinstance(found, float):
        return found == stored or math.isclose(found, stored, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(stored, str) and isinstance(found, str) and tolerance > machine.SAME_MACHINE:
        loose = max(tolerance, PRINTED)
        return same_output(" ".join(stored.split()), " ".join(found.split()), loose)
    return type(found) is type(stored) and found == stored


@pytest.mark.parametrize(
    ("command", "case"), [(command, case) for command in CASES for case in CASES[command]]
)
def test_commands_give_what_is_stored(command, case, tmp_path):
    if command in ("train", "predict") or case == "learners":
        pytest.importorskip("torch")
    written_by, stored = read_runs(command)
    found = run_case(command, case, tmp_path)
    tolerance = machine.tolerance(written_by)
    if tolerance > machine.SAME_MACHINE:
        if command == DRAWN:
            assert list(found["files"]) == list(stored[case]["files"])
            assert [x["code"] for x in found["lines"]] == [x["code"] for x in stored[case]["lines"]]
            return
        tolerance = LOOSER.get(command, tolerance)
    assert not differences(found, stored[case], tolerance), write_again(command)


@pytest.mark.parametrize("command", CASES)
def test_every_option_and_case_is_stored(command):
    stored = read_runs(command)[1]
    assert options_of(command) == stored.pop("options"), write_again(command)
    assert list(stored) == list(CASES[command]), write_again(command)


@pytest.mark.parametrize(
    ("found", "stored", "same_here", "same_elsewhere"),
    [
        ({"a": [1.0, "x 0.25"]}, {"a": [1.0, "x 0.25"]}, True, True),
        ({"a": 1.0}, {"a": 1.0 + 1e-8}, False, True),
        ({"a": 1.0}, {"a": 1.0 + 1e-6}, False, False),
        ({"a": 1}, {"a": 2}, False, False),
        ({"a": 1}, {"a": True}, False, False),
        ({"a": 1}, {"b": 1}, False, False),
        ([1, 2], [1], False, False),
        ("x 0.123456", "x 0.123457", False, True),
        ("x 0.1234", "x 0.1235", False, False),
        ("x 12", "x 13", False, False),
        ("cat", "dog", False, False),
        (None, 0.0, False, False),
    ],
)
def test_differences_are_found(found, stored, same_here, same_elsewhere):
    assert (not differences(found, stored, machine.SAME_MACHINE)) is same_here
    assert (not differences(found, stored, machine.ELSEWHERE)) is same_elsewhere


def test_only_times_versions_and_digests_are_masked():
    assert masked({"created": "now", "a": [{"sha256": "0f", "b": 1}]}) == {
        "created": "(masked)", "a": [{"sha256": "(masked)", "b": 1}]
    }  # fmt: skip
