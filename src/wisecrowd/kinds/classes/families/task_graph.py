"""Graphs of tasks: edges from ids, matrices or nearest neighbours, and how far labels follow them.

A graph is a symmetric sparse matrix of weights in the order of the tasks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.features import as_features
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.parameter_checks import check_integer
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels

BLOCK = 4_000_000  # similarities that are computed at once
MOST_HOMOPHILY = 0.99
LARGEST_WEIGHT = 1e100  # of an edge: squares of larger weights, and their sums, may overflow


class TaskEdges(NamedTuple):
    """Edges by ids: one row per edge, in either direction.

    Attributes
    ----------
    task, neighbour : (n_edges,) ids
    weight : (n_edges,), optional
        Positive weight of each edge; None means 1.
    """

    task: NDArray[Any]
    neighbour: NDArray[Any]
    weight: Floats | None = None


class Homophily(NamedTuple):
    """Agreement of labels across edges, by chance and within tasks, and what follows from it."""

    across: float
    chance: float
    within: float  # NaN if no task has labels of two workers
    value: float  # between 0 and MOST_HOMOPHILY
    error: float  # standard error of the agreement across edges, as if edges were independent


def nearest_neighbours(X: Any, tasks: Any = None, *, k: int = 10) -> TaskEdges:
    """Return the edges from each task to the k others with the most similar features (cosine).

    Similarities are computed in blocks of rows; the whole table is never in memory.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
    tasks : (n,) ids, optional
        By default 0, 1, ... in the order of the rows.
    k : int

    Examples
    --------
    >>> edges = nearest_neighbours([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], ["a", "b", "c"], k=1)
    >>> edges.neighbour.tolist()
    ['b', 'a', 'b']
    """
    check_integer("k", k, 1)
    features = as_features(X, owner="The graph", sparse=True)
    if getattr(features, "ndim", 2) != 2:
        features = np.asarray(features).reshape(len(features), -1)
    n = features.shape[0]
    ids = np.arange(n) if tasks is None else np.asarray(tasks)
    if len(ids) != n:
        raise DataError(f"There are {n} rows of features and {len(ids)} tasks; give one each.")
    if n < 2:
        raise DataError("Neighbours need the features of two tasks or more.")
    k = min(k, n - 1)
    squares = features.multiply(features) if hasattr(features, "tocsr") else features**2
    length = np.sqrt(np.asarray(squares.sum(axis=1)).ravel()).astype(np.float64)
    step = max(1, BLOCK // n)
    found = np.empty((n, k), dtype=np.int64)
    for first in range(0, n, step):
        rows = np.arange(first, min(first + step, n))
        product = features[rows] @ features.T
        table = np.asarray(product.toarray() if hasattr(product, "toarray") else product)
        table = table.astype(np.float64) / np.maximum(length, 1e-300)
        table[np.arange(len(rows)), rows] = -np.inf
        # Similarities that differ by rounding only are equal; the first task then comes first.
        table = np.round(table / np.maximum(length[rows], 1e-300)[:, None], 9)
        found[rows] = np.argsort(-table, axis=1, kind="stable")[:, :k]
    return TaskEdges(np.repeat(ids, k), ids[found.ravel()])


def check_graph(graph: Any) -> None:
    """Require a sparse matrix, or two or three columns of one length, or None."""
    if graph is None or hasattr(graph, "tocsr"):
        return
    if not isinstance(graph, tuple | list) or len(graph) not in (2, 3):
        raise ParameterError(
            "graph is neither a sparse matrix nor columns of edges; give a scipy matrix with one "
            "row per task, or (task, neighbour) or (task, neighbour, weight)."
        )
    shapes = {np.shape(column) for column in graph if column is not None}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise ParameterError(
            "The columns of graph have different lengths; give one value per edge."
        )


def task_matrix(graph: Any, labels: CrowdLabels) -> tuple[Any, int]:
    """Return the symmetric matrix (n_tasks, n_tasks) of a graph, and its edges of unknown tasks.

    An edge has the larger of the weights of its two directions; loops do not count.

    Parameters
    ----------
    graph : sparse matrix (n_tasks, n_tasks), or (task, neighbour[, weight]) columns of ids
    labels : CrowdLabels
    """
    from scipy import sparse

    if hasattr(graph, "tocsr"):
        matrix, n_unknown = _of_matrix(graph, labels), 0
    else:
        matrix, n_unknown = _of_edges(graph, labels)
    if len(matrix.data) and not ((matrix.data >= 0) & (matrix.data <= LARGEST_WEIGHT)).all():
        raise DataError(
            f"A weight of the graph is negative, not finite or beyond {LARGEST_WEIGHT:g}; give "
            "weights around 1."
        )
    matrix = matrix - sparse.diags(matrix.diagonal())
    matrix = matrix.maximum(matrix.T).tocsr()
    matrix.eliminate_zeros()
    return matrix, n_unknown


def _of_matrix(graph: Any, labels: CrowdLabels) -> Any:
    matrix = graph.tocsr().astype(np.float64)
    n = labels.n_tasks
    if matrix.shape != (n, n) and labels.rows is not None:
        size = int(labels.rows.max(initial=-1)) + 1
        if matrix.shape[0] == matrix.shape[1] >= size:
            return matrix[labels.rows][:, labels.rows]
    if matrix.shape != (n, n):
        raise DataError(
            f"The graph has shape {matrix.shape}, and there are {n} tasks; give one row and one "
            "column per task, or edges by ids."
        )
    return matrix


def _of_edges(graph: Any, labels: CrowdLabels) -> tuple[Any, int]:
    from scipy import sparse

    columns = [np.asarray(column) for column in graph if column is not None]
    one, two = (lookup(column, labels.tasks) for column in columns[:2])
    weight = columns[2].astype(np.float64) if len(columns) == 3 else np.ones(len(one))
    known = (one >= 0) & (two >= 0)
    n = labels.n_tasks
    # Repeated edges count once, with the largest weight.
    order = np.lexsort((-weight[known], two[known], one[known]))
    rows, columns_, values = one[known][order], two[known][order], weight[known][order]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (rows[1:] != rows[:-1]) | (columns_[1:] != columns_[:-1])
    matrix = sparse.csr_matrix((values[first], (rows[first], columns_[first])), shape=(n, n))
    return matrix, int(np.count_nonzero(~known))


def homophily(labels: CrowdLabels, matrix: Any) -> Homophily:
    """Return how far labels agree across edges, between chance and the agreement within tasks.

    Examples
    --------
    >>> from scipy import sparse
    >>> labels = CrowdLabels.from_matrix([["a", "a"], ["a", "a"], ["b", "b"], ["b", "b"]])
    >>> edges = sparse.csr_matrix(([1.0, 1.0], ([0, 2], [1, 3])), shape=(4, 4))
    >>> homophily(labels, edges + edges.T).value
    0.99
    """
    from scipy import sparse

    weight = labels.weights
    shape = labels.n_tasks, labels.n_classes
    counts = sparse.csr_matrix((weight, (labels.task, labels.label)), shape=shape)
    total = np.asarray(counts.sum(axis=1)).ravel()
    shares = sparse.diags(1 / np.where(total > 0, total, 1.0)) @ counts
    row, column = matrix.nonzero()
    both = (total[row] > 0) & (total[column] > 0) & (row < column)
    row, column = row[both], column[both]
    overall = np.asarray(counts.sum(axis=0)).ravel() / max(float(total.sum()), 1e-300)
    chance = float(overall @ overall)
    within = _agreement_within(labels)
    if not len(row) or chance >= 1:
        return Homophily(float("nan"), chance, within, 0.0, 0.0)
    edge = np.asarray(matrix[row, column]).ravel()
    equal = np.asarray(shares[row].multiply(shares[column]).sum(axis=1)).ravel()
    across = float(edge @ equal / edge.sum())
    ceiling = 1.0 if np.isnan(within) else within
    value = (across - chance) / (ceiling - chance) if ceiling > chance + 1e-12 else 0.0
    error = float(np.sqrt(edge**2 @ (equal - across) ** 2) / edge.sum())
    return Homophily(across, chance, within, float(np.clip(value, 0.0, MOST_HOMOPHILY)), error)


def _agreement_within(labels: CrowdLabels) -> float:
    """Return the share of equal labels among pairs of labels of a task by different workers."""
    counts = np.bincount(
        labels.task.astype(np.int64) * labels.n_classes + labels.label,
        minlength=labels.n_tasks * labels.n_classes,
    ).astype(np.float64)
    n = labels.labels_per_task.astype(np.float64)
    pairs = float((n * (n - 1)).sum())
    return float((counts * (counts - 1)).sum() / pairs) if pairs else float("nan")


def edge_strengths(matrix: Any, n_classes: int, value: float) -> Any:
    """Return the matrix of β: log(1 + K h / (1 - h)) / (1 + mean degree of the two tasks).

    The degree in the denominator keeps the field of a task below the point at which neighbours
    agree with each other whatever their labels.
    """
    degree = np.asarray(matrix.sum(axis=1)).ravel()
    edges = matrix.tocoo()
    mean = 0.5 * (degree[edges.row] + degree[edges.col])
    strength = np.log1p(n_classes * value / (1 - value)) / (1 + mean)
    edges.data = edges.data * strength
    return edges.tocsr()
