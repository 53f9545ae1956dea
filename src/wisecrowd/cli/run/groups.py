"""Groups of tasks and workers: attributes from files, scores by group, and bounded gaps."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from wisecrowd.cli.options.groups import FairOptions, GroupOptions
from wisecrowd.cli.terminal import Notes
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.attributes import (
    aligned_columns,
    as_groups,
    task_groups,
    with_task_attributes,
    with_worker_attributes,
)
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.io.tables import read_frame

Data = TypeVar("Data", bound=Annotations)


def with_groups(data: Data, asked: GroupOptions) -> Data:
    """Return the annotations with the attributes in the files."""
    if asked.attributes is not None:
        data = with_task_attributes(data, _asked_columns(asked))
    if asked.worker_attributes is not None:
        data = with_worker_attributes(data, attribute_table(asked.worker_attributes))
    return data


def _asked_columns(asked: GroupOptions) -> dict[str, list[Any]]:
    """Return the ids and the attributes asked for, by default all."""
    table = attribute_table(str(asked.attributes))
    for name in asked.attribute or []:
        if name not in table:
            raise ParameterError(
                f"--attributes has no column {name!r}{suggestion(name, list(table))}; there "
                f"are {', '.join(table)}."
            )
    wanted = {"task", *(asked.attribute or table)}
    return {name: values for name, values in table.items() if name in wanted}


def attribute_table(path: str) -> dict[str, list[Any]]:
    """Read a file of attributes as columns."""
    frame = read_frame(path)
    return {name: frame[name].to_pylist() for name in frame.column_names}


def group_scores(
    tasks: Any, said: Any, truth: Any, asked: GroupOptions, notes: Notes
) -> dict[str, Any]:
    """Return the metrics by group of a file of labels, for each attribute asked for.

    Parameters
    ----------
    tasks, said : (n,) ids and labels
    truth : (n,) true classes
    """
    from wisecrowd.metrics.fairness import by_group

    known = {str(one): place for place, one in enumerate(np.asarray(tasks).tolist())}
    table = _asked_columns(asked)
    kept = [row for row, one in enumerate(table.get("task", [])) if str(one) in known]
    table = {name: [values[row] for row in kept] for name, values in table.items()}
    columns = aligned_columns(table, np.asarray(tasks), "task")
    classes = sorted({str(one) for one in [*said, *truth]})
    positive = classes[-1] if asked.positive is None else asked.positive
    if positive not in classes:
        raise ParameterError(
            f"--positive is {positive!r}{suggestion(positive, classes)}; the classes are "
            f"{', '.join(classes)}."
        )
    found = {}
    for name, column in columns.items():
        groups = as_groups(column, name)
        true, given = (np.array([str(one) for one in values], object) for values in (truth, said))
        found[name] = by_group(true, given, groups, positive=positive)
        for note in found[name].notes:
            notes(f"{name}: {note[0].lower()}{note[1:]}")
    return found


def with_bounded_gaps(
    table: dict[str, Any], asked: FairOptions, model: Any, labels: Any, notes: Notes
) -> Any:
    """Return the table of tasks with decisions that keep the bound.

    Tasks are ranked by the share of votes, weighted by the accuracy of workers.
    """
    if asked.fair is None:
        return table
    from wisecrowd.fairness.decisions import decide, vote_scores

    if "label" not in table or not hasattr(model, "worker_accuracy_"):
        raise ParameterError(
            f"--fair is for classes and methods with worker accuracies, and "
            f"{type(model).__name__} has none; use another method."
        )
    attribute = (asked.attribute or [""])[0]
    groups = task_groups(labels, attribute)
    classes = [str(one) for one in labels.classes.tolist()]
    positive = None
    if asked.positive is not None:
        if asked.positive not in classes:
            raise ParameterError(
                f"--positive is {asked.positive!r}; the classes are {', '.join(classes)}."
            )
        positive = labels.classes[classes.index(asked.positive)]
    found = decide(
        vote_scores(labels, model), groups, epsilon=asked.bound(), classes=labels.classes,
        positive=positive,
    )  # fmt: skip
    notes(
        f"groups of {attribute} differ by {found.gap:.3f} at most; {int(found.changed.sum())} "
        f"decisions changed, and the weighted share of votes behind the decisions from "
        f"{found.free_accuracy:.3f} to {found.expected_accuracy:.3f}"
    )
    for note in found.notes:
        notes(note)
    return {**table, "label": found.labels, "changed_by_fairness": found.changed}
