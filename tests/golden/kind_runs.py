"""Runs of the commands on a stored crowd of every kind besides classes, by every method.

``inputs/kinds`` has two crowds of each kind: one with four labels per task, and a thin one with
some tasks of a single label. Stored are the results of every method on both, and an audit, a
comparison, a report and an evaluation of the first.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tests.golden.command_runs import run_lines
from tests.golden.results import HERE

from wisecrowd.core.kinds import KINDS, Kind
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.io.writing import write_table
from wisecrowd.kinds import LABELS
from wisecrowd.kinds.pairs.container import CrowdPairs

CROWDS = HERE / "inputs" / "kinds"
NAMES = tuple(name for name in KINDS if name != LABELS)


def lines_of(kind: str) -> dict[str, list[str]]:
    """Return the command lines of a kind by case."""
    read = "--scale 1..4" if kind == "ordered" else f"--type {kind}"
    given, thin = f"{kind}.csv {read}", f"{kind}_thin.csv {read}"
    default = KINDS[kind].default_method
    methods = {
        name: [f"aggregate {one} -m {name} -q --json{_seed(name)}" for one in (given, thin)]
        for name in method_names(type=kind)
    }
    others = [name for name in methods if name != default] or [default]
    table = read if kind == "ordered" else ""
    return methods | {
        "audit": [f"audit {given} --json -q"],
        "compare": [f"compare {given} --json -q"],
        "report": [f"report {given} --json -q"],
        "evaluate": [
            f"aggregate {given} -q -o first.csv",
            f"aggregate {given} -m {others[0]} -q -o second.csv",
            f"evaluate first.csv --truth second.csv {table} --json -q",
        ],
    }


def _seed(method: str) -> str:
    return " --seed 0" if "random_state" in get_method(method)().get_params() else ""


def run_kind(kind: str, case: str, folder: Path) -> dict[str, Any]:
    """Run a case of a kind in an empty folder; return what it printed and wrote."""
    return run_lines(lines_of(kind)[case], sorted(CROWDS.glob(f"{kind}*.csv")), folder)


def runs_of_kind(kind: str) -> dict[str, Any]:
    """Return what is stored of a kind, by case."""
    found = {}
    for case in lines_of(kind):
        with tempfile.TemporaryDirectory() as folder:
            found[case] = run_kind(kind, case, Path(folder))
    return found


def write_crowds() -> None:
    """Write the two crowds of every kind, from the simulators of the common checks."""
    CROWDS.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        kind: Kind = KINDS[name]
        for seed, suffix in enumerate(("", "_thin")):
            table = kind.example_crowd(get_method(kind.default_method), seed).to_dict()
            if kind.container is CrowdPairs:  # some methods learn from the order of votes
                table["timestamp"] = list(range(len(table["task"])))
            columns = _thinned(table) if suffix else table
            write_table(CROWDS / f"{name}{suffix}.csv", columns)


def _thinned(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels of two in five pairs of a task and a worker."""
    ids = ([str(one) for one in table[name]] for name in ("task", "worker"))
    task, worker = (np.unique(names, return_inverse=True)[1] for names in ids)
    kept = np.flatnonzero((task + worker) % 5 < 2)
    return {name: [values[i] for i in kept] for name, values in table.items()}
