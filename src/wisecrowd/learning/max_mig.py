r"""Max-MIG: a classifier and a vote that share as much information as possible.

For a convex :math:`f` with :math:`f(1) = 0` and the ratio :math:`\kappa` of the joint to the
product of marginals, the gain is :math:`E_{joint}[\partial f(\kappa)] -
E_{product}[f^*(\partial f(\kappa))]`, and its maximum :math:`\sum V f(U / V)`, the f-mutual
information. Everything is written in :math:`\log\kappa`, so that no ratio overflows.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import Choice, Flag, Limits, Number
from wisecrowd.core.registry import get_method
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import safe_log
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import CrowdModel
from wisecrowd.learning.training.label_model import confusion_from, soft_votes, softmax, vote_scores
from wisecrowd.learning.training.neural_classifier import NeuralClassifier, as_array
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import log_softmax

LARGEST_LEAD = 10.0  # largest initial margin of a vote in logits; beyond, gradients vanish
MOST_PAIRS = 1000  # about how many held-out tasks scale the vote; all their pairs are compared
SCALES = [0.8**power for power in range(11)]  # candidate scales of the vote, 1 to about 0.1


@dataclass(frozen=True)
class Divergence:
    r"""A convex function, its derivative and its conjugate.

    Attributes
    ----------
    value : :math:`f(\kappa)`
    slope : :math:`\partial f(\kappa)`
    conjugate : :math:`f^*(\partial f(\kappa))`
        All as functions of :math:`\log\kappa`.
    """

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    conjugate: Callable[[Tensor], Tensor]


def _js_value(log_k: Tensor) -> Tensor:
    # -(k + 1) log((1 + k) / 2) + k log k
    return log_k.exp() * log_k - (1 + log_k.exp()) * (functional.softplus(log_k) - math.log(2))


DIVERGENCES = {
    "kl": Divergence(
        value=lambda log_k: log_k.exp() * log_k,
        slope=lambda log_k: 1 + log_k,
        conjugate=torch.exp,
    ),
    "pearson": Divergence(
        value=lambda log_k: torch.expm1(log_k).square(),
        slope=lambda log_k: 2 * torch.expm1(log_k),
        conjugate=lambda log_k: torch.expm1(2 * log_k),
    ),
    "jensen-shannon": Divergence(
        value=_js_value,
        slope=lambda log_k: math.log(2) + functional.logsigmoid(log_k),
        conjugate=lambda log_k: functional.softplus(log_k) - math.log(2),
    ),
    "hellinger": Divergence(
        value=lambda log_k: torch.expm1(0.5 * log_k).square(),
        slope=lambda log_k: -torch.expm1(-0.5 * log_k),
        conjugate=lambda log_k: torch.expm1(0.5 * log_k),
    ),
    "reverse-kl": Divergence(
        value=lambda log_k: -log_k,
        slope=lambda log_k: -torch.exp(-log_k),
        conjugate=lambda log_k: log_k - 1,
    ),
}


@dataclass(eq=False, repr=False, kw_only=True)
class MaxMIG(NeuralClassifier):
    r"""Maximise the f-mutual information gain between a classifier and a weighted vote.

    .. math::
        g(y_i) = \mathrm{softmax}\Big(\sum_j W_j[\cdot, y_{ij}] + \log p\Big), \qquad
        \kappa_{ii'} = \sum_c \frac{h_c(x_i)\, g_c(y_{i'})}{p_c}

    The gain :math:`E_i[\partial f(\kappa_{ii})] - E_{i \neq i'}[f^*(\partial f(\kappa_{ii'}))]` is
    highest where :math:`h` and :math:`g` are the class posteriors given features and labels. The
    two sources are assumed independent given the class. Mistakes that workers share with each other
    but not with the features do not increase it.

    Use it when workers make correlated mistakes, copy each other, or mostly give one label to
    everything. Cost per batch: that of the classifier plus O(batch² × classes).

    Parameters
    ----------
    divergence : {"kl", "pearson", "jensen-shannon", "hellinger", "reverse-kl"}
    start : str, method, "votes" or "soft-votes"
        Source of the initial weights: the log confusion matrices of votes weighted by information
        content ("votes"), of plain vote shares as in the paper ("soft-votes", whose initial margin
        is not limited), or of a method that is fitted first.
    floor : float
        Added to these matrices before the logarithm.
    learn_prior : bool
        Learn :math:`p` instead of a uniform prior.
    aggregator : callable, optional
        Replacement of the weighted vote: a function of ``(n_workers, n_classes)`` that returns a
        torch module from a ``CrowdBatch`` to (B, K) logits.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    vote_weight_ : (n_workers, n_classes, n_classes)
        ``vote_weight_[j, c, l]``: weight of label ``l`` by worker ``j`` for class ``c``.
    prior_ : (n_classes,)
    probas_ : (n_tasks, n_classes)
        Posterior from features and labels, :math:`\zeta_c \propto h_c g_c / p_c`.

    Notes
    -----
    The published code adds noise inside logarithms and reports the best test epoch; here ratios
    stay in the log domain. A worker without labels has weight zero. The gain does not depend on the
    order of the classes; after training they are ordered so that labels support their own class.

    A network can memorise the vote, and the vote then becomes overconfident. With
    ``selection="crowd"`` the epoch and the scale of the vote maximise the gain on held-out tasks.
    The defaults of weight decay and ``crowd_lr`` were
    chosen on simulated crowds (``replays/max_mig.py``).

    References
    ----------
    Cao, Xu, Kong and Wang (2019). Max-MIG: an information theoretic approach for joint learning
    from crowds. ICLR.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 40, axis=0) + 0.1 * rng.normal(size=(80, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 40, axis=0)
    >>> MaxMIG(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    crowd_lr: float = 5e-3
    weight_decay: float = 1e-2
    divergence: str = "kl"
    start: Any = "votes"
    floor: float = 0.01
    learn_prior: bool = False
    aggregator: Any = None

    saves: ClassVar[dict[str, Saved]] = {
        "prior_": SavedArray("K", "distribution"),
        "vote_weight_": SavedArray("J K K", optional=lambda fit: fit.aggregator is not None),
    }

    limits: ClassVar[Limits] = {
        "divergence": Choice(tuple(DIVERGENCES)),
        "floor": Number(1e-12, 1.0),
        "learn_prior": Flag(),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        if self.aggregator is not None and not callable(self.aggregator):
            raise ParameterError(
                "aggregator must be a function of (n_workers, n_classes) that makes a module."
            )

    def _make_network(self, shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        return Ordered(super()._make_network(shape, n_classes, n_workers), n_classes)

    def _build(self, network: nn.Module, data: CrowdData) -> InformationModel:
        sizes = data.labels.n_workers, data.labels.n_classes
        if self.aggregator is not None:
            vote = self.aggregator(*sizes)
        else:
            vote = VoteLayer(start_weights(self.start, data, self.floor))
        return InformationModel(network, vote, sizes[1], self.divergence, self.learn_prior)

    def _learned(self, model: CrowdModel, data: CrowdData) -> dict[str, Any]:
        assert isinstance(model, InformationModel)
        if isinstance(model.vote, VoteLayer):
            model.name_classes(class_order(model.vote, data.labels))
        known: dict[str, Any] = {"prior": np.exp(as_array(model.log_prior()))}
        if isinstance(model.vote, VoteLayer):
            known["vote_weight"] = as_array(model.vote.weight.transpose(1, 2))
            known["private"] = {"vote": None}
        else:
            known["private"] = {"vote": model.vote.cpu().eval()}
        return known

    # ---------------------------------------------------------------------------------- predict

    def aggregate(self, labels: Any) -> Floats:
        """Return (n, K) class probabilities of tasks from labels alone, by workers of the fit."""
        from wisecrowd.kinds.classes.columns import as_crowd_labels

        self._require_fitted()
        scores = self._vote_scores(self._known(as_crowd_labels(labels)))
        return softmax(scores + np.log(self.prior_))

    def _forecast(self, log_probas: Floats, labels: CrowdLabels) -> Floats:
        # h g / p: the prior that the vote starts from is divided out again
        return softmax(log_probas + self._vote_scores(labels))

    def _vote_scores(self, labels: CrowdLabels) -> Floats:
        weight = self.__dict__.get("vote_weight_")
        if weight is not None:
            return vote_scores(weight, labels)
        return _scores_of(self._vote, labels)


class InformationModel(CrowdModel):
    """The gain as a loss to minimise."""

    free_prior: Tensor

    def __init__(
        self, network: nn.Module, vote: nn.Module, n_classes: int, divergence: str, learn: bool
    ) -> None:
        super().__init__(network)
        self.vote, self.divergence = vote, DIVERGENCES[divergence]
        zeros = torch.zeros(n_classes)
        if learn:
            self.free_prior = nn.Parameter(zeros)
        else:
            self.register_buffer("free_prior", zeros)

    def log_prior(self) -> Tensor:
        """Return (K,): log p."""
        return functional.log_softmax(self.free_prior, dim=0)

    @torch.no_grad()
    def name_classes(self, order: Tensor) -> None:
        """Reorder the classes of the network, the vote and the prior."""
        of_network = self.network.get_buffer("order")
        of_network.copy_(of_network[order])
        weight = self.vote.get_parameter("weight")
        weight.copy_(weight[:, :, order])
        self.free_prior.copy_(self.free_prior[order])

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return minus the information gain of the batch."""
        return -self._gain(log_probas, self.vote(batch))

    def _gain(self, log_probas: Tensor, votes: Tensor) -> Tensor:
        log_prior = self.log_prior()
        log_g = log_softmax(votes + log_prior)
        return information_gain(self.divergence, log_probas, log_g, log_prior)

    def held_out_score(self, data: CrowdData, unseen: Tensor) -> float | None:
        """Return the gain of classifier and vote on these tasks."""
        return self._best_scale(data, unseen)[0]

    def evidence_scale(self, data: CrowdData, unseen: Tensor) -> float:
        """Return the scale of the vote, at most 1, with the largest gain on these tasks."""
        return self._best_scale(data, unseen)[1]

    @torch.inference_mode()
    def _best_scale(self, data: CrowdData, unseen: Tensor) -> tuple[float, float]:
        """Return the largest gain on held-out tasks, and the scale of the vote that gives it."""
        self.eval()
        batch = data.batch(unseen[: len(unseen) : max(1, len(unseen) // MOST_PAIRS)])
        log_probas, votes = self.batch_log_probas(batch), self.vote(batch)
        return max((float(self._gain(log_probas, scale * votes)), scale) for scale in SCALES)

    @torch.no_grad()
    def scale_evidence(self, scale: float) -> None:
        """Multiply the weights of the vote; an aggregator of the user is left unchanged."""
        if isinstance(self.vote, VoteLayer):
            self.vote.weight.mul_(scale)


def log_ratio(log_h: Tensor, log_g: Tensor, log_prior: Tensor) -> Tensor:
    r"""Return (A, B) :math:`\log \sum_c h_c(x_a)\, g_c(y_b) / p_c`.

    Parameters
    ----------
    log_h, log_g : (A, K), (B, K)
    log_prior : (K,)
    """
    log_v = log_g - log_prior
    # A product of matrices, with the largest terms divided out; its range is that of doubles.
    top_h, top_v = (x.detach().amax(dim=1, keepdim=True) for x in (log_h, log_v))
    product = (log_h - top_h).double().exp() @ (log_v - top_v).double().exp().T
    if not (product > 0).all():
        return torch.logsumexp(log_h[:, None, :] + log_v[None, :, :], dim=2)
    return (product.log() + top_h + top_v.T).to(log_h.dtype)


def information_gain(
    divergence: Divergence, log_h: Tensor, log_g: Tensor, log_prior: Tensor
) -> Tensor:
    r"""Return the information gain of a batch: pairs of the same task against all other pairs.

    .. math::
        \frac{1}{B} \sum_i \partial f(\kappa_{ii})
        - \frac{1}{B (B - 1)} \sum_{i \neq j} f^*(\partial f(\kappa_{ij}))

    Parameters
    ----------
    divergence : Divergence
    log_h, log_g : (B, K)
        Predictions of the same classes from two sources.
    log_prior : (K,)

    Examples
    --------
    >>> log_p = torch.tensor([0.25, 0.75]).log()
    >>> same = log_p.repeat(8, 1)  # predicting the prior gains nothing
    >>> round(information_gain(DIVERGENCES["kl"], same, same, log_p).item(), 6)
    0.0
    """
    n = len(log_h)
    log_k = log_ratio(log_h, log_g, log_prior)
    conjugate = divergence.conjugate(log_k)
    others = (conjugate.sum() - conjugate.diagonal().sum()) / max(n * (n - 1), 1)
    return divergence.slope(log_k.diagonal()).mean() - others


class VoteLayer(nn.Module):
    r"""Logits :math:`\sum_j W_j[\cdot, y_{ij}]`; the weights are stored by (worker, label)."""

    def __init__(self, weight: Floats) -> None:
        super().__init__()
        by_label = np.ascontiguousarray(weight.transpose(0, 2, 1))  # (J, L, K)
        self.weight = nn.Parameter(torch.tensor(by_label, dtype=torch.float32))

    def forward(self, batch: CrowdBatch) -> Tensor:
        """Return (B, K)."""
        n_labels, n_classes = self.weight.shape[1:]
        rows = self.weight.reshape(-1, n_classes).index_select(
            0, batch.worker * n_labels + batch.label
        )
        return batch.per_task(rows if batch.weight is None else rows * batch.weight[:, None])


def start_weights(start: Any, data: CrowdData, floor: float) -> Floats:
    """Return (J, K, L) weights: log confusion matrices, zero for workers without labels.

    They are scaled down if many workers would make the vote so confident that gradients vanish,
    except with the paper's start, "soft-votes".
    """
    labels = data.labels
    published = isinstance(start, str) and start == "soft-votes"
    if published:
        probas = soft_votes(data)
    elif isinstance(start, str) and start == "votes":
        probas = informative_votes(data)
    else:
        # A copy: the user's own object stays as it is.
        method = get_method(start)() if isinstance(start, str) else copy.deepcopy(start)
        if not isinstance(method, Aggregator):
            raise ParameterError(
                f"start is {start!r}; give 'votes', 'soft-votes', or an aggregation method or its "
                "name."
            )
        known = {t: labels.classes[g] for t, g in enumerate(data.gold) if g >= 0}
        gold = {labels.tasks[t]: value for t, value in known.items()} or None
        fitted = method._fit_for_targets(labels, gold)
        probas = fitted.probas_
        probas = probas.toarray() if hasattr(probas, "toarray") else probas
    weight = np.log(confusion_from(probas, labels, 1e-10) + floor)
    weight[labels.labels_per_worker == 0] = 0.0
    if published:
        return np.asarray(weight)
    scores = np.sort(vote_scores(weight, labels)[labels.labels_per_task > 0], axis=1)
    lead = float(np.median(scores[:, -1] - scores[:, -2])) if labels.n_classes > 1 else 0.0
    return np.asarray(weight * min(1.0, LARGEST_LEAD / max(lead, 1e-300)))


def informative_votes(data: CrowdData) -> Floats:
    """Return (N, K) shares of votes weighted by their information content.

    The weight of a label is minus the logarithm of its frequency among the worker's labels, so a
    worker who always gives the same label hardly counts. With equal weights, a majority of such
    workers would make their class likely everywhere.
    """
    labels = data.labels
    n_workers, n_classes = labels.n_workers, labels.n_classes
    cell = labels.worker.astype(np.int64) * n_classes + labels.label
    counts = np.bincount(cell, labels.weight, n_workers * n_classes).reshape(n_workers, n_classes)
    # workers with few labels are shrunk towards the frequencies of all
    expected = counts + n_classes * counts.sum(axis=0) / max(counts.sum(), 1e-300)
    often = expected / expected.sum(axis=1, keepdims=True)
    weight = 0.01 - safe_log(often).reshape(-1)[cell]  # positive, so that no task is without votes
    weight = weight if labels.weight is None else weight * labels.weight
    return soft_votes(CrowdData(data.features, replace(labels, weight=weight), data.gold))


def class_order(vote: VoteLayer, labels: CrowdLabels) -> Tensor:
    """Return the order of the classes in which labels support their own class most."""
    from scipy.optimize import linear_sum_assignment

    weight = as_array(vote.weight)  # (J, L, K)
    cell = labels.worker.astype(np.int64) * labels.n_classes + labels.label
    counts = np.bincount(cell, labels.weight, weight.shape[0] * weight.shape[1])
    speaks = np.einsum("jl,jlc->lc", counts.reshape(weight.shape[:2]), weight)
    return torch.from_numpy(linear_sum_assignment(speaks, maximize=True)[1])


class Ordered(nn.Module):
    """A network whose classes can be reordered after training."""

    order: Tensor

    def __init__(self, backbone: nn.Module, n_classes: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.register_buffer("order", torch.arange(n_classes))

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, K) logits."""
        logits: Tensor = self.backbone(x)
        return logits.index_select(1, self.order)


@torch.inference_mode()
def _scores_of(vote: nn.Module, labels: CrowdLabels) -> Floats:
    """Return the logits of the user's aggregator for all tasks at once."""
    task, worker, label = (
        torch.from_numpy(np.array(codes, dtype=np.int64))
        for codes in (labels.task, labels.worker, labels.label)
    )
    rows = torch.arange(labels.n_tasks)
    weight = None if labels.weight is None else torch.tensor(labels.weight, dtype=torch.float32)
    return as_array(vote(CrowdBatch(torch.empty(len(rows), 0), rows, task, worker, label, weight)))
