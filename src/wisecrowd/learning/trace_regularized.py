"""Coupled cross entropy with a trace penalty on the confusion matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from wisecrowd.core.parameter_checks import Choice, Flag, Limits, Number
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import HEADS, TraceModel, check_start, confusion_head
from wisecrowd.learning.training.neural_classifier import NeuralClassifier


@dataclass(eq=False, repr=False, kw_only=True)
class TraceRegularized(NeuralClassifier):
    r"""Trace regularisation: the least reliable workers that explain the labels.

    .. math::
        \min_{f, \theta} \frac{1}{N} \sum_i \sum_j
        -\log \sum_k f_k(x_i)\, \theta_j[k, y_{ij}] + \lambda \frac{1}{J} \sum_j
        \operatorname{tr} \theta_j

    Many pairs of classifier and confusion matrices explain the labels equally well. If the mean
    confusion matrix is diagonally dominant, the true matrices have the least trace, and the
    estimates converge to them as :math:`\lambda \to 0`. A diagonal entry :math:`a` is
    underestimated by about :math:`\lambda K a (1 - a)`.

    Use it when workers are unreliable but the correct label is their most frequent one on every
    class. One label per task is enough. Cost per epoch: that of the classifier plus
    O(annotations × classes).

    Parameters
    ----------
    penalty : float
        :math:`\lambda`; values from 0.001 to 0.1 give similar results.
    log_trace : bool
        Penalise the logarithms of the diagonals instead.
    head : {"softplus", "softmax"}
        Parametrisation of the rows; the paper divides softplus by row sums.
    start : optional
        Initial confusion matrices: a probability for all diagonals, an aggregator's name, or a
        (J, K, K) table; the paper's 6I - 5 under softplus by default.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Notes
    -----
    The paper sums over tasks and workers; its code and this one average. The loss is divided by the
    number of labels per task, so it equals coupled cross entropy when the penalty is 0.

    References
    ----------
    Tanno et al. (2019). Learning from noisy labels by regularized estimation of annotator
    confusion. CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> TraceRegularized(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    penalty: float = 0.01
    log_trace: bool = False
    head: str = "softplus"
    start: Any = None

    limits: ClassVar[Limits] = {
        "penalty": Number(0.0),
        "log_trace": Flag(),
        "head": Choice(tuple(HEADS)),
        "start": check_start,
    }

    def _build(self, network: nn.Module, data: CrowdData) -> TraceModel:
        head = confusion_head(self.head, data.labels, self.start)
        return TraceModel(network, head, self.penalty, self.log_trace)
