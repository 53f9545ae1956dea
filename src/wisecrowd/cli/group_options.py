"""Options on attributes of tasks and workers, and on decisions with bounded gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.annotations import Annotations

    Data = TypeVar("Data", bound=Annotations)

AttributesFile = Annotated[
    str | None,
    typer.Option(
        "--attributes", metavar="FILE", help="Attributes of tasks: task, and one column for each."
    ),
]
WorkerAttributesFile = Annotated[
    str | None,
    typer.Option("--worker-attributes", metavar="FILE", help="Attributes of workers: worker, ..."),
]
AttributeNames = Annotated[
    list[str] | None,
    typer.Option(
        "--attribute", metavar="NAME", help="Attribute whose groups are compared; repeatable."
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive", metavar="CLASS", help="Class that is given or refused (default: the last)."
    ),
]


@dataclass(frozen=True, kw_only=True)
class GroupOptions:
    """Options that name the groups of tasks to compare."""

    attributes: AttributesFile = None
    worker_attributes: WorkerAttributesFile = None
    attribute: AttributeNames = None
    positive: Positive = None

    def sources(self) -> list[str]:
        """Return the files to read."""
        return [one for one in (self.attributes, self.worker_attributes) if one is not None]

    def check(self, *, of_workers: bool = False) -> None:
        """Refuse names without a file, and attributes of workers where nothing reads them."""
        from wisecrowd.core.exceptions import ParameterError

        if self.worker_attributes is not None and not of_workers:
            raise ParameterError("--worker-attributes is for wisecrowd report; leave it out.")
        if self.attribute and self.attributes is None:
            raise ParameterError("--attribute names a column of --attributes; give that file.")
        if self.positive is not None and self.attributes is None:
            raise ParameterError("--positive is for groups of tasks; give --attributes.")

    def attached(self, data: Data) -> Data:
        """Return the annotations with the attributes in the files."""
        from wisecrowd.core.attributes import with_task_attributes, with_worker_attributes

        if self.attributes is not None:
            data = with_task_attributes(data, self._asked_columns(self.attributes))
        if self.worker_attributes is not None:
            data = with_worker_attributes(data, attribute_table(self.worker_attributes))
        return data

    def _asked_columns(self, path: str) -> dict[str, list[Any]]:
        """Return the ids and the attributes asked for, by default all."""
        from wisecrowd.core.exceptions import ParameterError
        from wisecrowd.core.messages.descriptions import suggestion

        table = attribute_table(path)
        for name in self.attribute or []:
            if name not in table:
                raise ParameterError(
                    f"--attributes has no column {name!r}{suggestion(name, list(table))}; there "
                    f"are {', '.join(table)}."
                )
        wanted = {"task", *(self.attribute or table)}
        return {name: values for name, values in table.items() if name in wanted}

    def part_options(self) -> dict[str, dict[str, Any]]:
        """Return the options of the part of an audit that compares groups."""
        if self.attributes is None:
            return {}
        given = {"attributes": self.attribute, "positive": self.positive}
        return {"group-gaps": {name: value for name, value in given.items() if value}}


def attribute_table(path: str) -> dict[str, list[Any]]:
    """Read a file of attributes as columns."""
    from wisecrowd.io.tables import read_frame

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
    import numpy as np

    from wisecrowd.core.attributes import aligned_columns, as_groups
    from wisecrowd.core.exceptions import ParameterError
    from wisecrowd.core.messages.descriptions import suggestion
    from wisecrowd.metrics.fairness import by_group

    known = {str(one): place for place, one in enumerate(np.asarray(tasks).tolist())}
    table = asked._asked_columns(str(asked.attributes))
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


@dataclass(frozen=True, kw_only=True)
class FairOptions(GroupOptions):
    """Options that bound the gap between groups of tasks."""

    fair: Annotated[
        str | None,
        typer.Option(
            "--fair",
            metavar="demographic-parity=EPSILON",
            help="Decide so that the groups of --attribute differ by at most EPSILON in the rate "
            "of each class.",
        ),
    ] = None

    def check(self, *, of_workers: bool = False) -> None:
        """Refuse a bound without groups, one that is not a number, and a class without a bound."""
        from wisecrowd.core.exceptions import ParameterError

        super().check(of_workers=of_workers)
        if self.positive is not None and self.fair is None:
            raise ParameterError("--positive belongs to --fair; give that too, or leave it out.")
        if self.fair is not None:
            self._bound()

    def _bound(self) -> float:
        from wisecrowd.core.exceptions import ParameterError

        name, _, value = str(self.fair).partition("=")
        if self.attributes is None or len(self.attribute or []) != 1:
            raise ParameterError("--fair needs --attributes FILE and one --attribute NAME.")
        try:
            bound = float(value)
        except ValueError:
            bound = -1.0
        if name != "demographic-parity" or not 0 <= bound <= 1:
            raise ParameterError(
                f"--fair is {self.fair!r}; give the constraint demographic-parity and, after an "
                "equals sign, a number from 0 to 1."
            )
        return bound

    def decided(self, table: dict[str, Any], model: Any, labels: Any, notes: Notes) -> Any:
        """Return the table of tasks with decisions that keep the bound.

        Tasks are ranked by the share of votes, weighted by the accuracy of workers.
        """
        from wisecrowd.core.attributes import task_groups
        from wisecrowd.core.exceptions import ParameterError
        from wisecrowd.fairness.decisions import decide, vote_scores

        if self.fair is None:
            return table
        if "label" not in table or not hasattr(model, "worker_accuracy_"):
            raise ParameterError(
                f"--fair is for classes and methods with worker accuracies, and "
                f"{type(model).__name__} has none; use another method."
            )
        attribute = (self.attribute or [""])[0]
        groups = task_groups(labels, attribute)
        classes = [str(one) for one in labels.classes.tolist()]
        positive = None
        if self.positive is not None:
            if self.positive not in classes:
                raise ParameterError(
                    f"--positive is {self.positive!r}; the classes are {', '.join(classes)}."
                )
            positive = labels.classes[classes.index(self.positive)]
        found = decide(
            vote_scores(labels, model), groups, epsilon=self._bound(), classes=labels.classes,
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
