"""Reading of features and of graphs of tasks."""

from __future__ import annotations

import csv
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from wisecrowd.cli.accidental_imports import take_up_pandas
from wisecrowd.cli.options.features import FeatureReading, GraphReading
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.terminal import Notes
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io.cells import may_have_commas, points_in
from wisecrowd.io.feature_files import FeatureTable, read_features
from wisecrowd.io.tables import read_frame
from wisecrowd.kinds.classes.container import LEAST_SHARED, CrowdLabels, labelled_by_several
from wisecrowd.kinds.classes.families.task_graph import (
    LARGEST_WEIGHT,
    nearest_neighbours,
    task_matrix,
)
from wisecrowd.kinds.classes.methods.graph_smoothed import GraphSmoothed

NEIGHBOUR_NAMES = ("neighbour", "neighbor")


def read_feature_table(asked: FeatureReading, path: str, notes: Notes) -> FeatureTable:
    """Read features, and note what was chosen."""
    embed = None if asked.embed is None else load_function(asked.embed)
    columns = None
    if asked.feature_columns is not None:
        columns = next(csv.reader([asked.feature_columns], skipinitialspace=True))
    with working(f"reading {path}", notes):
        table = read_features(path, columns=columns, embed=embed)
    if table.note:
        notes(table.note)
    return table


def load_function(name: str) -> Callable[[list[str]], Any]:
    """Return the function that ``package.module:function`` names.

    Modules in the working directory are found too.
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ParameterError(f"--embed is {name!r}; give package.module:function.")
    take_up_pandas()
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise ParameterError(f"--embed is {name!r}, and {error}; correct the name.") from error
    except Exception as error:  # the module is the user's own and may fail in any way
        reason = str(error).split("\n")[0]
        raise ParameterError(
            f"--embed is {name!r}, and {module} cannot be imported ({type(error).__name__}: "
            f"{reason}); correct the name or the module."
        ) from error
    finally:
        sys.path.remove(here)
    if not callable(found):
        raise ParameterError(f"--embed is {name!r}, which is not a function; name one.")
    function: Callable[[list[str]], Any] = found
    return function


def with_graph(
    model: Aggregator, asked: GraphReading, given: bool, labels: Any, notes: Notes
) -> Aggregator:
    """Return the method with the graph, if there is one.

    Parameters
    ----------
    model : unfitted method
    asked : GraphReading
    given : bool
        Whether the user chose the method; the default one is replaced by dawid-skene, or by
        one-coin if nearly all tasks have one label.
    labels : CrowdLabels
    notes : Notes
    """
    if not asked.sources():
        return model
    if not labels.of_classes or labels.ordered:
        raise ParameterError("--graph is for classes; leave it out for other types.")
    matrix, n_unknown = task_matrix(_edges(asked, labels, notes), labels)
    if n_unknown:
        notes(f"{n_unknown} edges name tasks without labels and do not count")
    notes(f"the graph has {matrix.nnz // 2} edges between {labels.n_tasks} tasks")
    if isinstance(model, GraphSmoothed):
        return model.set_params(graph=matrix)
    if not given:
        several = labelled_by_several(labels).mean() >= LEAST_SHARED
        return GraphSmoothed("dawid-skene" if several else "one-coin", graph=matrix)
    return GraphSmoothed(model, graph=matrix)


def _edges(asked: GraphReading, labels: CrowdLabels, notes: Notes) -> Any:
    if asked.graph is not None:
        return read_edges(asked.graph)
    assert asked.graph_features is not None
    table = read_feature_table(FeatureReading(), asked.graph_features, notes)
    tasks = table.tasks
    if tasks is None:
        if table.X.shape[0] != labels.n_tasks:
            raise DataError(
                f"{asked.graph_features} has {table.X.shape[0]} rows without ids, and there are "
                f"{labels.n_tasks} tasks; give one row per task in their order, or add ids."
            )
        tasks = labels.tasks
    return nearest_neighbours(table.X, tasks)


def read_edges(path: str) -> tuple[Any, ...]:
    """Return the columns task, neighbour and, if there is one, weight of a table of edges."""
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
