"""Options that say which tasks are neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.aggregator import Aggregator
    from wisecrowd.core.annotations import Annotations
    from wisecrowd.core.labels import CrowdLabels

NEIGHBOUR_NAMES = ("neighbour", "neighbor")


@dataclass(frozen=True, kw_only=True)
class GraphReading:
    """Options for a graph of tasks."""

    graph: Annotated[
        str | None,
        typer.Option(
            "--graph", metavar="FILE",
            help="Table of neighbouring tasks, which tend to share their class: task, neighbour "
            "and, optionally, weight.",
        ),
    ] = None  # fmt: skip
    graph_features: Annotated[
        str | None,
        typer.Option(
            "--graph-features", metavar="FILE",
            help="Features of the tasks; the 10 nearest by cosine are neighbours.",
        ),
    ] = None  # fmt: skip

    def sources(self) -> list[str]:
        """Return the files that are read."""
        return [path for path in (self.graph, self.graph_features) if path is not None]

    def check(self) -> None:
        """Refuse two graphs."""
        from wisecrowd.core.exceptions import ParameterError

        if len(self.sources()) > 1:
            raise ParameterError("--graph and --graph-features both give neighbours; give one.")

    def applied(
        self, model: Aggregator, given: bool, labels: Annotations, notes: Notes
    ) -> Aggregator:
        """Return the method with the graph, if there is one.

        Parameters
        ----------
        model : unfitted method
        given : bool
            Whether the user chose the method; the default one is replaced by dawid-skene, or by
            one-coin if nearly all tasks have one label.
        labels : CrowdLabels
        notes : Notes
        """
        if not self.sources():
            return model
        from wisecrowd.aggregation.classes.graph_smoothed import GraphSmoothed
        from wisecrowd.core.exceptions import ParameterError
        from wisecrowd.core.labels import CrowdLabels
        from wisecrowd.core.votes import LEAST_SHARED, labelled_by_several
        from wisecrowd.families.task_graph import task_matrix

        if not isinstance(labels, CrowdLabels) or labels.ordered:
            raise ParameterError("--graph is for classes; leave it out for other types.")
        matrix, n_unknown = task_matrix(self._edges(labels, notes), labels)
        if n_unknown:
            notes(f"{n_unknown} edges name tasks without labels and do not count")
        notes(f"the graph has {matrix.nnz // 2} edges between {labels.n_tasks} tasks")
        if isinstance(model, GraphSmoothed):
            return model.set_params(graph=matrix)
        if not given:
            several = labelled_by_several(labels).mean() >= LEAST_SHARED
            return GraphSmoothed("dawid-skene" if several else "one-coin", graph=matrix)
        return GraphSmoothed(model, graph=matrix)

    def _edges(self, labels: CrowdLabels, notes: Notes) -> Any:
        from wisecrowd.cli.feature_reading import FeatureReading
        from wisecrowd.core.exceptions import DataError
        from wisecrowd.families.task_graph import nearest_neighbours

        if self.graph is not None:
            return read_edges(self.graph)
        assert self.graph_features is not None
        table = FeatureReading().read(self.graph_features, notes)
        tasks = table.tasks
        if tasks is None:
            if table.X.shape[0] != labels.n_tasks:
                raise DataError(
                    f"{self.graph_features} has {table.X.shape[0]} rows without ids, and there are "
                    f"{labels.n_tasks} tasks; give one row per task in their order, or add ids."
                )
            tasks = labels.tasks
        return nearest_neighbours(table.X, tasks)


def read_edges(path: str) -> tuple[Any, ...]:
    """Return the columns task, neighbour and, if there is one, weight of a table of edges."""
    import numpy as np

    from wisecrowd.core.exceptions import DataError
    from wisecrowd.io.decimals import may_have_commas, points_in
    from wisecrowd.io.tables import read_frame

    frame = read_frame(path)
    names = {str(name).strip().lower(): name for name in frame.column_names}
    neighbour = next((names[name] for name in NEIGHBOUR_NAMES if name in names), None)
    if "task" not in names or neighbour is None:
        listed = ", ".join(repr(name) for name in frame.column_names)
        raise DataError(f"{path} has the columns {listed}; call them task and neighbour.")
    columns = []
    for name in (names["task"], neighbour):
        values = frame[name].to_pylist()
        empty = next((row for row, value in enumerate(values) if value in (None, "")), None)
        if empty is not None:
            raise DataError(f"The {name} column is empty in row {empty + 1} of {path}; fill it in.")
        column = np.empty(len(values), dtype=object)
        column[:] = values
        columns.append(column)
    if "weight" in names:
        weights = frame[names["weight"]]
        if may_have_commas(frame):
            weights = points_in(weights, f"The column {names['weight']!r} of {path}")
        columns.append(_weights(weights.to_pylist(), path))
    return tuple(columns)


def _weights(values: list[Any], path: str) -> Any:
    import numpy as np

    from wisecrowd.core.exceptions import DataError
    from wisecrowd.families.task_graph import LARGEST_WEIGHT

    found = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            found[row] = float(value)
        except (TypeError, ValueError):
            found[row] = np.nan
        if not 0 <= found[row] <= LARGEST_WEIGHT:
            raise DataError(
                f"The weight in row {row + 1} of {path} is {value!r}; give a number from 0 to "
                f"{LARGEST_WEIGHT:g}."
            )
    return found
