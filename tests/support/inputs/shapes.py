"""Cases of shapes: one of everything, far too many of one thing, and groups that never meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.support.inputs.case import (
    Given,
    InputCase,
    Verdict,
    columns,
    expected,
    parquet_of,
    rejected,
    right,
    table_case,
    typed_case,
)

MANY_CLASSES = 100_000
MANY_LABELS = 1_000_000


def _table(tasks: Any, workers: Any, labels: Any) -> dict[str, list[Any]]:
    return {"task": list(tasks), "worker": list(workers), "label": list(labels)}


def _groups() -> dict[str, list[Any]]:
    """Return two base crowds that share neither tasks nor workers."""
    first, second = columns(), columns()
    return {
        "task": first["task"] + [f"other-{x}" for x in second["task"]],
        "worker": first["worker"] + [f"other-{x}" for x in second["worker"]],
        "label": first["label"] + second["label"],
    }


def _small_cases() -> list[InputCase]:
    twelve = [f"t{i:02d}" for i in range(12)]
    names = ["cat", "dog"] * 6
    both = expected() | {f"other-{task}": label for task, label in expected().items()}
    base = columns()
    once = {role: [*values, extra] for (role, values), extra
            in zip(base.items(), ("t01", "eve", "dog"), strict=True)}  # fmt: skip
    return [
        table_case("one annotation", right({"t": "cat"}, may_refuse=True),
                   _table(["t"], ["w"], ["cat"])),
        table_case("one task", right({"t": "cat"}, may_refuse=True),
                   _table("ttt", "abc", ["cat", "cat", "dog"])),
        table_case("one worker", right(dict(zip(twelve, names, strict=True)), may_refuse=True),
                   _table(twelve, ["w"] * 12, names)),
        table_case("one class", right(dict.fromkeys(twelve, "cat"), may_refuse=True),
                   _table(base["task"], base["worker"], ["cat"] * 48)),
        table_case("a worker for every label", right(may_refuse=True),
                   base | {"worker": [f"w{e}" for e in range(48)]}),
        table_case("a worker who answered one task", right(), once),
        table_case("one label per task",
                   right(dict(zip(twelve, names, strict=True)), may_refuse=True),
                   _table(twelve, ["a", "b", "c"] * 4, names)),
        table_case("groups that never meet", right(both, may_refuse=True), _groups()),
        table_case("two workers who always disagree", right({}, may_refuse=True),
                   _table([t for t in twelve for _ in "ab"], ["a", "b"] * 12,
                          [c for i in range(12) for c in (names[i], names[i - 1])])),
        table_case("a class chosen once", right(may_refuse=True),
                   base | {"label": [*base["label"][:7], "cow", *base["label"][8:]]}),
        table_case("more workers than tasks", right({"t": "cat"}, may_refuse=True),
                   _table(["t"] * 40, [f"w{j}" for j in range(40)], ["cat"] * 30 + ["dog"] * 10)),
        table_case("rows in another order", right(),
                   {role: values[::-1] for role, values in base.items()}),
    ]  # fmt: skip


def _unlabelled_cases() -> list[InputCase]:
    def nothing() -> Mapping[str, NDArray[Any]]:
        return {role: np.empty(0, dtype=np.int64) for role in ("task", "worker", "label")}

    return [
        table_case("tasks and workers without labels", right(may_refuse=True),
                   options={"tasks": [*expected(), "t98"], "workers":
                            ["ann", "bob", "cem", "dee", "eve"]}, file=None),
        typed_case("columns of no rows", rejected("no", "rows"), nothing),
    ]  # fmt: skip


def _costly(name: str, verdict: Verdict, make_table: Any) -> InputCase:
    def make() -> Given:
        table = make_table()
        return Given(data=tuple(table.values()), file=parquet_of(table))

    return InputCase(name=name, verdict=verdict, make=make, costly=True)


def _many_classes() -> dict[str, NDArray[Any]]:
    """Return tasks whose three labels are two of one class and one of another, never used again."""
    n = MANY_CLASSES // 2
    task = np.repeat(np.arange(n), 3)
    label = np.where(np.arange(3 * n) % 3 == 2, n + task, task)
    return {"task": task, "worker": np.tile(np.arange(3), n), "label": label}


def _busy_task() -> dict[str, NDArray[Any]]:
    """Return one task with very many labels, four of five of one class, and the base crowd."""
    base = columns(tasks=range(1, 13), workers=range(4), classes=(0, 1))
    many = np.arange(MANY_LABELS)
    return {
        "task": np.concatenate([np.zeros(MANY_LABELS, np.int64), base["task"]]),
        "worker": np.concatenate([many, base["worker"]]),
        "label": np.concatenate([many % 5 == 0, base["label"]]).astype(np.int64),
    }


def _busy_worker() -> dict[str, NDArray[Any]]:
    """Return one worker who labels very many tasks, beside the base crowd.

    Of task 8, where this worker says what nobody else does, either label may come out.
    """
    base = columns(tasks=range(12), workers=range(4), classes=(0, 1))
    tasks = 12 + np.arange(MANY_LABELS // 10)
    return {
        "task": np.concatenate([base["task"], tasks]),
        "worker": np.concatenate([base["worker"], np.zeros(len(tasks), np.int64)]),
        "label": np.concatenate([base["label"], tasks % 2]),
    }


def _costly_cases() -> list[InputCase]:
    half = range(MANY_CLASSES // 2)
    base = expected(range(1, 13), (0, 1))
    return [
        _costly("100 000 classes", right(dict(zip(half, half, strict=True)), may_refuse=True),
                _many_classes),
        _costly("one task with a million labels", right(base | {0: 0}, may_refuse=True),
                _busy_task),
        _costly("one worker with 100 000 labels",
                right({i: i % 2 for i in range(12 + MANY_LABELS // 10) if i != 8},
                      may_refuse=True),
                _busy_worker),
    ]  # fmt: skip


CASES = (*_small_cases(), *_unlabelled_cases(), *_costly_cases())
