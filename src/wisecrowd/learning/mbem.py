"""MBEM: EM that estimates workers from the network's predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wisecrowd.core.parameter_checks import MOST_STARTS, Count, Flag, Limits, Number
from wisecrowd.core.types import Floats
from wisecrowd.inference.engine import in_memory
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import naive_bayes
from wisecrowd.kinds.classes.prior import TaskPrior
from wisecrowd.learning.training.crowd_data import CrowdData, log_probas_of
from wisecrowd.learning.training.crowd_model import TargetModel
from wisecrowd.learning.training.label_model import confusion_from, soft_votes, with_gold
from wisecrowd.learning.training.neural_classifier import NeuralClassifier


@dataclass(eq=False, repr=False, kw_only=True)
class MBEM(NeuralClassifier):
    r"""Model-bootstrapped EM: estimate workers from the trained network, then train it again.

    .. math::
        c_i = \arg\max_k f_k(x_i), \quad
        \theta_j[k, l] \propto \sum_{i: y_{ij} = l} 1[c_i = k] + s, \quad
        q_i(k) \propto \hat p_k \prod_j \theta_j[k, y_{ij}]

    with :math:`\hat p` the shares of the predicted classes. The first training is on the soft
    votes and each later one on :math:`q`, which depends on the network through :math:`\theta` only.

    Use it when tasks have one label each and the features are good. AggNet often stays at the
    votes in that case.

    Parameters
    ----------
    rounds : int
        Trainings after the first. All trainings share ``epochs`` evenly.
    reinit : bool
        Start every training from the untrained network instead of the previous one.
    self_train : bool
        Use the network's own predictions as targets in the second half of every training, like
        the authors' code.
    smoothing : float
        :math:`s`; the row of a class that a worker never saw is uniform.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    References
    ----------
    Khetan, Lipton and Anandkumar (2018). Learning from noisy singly-labeled data. ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> MBEM(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    rounds: int = 2
    reinit: bool = False
    self_train: bool = False
    smoothing: float = 0.01

    limits: ClassVar[Limits] = {
        "rounds": Count(1, MOST_STARTS),
        "reinit": Flag(),
        "self_train": Flag(),
        "smoothing": Number(1e-12),
    }

    def _build(self, network: nn.Module, data: CrowdData) -> BootstrappedModel:
        plan = training_plan(self.epochs, self.rounds, self.self_train)
        return BootstrappedModel(network, data, plan, self.reinit, self.smoothing)


def training_plan(epochs: int, rounds: int, self_train: bool) -> dict[int, str]:
    """Return the action before each epoch that has one.

    Examples
    --------
    >>> training_plan(60, 2, self_train=False)
    {20: 'judge', 40: 'judge'}
    >>> training_plan(40, 1, self_train=True)
    {10: 'imitate', 20: 'judge', 30: 'imitate'}
    """
    halves = 2 * (rounds + 1)
    step = 1 if self_train else 2
    return {
        epochs * half // halves: "imitate" if half % 2 else "judge"
        for half in range(step, halves, step)
    }


def judge(
    predicted: Floats, labels: CrowdLabels, known: NDArray[np.bool_], smoothing: float
) -> tuple[Floats, Floats]:
    r"""Return confusion matrices (J, K, K) and posterior (N, K) that predictions imply.

    Parameters
    ----------
    predicted : (N, K)
        One-hot predictions.
    labels : CrowdLabels
    known : (N,)
        Mask of the tasks that determine the class prior.
    smoothing : float
    """
    confusion = confusion_from(predicted, labels, smoothing)
    class_prior = predicted[known].sum(axis=0) + smoothing
    flat = TaskPrior(np.zeros((1, labels.n_classes)))
    problem = in_memory(labels, flat)
    return confusion, naive_bayes(problem, confusion, class_prior / class_prior.sum())


class BootstrappedModel(TargetModel):
    """A network trained in rounds; workers are estimated from its predictions in between."""

    table: Tensor

    def __init__(
        self, network: nn.Module, data: CrowdData, plan: dict[int, str], reinit: bool,
        smoothing: float,
    ) -> None:  # fmt: skip
        votes = soft_votes(data)
        super().__init__(network, torch.from_numpy(votes))
        self.plan, self.smoothing = plan, smoothing
        start = confusion_from(votes, data.labels, smoothing)
        self.register_buffer("table", torch.from_numpy(start))
        self._untrained = {}
        if reinit:  # the same in a resumed fit, which has the same seed
            self._untrained = {k: v.detach().clone() for k, v in network.state_dict().items()}

    def begin_epoch(self, epoch: int, data: CrowdData) -> None:
        """Estimate the workers, or use the network's predictions as targets, if planned."""
        action = self.plan.get(epoch)
        if action is None or epoch == 0:
            return
        log_probas = log_probas_of(self.network, data.features, device=data.device)
        predicted = with_gold(np.eye(log_probas.shape[1])[log_probas.argmax(axis=1)], data)
        if action == "imitate":
            self.set_targets(predicted, data)
            return
        known = (data.labels.labels_per_task > 0) | (data.gold >= 0)
        confusion, posterior = judge(predicted, data.labels, known, self.smoothing)
        self.table.copy_(torch.from_numpy(confusion))
        self.set_targets(posterior, data)
        if self._untrained:
            self.network.load_state_dict(self._untrained)

    def confusion(self) -> Tensor:
        """Return the (J, K, K) confusion matrices."""
        return self.table
