"""Cases of labels that are not classes, of several labels per task, and of long arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.support.inputs.case import (
    InputCase,
    columns,
    expected,
    python_case,
    rejected,
    right,
    table_case,
)

Table = dict[str, list[Any]]


def _crowd(labels: list[Any]) -> Table:
    """Return labels of 24 tasks by three workers."""
    return {
        "task": [f"t{i:02d}" for i in range(24) for _ in range(3)],
        "worker": ["ann", "bob", "cem"] * 24,
        "label": labels,
    }


def _texts() -> Table:
    return _crowd([f"the {i // 3} of {i} and {i % 7}" for i in range(72)])


def _counts() -> Table:
    return _crowd([20 * (i // 3) + (i % 3) * 7 for i in range(72)])


def _several_labels() -> Table:
    """Return the base crowd in which everybody also gives the other class to every task."""
    table = columns()
    other = {"cat": "dog", "dog": "cat"}
    table["label"] = table["label"] + [other[label] for label in table["label"]]
    return table | {role: table[role] * 2 for role in ("task", "worker")}


def _kind_cases() -> list[InputCase]:
    fractions = columns(classes=(0.5, 1.5))
    answers = expected(classes=(0.5, 1.5))
    declared: dict[str, Any] = {
        "options": {"type": "labels"}, "arguments": ("--type", "labels"),
    }  # fmt: skip
    boxes = {"task": fractions["task"], "worker": fractions["worker"]}
    boxes |= {name: [i + 0.5 for i in range(48)] for name in ("x", "y", "width", "height")}
    return [
        table_case("fractional numbers",
                   rejected("fractional numbers, first 0.5 in row 1", "numbers", "type='labels'",
                            shell=("fractional numbers", "in row 1 of a.csv", "--type labels")),
                   fractions),
        table_case("fractional numbers declared to be classes", right(answers), fractions,
                   **declared),
        table_case("fractional classes, each named", right(answers), fractions,
                   options={"classes": [0.5, 1.5]}, arguments=("--classes", "0.5,1.5")),
        table_case("a kind of label that is not known",
                   rejected("type is 'sounds'", "type='labels'",
                            shell=("type is 'sounds'", "--type labels")),
                   fractions, options={"type": "sounds"}, arguments=("--type", "sounds")),
        table_case("counts on a long scale",
                   rejected("72 different values in 72 labels", "look like numbers"), _counts()),
        table_case("free text",
                   rejected("72 different values in 72 labels", "look like texts"), _texts()),
        table_case("boxes without a label",
                   rejected("No column looks like the label", "look like boxes",
                            shell=("CrowdRegions", "choose a method")), boxes),
        table_case("a side of boxes as the label", rejected("fractional", "look like boxes"), boxes,
                   options={"label": "x"}, arguments=("--label", "x")),
    ]  # fmt: skip


def _repeat_cases() -> list[InputCase]:
    several = _several_labels()
    return [
        table_case("several labels by one worker for one task",
                   rejected("48 of 48 (task, worker) pairs have different labels", "rows 1, 49",
                            "duplicates='last'", "duplicates='keep'", "type='sets'",
                            shell=("rows 1, 49 of a.csv", "--duplicates last",
                                   "--duplicates keep", "--type sets")), several),
        table_case("several labels, the last of which counts",
                   right(expected(classes=("dog", "cat"))), several,
                   options={"duplicates": "last"}, arguments=("--duplicates", "last")),
    ]  # fmt: skip


def _long_cases() -> list[InputCase]:
    def rows() -> list[list[Any]]:
        return [list(row) for row in zip(*columns().values(), strict=True)]

    def coded() -> Any:
        table = columns(tasks=range(12), workers=range(4), classes=(0, 1))
        return np.column_stack(list(table.values()))

    both = ("48 × 3", "CrowdLabels.from_arrays(", "CrowdLabels.from_matrix(")
    return [
        python_case("a long table as an array of text", rejected(*both), lambda: np.array(rows())),
        python_case("a long table as objects", rejected(*both),
                    lambda: np.array(rows(), dtype=object)),
        python_case("a long table as a list of rows", rejected(*both), rows),
        python_case("a long table of codes", rejected(*both), coded),
    ]  # fmt: skip


CASES = (*_kind_cases(), *_repeat_cases(), *_long_cases())
