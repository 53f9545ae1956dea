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
from wisecrowd.kinds.boxes.answers import SIDES
from wisecrowd.kinds.boxes.simulate import boxes
from wisecrowd.kinds.masks.simulate import WORKER_HABITS, masks
from wisecrowd.kinds.numbers.simulate import numbers
from wisecrowd.kinds.ordered.simulate import graded_responses
from wisecrowd.kinds.pairs.simulate import VoteWorkers, votes
from wisecrowd.kinds.same.simulate import same_votes
from wisecrowd.kinds.sequences.simulate import MISTAKES, sequences
from wisecrowd.kinds.sets.simulate import sets
from wisecrowd.kinds.texts.simulate import WORD_MISTAKES, texts
from wisecrowd.simulate.folder import SIMULATION_MARK, is_simulated
from wisecrowd.simulate.presets import assignment as named_assignment
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
    kind : str
        Name of the kind, such as "numbers", "ordered", "pairs" or "sequences".
    n_tasks : int
        Number of tasks; of pairs and sameness, the number of votes.
    n_workers : int
    assignment : str
        The graph by name, such as "per-task:5"; not for pairs and sameness.
    seed : int
    params : mapping of name to value
        Parameters of the function of :mod:`wisecrowd.simulate` that draws this kind; of pairs,
        those of ``votes`` and ``VoteWorkers``.
    classes : sequence of str, optional
        Names of ordered classes, the lowest first, or of the classes of boxes.

    Examples
    --------
    >>> simulate_kind("numbers", 10, 4, "per-task:3", 0, {"bias": 0.5}).data
    CrowdNumbers(10 tasks, 4 workers, 30 annotations)
    """
    asked = _Asked(n_tasks, n_workers, assignment, seed, dict(params), classes)
    data, truth, workers = SIMULATORS[kind](asked)
    settings = {"type": kind, "tasks": n_tasks, "workers": n_workers, **params, "seed": seed}
    return Simulation(data, truth, {"worker": data.workers, **workers}, settings)


# ------------------------------------------------------------------------------- one per kind


class _Asked(NamedTuple):
    """Sizes, seed, parameters that are not used yet, and names of classes."""

    n_tasks: int
    n_workers: int
    assignment: str
    seed: int
    given: dict[str, Any]
    classes: Sequence[str] | None

    def draw(self, function: Callable[..., Any], **options: Any) -> Any:
        """Call a simulator of tasks and workers with the parameters given for it."""
        options |= _taken(function, self.given)
        _refuse(self.given, function)
        graph = named_assignment(self.assignment)
        return function(self.n_tasks, self.n_workers, graph, random_state=self.seed, **options)

    @property
    def named(self) -> dict[str, Any]:
        """The names of classes as an option, if there are any."""
        return {} if self.classes is None else {"classes": list(self.classes)}


_Drawn = tuple[Annotations, Mapping[str, Any], Mapping[str, Any]]  # data, truth, workers


def _pairs(asked: _Asked) -> _Drawn:
    given = asked.given
    people = _taken(VoteWorkers, given)
    options = {"n_items": given.pop("n_items", 20), **_taken(votes, given)}
    _refuse(given, votes, VoteWorkers, also=("n_items",))
    made = votes(
        n_workers=asked.n_workers, n_votes=asked.n_tasks, workers=VoteWorkers(**people),
        random_state=asked.seed, **options,
    )  # fmt: skip
    truth = {"item": made.pairs.items, "score": made.scores}
    habits = {"discrimination": made.discrimination, "side": made.side}
    return made.pairs, truth, habits | {"adversary": made.is_adversary}


def _same(asked: _Asked) -> _Drawn:
    given = asked.given
    options = {"n_items": given.pop("n_items", 50), **_taken(same_votes, given)}
    _refuse(given, same_votes, also=("n_items",))
    made = same_votes(
        n_workers=asked.n_workers, n_votes=asked.n_tasks, random_state=asked.seed, **options
    )
    truth = {"item": made.data.items, "cluster": made.cluster}
    return made.data, truth, {"same_rate": made.same_rate, "different_rate": made.different_rate}


def _sequences(asked: _Asked) -> _Drawn:
    made = asked.draw(sequences)
    truth = {"task": made.data.tasks, "label": made.truth}
    return made.data, truth, dict(zip(MISTAKES, made.mistakes.T, strict=True))


def _sets(asked: _Asked) -> _Drawn:
    made = asked.draw(sets, **asked.named)
    truth = {"task": made.data.tasks, "label": made.truth}
    rates = {"sensitivity": made.sensitivity, "false_alarms": made.false_alarm}
    return made.data, truth, {name: values.mean(axis=1) for name, values in rates.items()}


def _boxes(asked: _Asked) -> _Drawn:
    made = asked.draw(boxes, **asked.named)
    truth = made.truth.to_dict()
    del truth["worker"]
    sides = {f"bias_{name}": made.bias[:, k] for k, name in enumerate(SIDES)}
    habits = {"miss": made.miss, "phantoms": made.phantoms, "noise": made.noise}
    return made.data, truth, habits | sides


def _texts(asked: _Asked) -> _Drawn:
    made = asked.draw(texts)
    truth = {"task": made.data.tasks, "text": made.truth}
    return made.data, truth, dict(zip(WORD_MISTAKES, made.mistakes.T, strict=True))


def _masks(asked: _Asked) -> _Drawn:
    made = asked.draw(masks)
    truth = {"task": made.data.tasks, "mask": made.truth}
    return made.data, truth, dict(zip(WORKER_HABITS, made.habits.T, strict=True))


def _numbers(asked: _Asked) -> _Drawn:
    made = asked.draw(numbers)
    truth = {"task": made.data.tasks, "label": made.truth}
    return made.data, truth, {"bias": made.bias, "noise": made.noise}


def _grades(asked: _Asked) -> _Drawn:
    made = asked.draw(graded_responses)
    data, answers = made.labels, made.truth
    if asked.classes is not None:
        named = np.array(list(asked.classes), dtype=object)
        data, answers = replace(data, classes=named), named[answers]
    return data, {"task": data.tasks, "label": answers}, {"bias": made.bias, "spread": made.spread}


SIMULATORS: dict[str, Callable[[_Asked], _Drawn]] = {
    "numbers": _numbers,
    "ordered": _grades,
    "pairs": _pairs,
    "sequences": _sequences,
    "sets": _sets,
    "boxes": _boxes,
    "same": _same,
    "texts": _texts,
    "masks": _masks,
}


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
