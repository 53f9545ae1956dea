"""Confusion matrices that depend on the task itself: what a worker mixes up changes with x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import nn

from wisecrowd.core.features import as_targets
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.parameters import check_choice, check_integer, check_number
from wisecrowd.core.saved_attributes import Saved
from wisecrowd.learning.instance_model import (
    AnchorModel,
    InstanceModel,
    InstanceNetwork,
    posterior_of,
)
from wisecrowd.learning.training.confusion_init import check_start, confusion_head
from wisecrowd.learning.training.crowd_classifier import Floats, Learned, Training
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import CrowdModel
from wisecrowd.learning.training.known_tasks import recall, remember, remembered
from wisecrowd.learning.training.neural_classifier import NeuralClassifier


@dataclass(eq=False, repr=False, kw_only=True)
class InstanceConfusion(NeuralClassifier):
    r"""Instance-dependent noise: each worker's confusion matrix changes with the task.

    .. math::
        \min_{f, \theta} \frac{1}{N} \sum_i \sum_j
        -\log \sum_k f_k(x_i)\, \theta_j(x_i)[k, y_{ij}] + \lambda \operatorname{mean}_j
        \operatorname{mean}_i \operatorname{tr} \theta_j(x_i)

    ``variant="head"`` learns :math:`\theta_j(x)` with the classifier: a table for each worker that
    the network's features shift in a few directions. It begins as trace regularisation and stays
    so for the warm-up. ``variant="anchor"`` has two stages: after the warm-up, which is trace
    regularisation, clear cases are taken for known, a worker's labels on those near a task are
    counted, shrunk to the worker's table, and the classifier goes on with these counts fixed.

    Use it when what workers mix up depends on more than the class, and each has many labels. Cost
    per epoch: that of the classifier plus O(annotations × classes² × rank); the anchor variant
    searches neighbours once, O(tasks × anchors).

    Parameters
    ----------
    variant : {"head", "anchor"}
    penalty : float
        :math:`\lambda`.
    warm_up : int
        Epochs of plain trace regularisation before anything depends on x.
    rank : int
        Directions in which features shift a table; with "head".
    threshold : float
        Tasks with a class of at least this probability are anchors; with "anchor".
    neighbours : int
        Anchors that are looked at around each task; with "anchor".
    shrinkage : float
        So many labels does a worker's own table count for; with "anchor".
    start : optional
        Where the tables start: a probability for all diagonals, an aggregator's name, or a
        (J, K, K) table; by default as in trace regularisation.
    **others
        Those of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        The mean over the tasks that the worker labelled; with "anchor" the worker's table. New
        tasks with labels are forecast by :math:`\theta_j(x)` with "head", by this with "anchor".
    task_key_, task_output_ : (n_tasks,), (n_tasks, n_classes)
        What training tasks are recognised by, to get ``probas_`` again; with "anchor".

    Notes
    -----
    The published head has classes² outputs per worker at every task; the shared directions here
    make it affordable for many workers.

    Nothing identifies such a model in general: where workers are little better than chance on a
    whole region, classifier and confusion matrices can trade places there, the more so the longer
    training goes on. Choose the epoch by ``selection="crowd"`` or by known classes, and compare
    with trace regularisation.

    References
    ----------
    Zhang et al. (2020). Disentangling human error from the ground truth in segmentation of medical
    images. NeurIPS; Guo, Wang and Ge (2023). Label correction of crowdsourced noisy annotations
    with an instance-dependent noise transition model. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> model = InstanceConfusion(module="linear", epochs=20, warm_up=10, lr=0.1)
    >>> model.fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    variant: str = "head"
    penalty: float = 0.01
    warm_up: int = 20
    rank: int = 4
    threshold: float = 0.9
    neighbours: int = 100
    shrinkage: float = 10.0
    start: Any = None

    saves: ClassVar[dict[str, Saved]] = remembered(optional=lambda fit: fit.variant == "head")

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_choice("variant", self.variant, ("head", "anchor"))
        check_number("penalty", self.penalty, 0.0)
        check_integer("warm_up", self.warm_up, 0)
        check_integer("rank", self.rank, 1, 10_000)
        check_number("threshold", self.threshold, 0.0, 1.0)
        check_integer("neighbours", self.neighbours, 1)
        check_number("shrinkage", self.shrinkage, 1e-12)
        check_start(self.start)

    def _make_network(self, shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        backbone = super()._make_network(shape, n_classes, n_workers)
        if self.variant == "anchor":
            return backbone
        return InstanceNetwork(backbone, shape, n_classes, n_workers, self.rank)

    def _build(self, network: nn.Module, data: CrowdData) -> InstanceModel | AnchorModel:
        table = confusion_head("softplus", data.labels, self.start)
        if isinstance(network, InstanceNetwork):
            network.head.base = table
            return InstanceModel(network, data, self.penalty, self.warm_up)
        options = {
            "threshold": self.threshold,
            "n_neighbours": self.neighbours,
            "shrinkage": self.shrinkage,
        }
        return AnchorModel(network, table, data, self.penalty, self.warm_up, options)

    def _learned(self, model: CrowdModel, data: CrowdData) -> dict[str, Any]:
        if not isinstance(model, InstanceModel | AnchorModel):
            raise TypeError(f"{type(model).__name__} is no model of this method.")
        log_probas, log_rows = model.rows_of(data.whole)
        return {
            "confusion": model.mean_confusion(data),
            "probas": posterior_of(log_probas, log_rows, data.whole.labels),
        }

    def _fit(self, training: Training) -> Learned:
        learned = super()._fit(training)
        return remember(training, learned) if self.variant == "anchor" else learned

    # ------------------------------------------------------------------- new tasks that have labels

    def _forecast(self, log_probas: Floats, labels: CrowdLabels) -> Floats:
        return recall(self, super()._forecast(log_probas, labels), log_probas, labels)

    def predict_proba(self, X: Any, labels: Any = None, *, tasks: Any = None) -> Floats:
        """Return (n, K) class probabilities of new tasks, from features and, if given, labels."""
        if labels is None or self.variant == "anchor":
            return super().predict_proba(X, labels, tasks=tasks)
        features = self._checked(X)
        known = self._known(as_targets(labels, len(features), tasks))
        return posterior_of(*self._rows(features, known), known)

    def _label_log_probas(self, features: Any, labels: CrowdLabels) -> Floats:
        if self.variant == "anchor":
            return super()._label_log_probas(features, labels)
        log_probas, log_rows = self._rows(features, labels)
        return np.asarray(np.logaddexp.reduce(log_probas[labels.task] + log_rows, axis=1))

    def _rows(self, features: Any, labels: CrowdLabels) -> tuple[Floats, Floats]:
        network = self._network
        if not isinstance(network, InstanceNetwork):
            raise TypeError("The variant was changed after the fit; set it back, or fit again.")
        unknown = np.full(labels.n_tasks, -1, np.int32)
        return network.rows_of(CrowdData(features, labels, unknown))
