"""Instance-dependent noise: confusion matrices that are functions of the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from wisecrowd.core.parameter_checks import Choice, Count, Limits, Number
from wisecrowd.core.saved_attributes import Saved
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import safe_log
from wisecrowd.learning.training.crowd_data import CrowdData, log_probas_of
from wisecrowd.learning.training.crowd_model import (
    CrowdModel,
    TraceModel,
    TrunkModel,
    check_start,
    confusion_head,
)
from wisecrowd.learning.training.label_model import forecast, label_log_probas, softmax, sum_rows
from wisecrowd.learning.training.neural_classifier import NeuralClassifier, as_array
from wisecrowd.learning.training.rows_of_features import remember, remembered
from wisecrowd.nn import objectives
from wisecrowd.nn.backbones import logits_and_features
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import InstanceNetwork, label_columns

_TASKS_AT_ONCE = 2048  # tasks whose tables are in memory together
_NEIGHBOURHOODS_AT_ONCE = 1024  # tasks whose distances to all anchors are in memory together


@dataclass(eq=False, repr=False, kw_only=True)
class InstanceConfusion(NeuralClassifier):
    r"""Instance-dependent noise: each worker's confusion matrix changes with the task.

    .. math::
        \min_{f, \theta} \frac{1}{N} \sum_i \sum_j
        -\log \sum_k f_k(x_i)\, \theta_j(x_i)[k, y_{ij}] + \lambda \operatorname{mean}_j
        \operatorname{mean}_i \operatorname{tr} \theta_j(x_i)

    ``variant="head"`` learns :math:`\theta_j(x)` with the classifier: each worker has a table that
    the network's features shift in a few directions. The warm-up is plain trace regularisation.
    ``variant="anchor"`` has two stages. After the same warm-up, tasks with a clear class become
    anchors. A worker's labels on the anchors near a task are counted and shrunk towards the
    worker's table, and training continues with these counts fixed.

    Use it when mistakes depend on more than the class and workers have many labels each. Cost
    per epoch: that of the classifier plus O(annotations × classes² × rank); the anchor variant
    searches neighbours once, O(tasks × anchors).

    Parameters
    ----------
    variant : {"head", "anchor"}
    penalty : float
        :math:`\lambda`.
    warm_up : int
        Epochs of plain trace regularisation, in which tables do not depend on x.
    rank : int
        Number of directions in which features shift a table ("head" only).
    threshold : float
        Probability from which a class is clear, so that the task is an anchor ("anchor" only).
    neighbours : int
        Number of nearest anchors of each task ("anchor" only).
    shrinkage : float
        Pseudo-count of the worker's own confusion matrix ("anchor" only).
    start : optional
        Initial tables: a probability for all diagonals, an aggregator's name, or a (J, K, K)
        table; as in trace regularisation by default.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        Mean over the tasks that the worker labelled ("head"), or the worker's table ("anchor").
        Predictions with labels use :math:`\theta_j(x)` with "head", and this with "anchor".
    task_key_, task_output_ : (n_tasks,), (n_tasks, n_classes)
        Hash of the labels, and output of the classifier: they identify training tasks ("anchor").

    Notes
    -----
    The published head has classes² outputs per worker and task; shared directions make it cheap for
    many workers.

    Such a model is not identified in general. In a region where workers are little better than
    chance, the classifier and the confusion matrices can swap classes, especially in long training.
    Let held-out labels or known classes select the epoch, as by default, and compare with trace
    regularisation.

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

    on_several_processes: ClassVar[bool] = False  # its tables need the features of all tasks
    saves: ClassVar[dict[str, Saved]] = remembered(optional=lambda fit: fit.variant == "head")

    limits: ClassVar[Limits] = {
        "variant": Choice(("head", "anchor")),
        "penalty": Number(0.0),
        "warm_up": Count(0),
        "rank": Count(1, 10_000),
        "threshold": Number(0.0, 1.0),
        "neighbours": Count(1),
        "shrinkage": Number(1e-12),
        "start": check_start,
    }

    @property
    def _noise(self) -> HeadNoise | AnchorNoise:
        return NOISE[self.variant](self)

    def _make_network(self, shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        backbone = super()._make_network(shape, n_classes, n_workers)
        return self._noise.network(backbone, shape, n_classes, n_workers)

    def _build(self, network: nn.Module, data: CrowdData) -> InstanceModel | AnchorModel:
        return self._noise.model(network, data)

    def _learned(self, model: CrowdModel, data: CrowdData) -> dict[str, Any]:
        assert isinstance(model, InstanceModel | AnchorModel)
        return model.results(data)

    def _posterior(self, features: Any, labels: CrowdLabels) -> Floats:
        return self._noise.posterior(features, labels)

    def _label_log_probas(self, features: Any, labels: CrowdLabels) -> Floats:
        return self._noise.label_log_probas(features, labels)


def posterior_of(log_probas: Floats, log_rows: Floats, labels: CrowdLabels) -> Floats:
    """Return (N, K) class probabilities from log f(x), (N, K), and log-rows of labels, (E, K)."""
    return softmax(log_probas + sum_rows(labels.task, log_rows, labels.n_tasks, labels.weight))


# ------------------------------------------------------------------- a head that reads the features


@dataclass(frozen=True)
class HeadNoise:
    """Tables by a head that reads the features of the network."""

    method: InstanceConfusion

    def network(
        self, backbone: nn.Module, shape: tuple[int, ...], n_classes: int, n_workers: int
    ) -> InstanceNetwork:
        """Return the classifier with the head."""
        return InstanceNetwork(backbone, shape, n_classes, n_workers, self.method.rank)

    def model(self, network: nn.Module, data: CrowdData) -> InstanceModel:
        """Return the model to train."""
        network = self._require_head(network)
        network.head.base = confusion_head("softplus", data.labels, self.method.start)
        return InstanceModel(network, data, self.method.penalty, self.method.warm_up)

    def posterior(self, features: Any, labels: CrowdLabels) -> Floats:
        """Return (n, K) class probabilities of tasks with labels."""
        return posterior_of(*self._rows(features, labels), labels)

    def label_log_probas(self, features: Any, labels: CrowdLabels) -> Floats:
        """Return (E,) log-probabilities of labels."""
        log_probas, log_rows = self._rows(features, labels)
        return np.asarray(np.logaddexp.reduce(log_probas[labels.task] + log_rows, axis=1))

    def _rows(self, features: Any, labels: CrowdLabels) -> tuple[Floats, Floats]:
        unknown = np.full(labels.n_tasks, -1, np.int32)
        network = self._require_head(self.method._network)
        return rows_of(network, CrowdData(features, labels, unknown))

    def _require_head(self, network: nn.Module) -> InstanceNetwork:
        if not isinstance(network, InstanceNetwork):
            raise TypeError("The variant was changed after the fit; set it back, or fit again.")
        return network


@torch.no_grad()
def rows_of(network: InstanceNetwork, data: CrowdData) -> tuple[Floats, Floats]:
    """Return (N, K) log f(x) and (E, K) log-rows of all annotations, with dropout off."""
    network.eval()
    parts: list[tuple[Tensor, Tensor]] = []
    for batch in data.batches(torch.arange(data.labels.n_tasks), _TASKS_AT_ONCE):
        log_probas, log_tables = network.tables(batch)
        parts.append((log_probas, label_columns(log_tables, batch)))
    probas, rows = zip(*parts, strict=True)
    return as_array(torch.cat(probas)), as_array(torch.cat(rows))


class InstanceModel(TrunkModel):
    """Coupled cross entropy with tables that depend on x, and their mean trace.

    Attributes
    ----------
    share : (J,)
        Weights that turn a mean over annotations into one over workers.
    """

    network: InstanceNetwork
    share: Tensor

    def __init__(
        self, network: InstanceNetwork, data: CrowdData, penalty: float, warm_up: int
    ) -> None:
        super().__init__(network)
        self.penalty, self.warm_up = penalty, warm_up
        count = np.bincount(data.labels.worker, data.labels.weight, data.labels.n_workers)
        busy = max(np.count_nonzero(count), 1)
        share = np.where(count > 0, count.sum() / (busy * np.where(count > 0, count, 1.0)), 0.0)
        self.register_buffer("share", torch.tensor(share, dtype=torch.float32))

    @property
    def backbone(self) -> nn.Module:
        """The network from features to logits."""
        return self.network.backbone

    def begin_epoch(self, epoch: int, data: CrowdData) -> None:
        """Let tables depend on x once the warm-up is over."""
        self.network.head.is_open.fill_(epoch >= self.warm_up)

    def crowd_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the head."""
        return list(self.network.head.parameters())

    def feature_loss(self, log_probas: Tensor, features: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the penalised loss of a batch."""
        log_tables = self.network.head(features, batch.task, batch.worker)
        loss = objectives.coupled_cross_entropy(log_probas, label_columns(log_tables, batch), batch)
        trace = log_tables.diagonal(dim1=1, dim2=2).exp().sum(dim=1)
        size = batch.mean(trace * self.share.index_select(0, batch.worker))
        return loss + self.penalty * batch.tasks_per_label() * size

    def label_log_probas(self, batch: CrowdBatch) -> Tensor:
        """Return (E,) log-probabilities of the labels."""
        log_probas, log_tables = self.network.tables(batch)
        return objectives.label_log_probas(log_probas, label_columns(log_tables, batch), batch)

    def results(self, data: CrowdData) -> dict[str, Any]:
        """Return the fields of ``Learned``."""
        probas = posterior_of(*rows_of(self.network, data.whole), data.whole.labels)
        return {"confusion": self.mean_confusion(data), "probas": probas}

    @torch.no_grad()
    def mean_confusion(self, data: CrowdData) -> Floats:
        """Return (J, K, K) mean tables; workers without labels have their base table."""
        self.eval()
        total = torch.zeros_like(self.network.head.base.logits)
        count = total.new_zeros(len(total))
        for batch in data.batches(torch.arange(data.labels.n_tasks), _TASKS_AT_ONCE):
            tables = self.network.tables(batch)[1].exp()
            each = count.new_ones(len(tables)) if batch.weight is None else batch.weight
            total.index_add_(0, batch.worker, tables * each[:, None, None])
            count.index_add_(0, batch.worker, each)
        mean = total / count.clamp_min(1e-12)[:, None, None]
        return as_array(torch.where(count[:, None, None] > 0, mean, self.network.head.base.table()))


# ------------------------------------------------------------------------ counts on anchors


@dataclass(frozen=True)
class AnchorNoise:
    """Rows counted on nearby anchors; new tasks have the rows of the worker's table."""

    method: InstanceConfusion

    def network(
        self, backbone: nn.Module, shape: tuple[int, ...], n_classes: int, n_workers: int
    ) -> nn.Module:
        """Return the classifier unchanged."""
        return backbone

    def model(self, network: nn.Module, data: CrowdData) -> AnchorModel:
        """Return the model to train."""
        return AnchorModel(network, data, self.method)

    def posterior(self, features: Any, labels: CrowdLabels) -> Floats:
        """Return (n, K) class probabilities of tasks with labels."""
        return forecast(self.method._log_probas(features), labels, self.method.confusion_)

    def label_log_probas(self, features: Any, labels: CrowdLabels) -> Floats:
        """Return (E,) log-probabilities of labels."""
        log_confusion = safe_log(self.method.confusion_)
        return label_log_probas(self.method._log_probas(features), labels, log_confusion)


NOISE: dict[str, type[HeadNoise | AnchorNoise]] = {"head": HeadNoise, "anchor": AnchorNoise}


class AnchorModel(TraceModel):
    """Trace regularisation, then rows that are counted on anchors once and fixed.

    Attributes
    ----------
    log_rows : (E, K)
        Rows of the annotations of the training data, once counted.
    counted : ()
    """

    log_rows: Tensor
    counted: Tensor

    def __init__(self, network: nn.Module, data: CrowdData, options: InstanceConfusion) -> None:
        head = confusion_head("softplus", data.labels, options.start)
        super().__init__(network, head, options.penalty)
        self.options = options
        empty = torch.zeros(data.labels.n_annotations, data.labels.n_classes)
        self.register_buffer("log_rows", empty)
        self.register_buffer("counted", torch.tensor(False))

    def begin_epoch(self, epoch: int, data: CrowdData) -> None:
        """Count on the anchors when the warm-up is over."""
        if epoch != self.options.warm_up:
            return
        probas, features = self._outputs(data)
        rows = neighbour_rows(
            features,
            probas,
            data.labels,
            as_array(self.head.table()),
            threshold=self.options.threshold,
            n_neighbours=self.options.neighbours,
            shrinkage=self.options.shrinkage,
        )
        self.log_rows.copy_(torch.from_numpy(safe_log(rows)))
        self.counted.fill_(True)

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the loss of a batch in its stage."""
        if not self.counted:
            return super().crowd_loss(log_probas, batch)
        rows = self.log_rows.index_select(0, batch.edges())
        return objectives.coupled_cross_entropy(log_probas, rows, batch)

    @torch.no_grad()
    def _outputs(self, data: CrowdData) -> tuple[Floats, Floats]:
        self.eval()
        parts = [
            logits_and_features(self.network, data.features[rows].to(data.device))
            for rows in torch.split(torch.arange(data.labels.n_tasks), _TASKS_AT_ONCE)
        ]
        logits, features = (torch.cat(part) for part in zip(*parts, strict=True))
        return as_array(functional.softmax(logits.double(), dim=1)), as_array(features)

    def results(self, data: CrowdData) -> dict[str, Any]:
        """Return the fields of ``Learned``; labels outside training have the worker's rows."""
        whole, table = data.whole, as_array(self.head.table())
        log_probas = log_probas_of(self.network, whole.features, device=whole.device)
        log_rows = safe_log(table)[whole.labels.worker, :, whole.labels.label]
        if self.counted and len(log_rows) == len(self.log_rows):
            log_rows = as_array(self.log_rows)
        probas = posterior_of(log_probas, log_rows, whole.labels)
        return {"confusion": table, "probas": probas, **remember(whole, log_probas)}


def neighbour_rows(
    features: Floats,
    probas: Floats,
    labels: CrowdLabels,
    table: Floats,
    *,
    threshold: float,
    n_neighbours: int,
    shrinkage: float,
) -> Floats:
    r"""Return (E, K): :math:`\theta_j(x_i)[\cdot, l]` for each annotation, from its neighbours.

    Anchors are labelled tasks whose class is clear. The row of an annotation is counted from its
    worker's labels on the nearest anchors, with the worker's table as a pseudo-count of
    ``shrinkage`` labels. A task is not its own anchor.

    Parameters
    ----------
    features : (N, d)
        Coordinates of the tasks.
    probas : (N, K)
        The classifier's output.
    labels : CrowdLabels
    table : (J, K, K)
    threshold : float
        Least probability of the class of an anchor.
    n_neighbours : int
        Number of nearest anchors.
    shrinkage : float
    """
    anchors = np.flatnonzero((probas.max(axis=1) >= threshold) & (labels.labels_per_task > 0))
    prior = table[labels.worker, :, labels.label]  # (E, K)
    if len(anchors) < 2 or not labels.n_annotations:
        return np.asarray(prior)
    kind = probas[anchors].argmax(axis=1)
    key = labels.task.astype(np.int64) * labels.n_workers + labels.worker  # sorted
    places = torch.from_numpy(features)
    rows = np.empty_like(prior)
    for first in range(0, labels.n_tasks, _NEIGHBOURHOODS_AT_ONCE):
        last = min(first + _NEIGHBOURHOODS_AT_ONCE, labels.n_tasks)
        near = _nearest(places, np.arange(first, last), anchors, n_neighbours)
        edges = slice(int(labels.indptr[first]), int(labels.indptr[last]))
        around = near[labels.task[edges] - first]  # (e, n): positions among the anchors
        wanted = anchors[around] * np.int64(labels.n_workers) + labels.worker[edges, None]
        found = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        seen = (key[found] == wanted) & (anchors[around] != labels.task[edges, None])
        same = seen & (labels.label[found] == labels.label[edges, None])
        total, agreed = _count(kind[around], seen, prior), _count(kind[around], same, prior)
        rows[edges] = (agreed + shrinkage * prior[edges]) / (total + shrinkage)
    return rows


def _nearest(
    places: Tensor, tasks: NDArray[np.int64], anchors: NDArray[np.int64], n: int
) -> NDArray[np.int64]:
    """Return (len(tasks), n) positions of the nearest anchors."""
    distance = torch.cdist(places[torch.from_numpy(tasks)], places[torch.from_numpy(anchors)])
    nearest = distance.topk(min(n, len(anchors)), dim=1, largest=False).indices
    return np.asarray(nearest.numpy())


def _count(kind: NDArray[np.int64], keep: NDArray[np.bool_], prior: Floats) -> Floats:
    """Return (e, K) numbers of kept neighbours in each class."""
    n_edges, n_classes = len(kind), prior.shape[1]
    cell = np.arange(n_edges)[:, None] * n_classes + kind
    counts = np.bincount(cell[keep], minlength=n_edges * n_classes)
    return np.asarray(counts.reshape(n_edges, n_classes), dtype=np.float64)
