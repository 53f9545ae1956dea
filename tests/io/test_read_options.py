"""The options of reading are listed once: in Python, in signatures and on the command line."""

from __future__ import annotations

import inspect

import pytest

import wisecrowd as wc
from wisecrowd.cli.options.reading import AFTERWARDS, Reading
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.io import inspection, packing
from wisecrowd.io.read_options import NAMES, ReadOptions, scale_classes


@pytest.fixture
def graded(tmp_path):
    path = tmp_path / "grades.csv"
    path.write_text("task,worker,label\n1,ann,2\n1,bob,3\n2,ann,10\n2,bob,10\n")
    return path


@pytest.mark.parametrize("scale", ["1..10", [str(grade) for grade in range(1, 11)]])
def test_a_scale_declares_ordered_classes(graded, scale):
    labels = wc.read(graded, scale=scale)
    assert labels.ordered
    assert labels.classes.tolist() == [str(grade) for grade in range(1, 11)]


def test_a_scale_refuses_what_contradicts_it(graded):
    with pytest.raises(ParameterError, match="scale and classes both name the classes"):
        wc.read(graded, scale="1..10", classes=["1", "2"])
    with pytest.raises(ParameterError, match="scale declares ordered classes, and type is numbers"):
        wc.read(graded, scale="1..10", type="numbers")
    with pytest.raises(ParameterError, match="scale is '5'; give the lowest"):
        wc.read(graded, scale="5")


def test_the_ends_of_a_scale():
    assert scale_classes("-1..1") == ["-1", "0", "1"]
    for wrong in ("5..1", "1..", "1..5000", []):
        with pytest.raises(ParameterError, match="grades in order"):
            scale_classes(wrong)


def test_an_unknown_option_is_named(graded):
    with pytest.raises(ParameterError, match="Unknown option 'scal'"):
        wc.read(graded, scal="1..5")


@pytest.mark.parametrize("function", [wc.read, inspection.inspect, packing.pack])
def test_signatures_show_every_option(function):
    assert set(inspect.signature(function).parameters) >= NAMES


def test_the_command_line_has_the_options_of_python():
    given = ReadOptions.of(**Reading().arguments())
    assert given == ReadOptions()
    assert set(vars(Reading())) - set(AFTERWARDS) - {"no_header"} <= {
        *NAMES, "left", "right", "timestamp", "weight",
    }  # fmt: skip
