"""Initial confusion matrices: near the identity, from an aggregator, or given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.registry import get_method
from wisecrowd.nn.heads import ConfusionHead, SoftmaxConfusion, SoftplusConfusion

Floats = NDArray[np.float64]

HEADS: dict[str, type[SoftmaxConfusion | SoftplusConfusion]] = {
    "softmax": SoftmaxConfusion,
    "softplus": SoftplusConfusion,
}


def check_start(start: Any) -> None:
    """Require None, a probability, the name of an aggregator, or a (J, K, K) table."""
    if start is None or np.ndim(start) == 3:
        return
    if isinstance(start, str):
        get_method(start)
    else:
        check_number("start", start, 1e-6, 1 - 1e-6)


def confusion_head(kind: str, labels: CrowdLabels, start: Any = None) -> ConfusionHead:
    """Return one confusion matrix per worker, as parameters.

    Parameters
    ----------
    kind : {"softmax", "softplus"}
    labels : CrowdLabels
    start : optional
        Initial value: a probability for every diagonal, with the rest shared equally; the name of
        an aggregator, such as "dawid-skene" or "multispa", for its confusion matrices; a (J, K, K)
        table; or ``None`` for the default of the head, near the identity.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays(["a", "a", "b"], ["x", "y", "x"], [0, 1, 1])
    >>> confusion_head("softmax", labels, 0.8).table()[1].tolist()
    [[0.800..., 0.199...], [0.199..., 0.800...]]
    """
    return HEADS[kind](labels.n_workers, labels.n_classes, table=start_table(labels, start))


def start_table(labels: CrowdLabels, start: Any) -> Floats | None:
    """Return the (J, K, K) table of an initial value; see :func:`confusion_head`."""
    if start is None:
        return None
    shape = (labels.n_workers, labels.n_classes, labels.n_classes)
    if isinstance(start, str):
        table = vars(get_method(start)().fit(labels)).get("confusion_")
        if table is None:
            raise ParameterError(
                f"start is {start!r}, which has no confusion matrices; name a method that has "
                "them, such as 'dawid-skene'."
            )
    elif np.ndim(start) == 0:
        table = np.broadcast_to(_diagonal(float(start), labels.n_classes), shape)
    else:
        table = np.asarray(start)
    if table.shape != shape:
        raise ParameterError(
            f"start has shape {table.shape}; give confusion matrices of shape {shape}: workers, "
            "classes, labels."
        )
    return np.array(table, dtype=np.float64)


def _diagonal(share: float, n_classes: int) -> Floats:
    if n_classes == 1:
        return np.ones((1, 1))
    rest = (1 - share) / (n_classes - 1)
    return np.asarray(rest + (share - rest) * np.eye(n_classes))
