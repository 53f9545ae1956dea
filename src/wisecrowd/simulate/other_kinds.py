"""Simulated crowds of kinds other than classes by name, and as folders of files."""

from __future__ import annotations

import csv
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd._version import __version__
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.region_answers import SIDES
from wisecrowd.simulate.box_workers import boxes
from wisecrowd.simulate.folder import SIMULATION_MARK, is_simulated
from wisecrowd.simulate.graded_workers import graded_responses
from wisecrowd.simulate.number_workers import numbers
from wisecrowd.simulate.presets import assignment as named_assignment
from wisecrowd.simulate.span_workers import MISTAKES, sequences
from wisecrowd.simulate.vote_workers import VoteWorkers, votes
from wisecrowd.storage.atomic import atomic_directory

Table = Mapping[str, NDArray[Any]]


class Simulation(NamedTuple):
    """A simulated crowd of any kind.

    Attributes
    ----------
    data : Annotations
    truth : mapping of column to values
        Columns of ``truth.csv``.
    workers : mapping of column to values
        Columns of ``workers.csv``: the parameters of every worker.
    settings : mapping
        What the crowd was drawn with.
    """

    data: Annotations
    truth: Table
    workers: Table
    settings: Mapping[str, Any]


def simulate_kind(
    kind: str,
    n_tasks: int,
    n_workers: int,
    assignment: str,
    seed: int,
    params: Mapping[str, Any],
    classes: Sequence[str] | None = None,
) -> Simulation:
    """Simulate a crowd of a kind other than classes.

    Parameters
    ----------
    kind : {"numbers", "ordered", "pairs", "sequences", "boxes"}
    n_tasks : int
        Number of tasks; of pairs, the number of votes.
    n_workers : int
    assignment : str
        The graph by name, such as "per-task:5"; not for pairs.
    seed : int
    params : mapping of name to value
        Parameters of ``simulate.numbers``, ``graded_responses``, ``sequences``, ``boxes``, or
        ``votes`` and ``VoteWorkers``.
    classes : sequence of str, optional
        Names of ordered classes, the lowest first, or of the classes of boxes.

    Examples
    --------
    >>> simulate_kind("numbers", 10, 4, "per-task:3", 0, {"bias": 0.5}).data
    CrowdNumbers(10 tasks, 4 workers, 30 annotations)
    """
    given = dict(params)
    if kind == "pairs":
        people = _taken(VoteWorkers, given)
        options = {"n_items": given.pop("n_items", 20), **_taken(votes, given)}
        _refuse(given, votes, VoteWorkers, also=("n_items",))
        made = votes(
            n_workers=n_workers, n_votes=n_tasks, workers=VoteWorkers(**people),
            random_state=seed, **options,
        )  # fmt: skip
        truth = {"item": made.pairs.items, "score": made.scores}
        workers = {"discrimination": made.discrimination, "side": made.side,
                   "adversary": made.is_adversary}  # fmt: skip
        data: Annotations = made.pairs
    elif kind == "sequences":
        options = _taken(sequences, given)
        _refuse(given, sequences)
        tagged = sequences(
            n_tasks, n_workers, named_assignment(assignment), random_state=seed, **options
        )
        data = tagged.data
        truth = {"task": data.tasks, "label": tagged.truth}
        workers = dict(zip(MISTAKES, tagged.mistakes.T, strict=True))
    elif kind == "boxes":
        options = _taken(boxes, given) | ({} if classes is None else {"classes": list(classes)})
        _refuse(given, boxes)
        drawn = boxes(
            n_tasks, n_workers, named_assignment(assignment), random_state=seed, **options
        )
        data = drawn.data
        truth = drawn.truth.to_dict()
        del truth["worker"]
        sides = {f"bias_{name}": drawn.bias[:, k] for k, name in enumerate(SIDES)}
        workers = {"miss": drawn.miss, "phantoms": drawn.phantoms, "noise": drawn.noise, **sides}
    else:
        function: Callable[..., Any] = numbers if kind == "numbers" else graded_responses
        options = _taken(function, given)
        _refuse(given, function)
        graph = named_assignment(assignment)
        found = function(n_tasks, n_workers, graph, random_state=seed, **options)
        data = found.data if kind == "numbers" else found.labels
        answers = found.truth
        if classes is not None:
            named = np.array(list(classes), dtype=object)
            data, answers = replace(found.labels, classes=named), named[found.truth]
        truth = {"task": data.tasks, "label": answers}
        scale = "noise" if kind == "numbers" else "spread"
        workers = {"bias": found.bias, scale: getattr(found, scale)}
    settings = {"type": kind, "tasks": n_tasks, "workers": n_workers, **params, "seed": seed}
    return Simulation(data, truth, {"worker": data.workers, **workers}, settings)


_SIZES = ("n_tasks", "n_workers", "n_votes", "n_items", "assignment", "workers", "random_state")


def _names(*functions: Any) -> list[str]:
    found = (inspect.signature(function).parameters for function in functions)
    return [name for names in found for name in names if name not in _SIZES]


def _taken(function: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Take the parameters of a function out of those given."""
    return {name: given.pop(name) for name in _names(function) if name in given}


def _refuse(rest: Mapping[str, Any], *functions: Any, also: Sequence[str] = ()) -> None:
    for name in rest:
        known = [*also, *_names(*functions)]
        raise ParameterError(
            f"The simulator has no parameter {name!r}{suggestion(name, known)}; it has "
            f"{', '.join(known)}."
        )


def write_simulation(made: Simulation, folder: str | os.PathLike[str]) -> None:
    """Write answers.csv, truth.csv, workers.csv and SOURCE.md; the folder appears complete."""
    with atomic_directory(folder, is_own_entry=is_simulated) as place:
        for name, table in (
            ("answers.csv", made.data.to_dict()), ("truth.csv", made.truth),
            ("workers.csv", made.workers),
        ):  # fmt: skip
            with (place / name).open("w", encoding="utf-8", newline="") as file:
                rows = csv.writer(file, lineterminator="\n")
                rows.writerow(table)
                rows.writerows(zip(*(np.asarray(x).tolist() for x in table.values()), strict=True))
        lines = [f"# {Path(folder).name}", "", f"{SIMULATION_MARK} {__version__}"]
        lines += [f"- {name}: {value}" for name, value in made.settings.items()]
        (place / "SOURCE.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
