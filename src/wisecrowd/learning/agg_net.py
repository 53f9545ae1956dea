"""AggNet: EM with the output of a network as the class prior of each task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from wisecrowd.core.parameter_checks import MOST_STARTS, Count, Limits, Number
from wisecrowd.learning.training.crowd_data import CrowdData, log_probas_of
from wisecrowd.learning.training.crowd_model import TargetModel
from wisecrowd.learning.training.label_model import confusion_from, forecast, soft_votes
from wisecrowd.learning.training.neural_classifier import NeuralClassifier, as_array


@dataclass(eq=False, repr=False, kw_only=True)
class AggNet(NeuralClassifier):
    r"""Generalised EM: the network's output is the prior of a Dawid-Skene model of the labels.

    .. math::
        p(y_i \mid x_i) = \sum_k f_k(x_i) \prod_j \theta_j[k, y_{ij}]

    The E-step is :math:`q_i(k) \propto f_k(x_i) \prod_j \theta_j[k, y_{ij}]`. The M-step estimates
    :math:`\theta` from expected counts and trains the network for some epochs by cross entropy to
    :math:`q`, without resetting it. The initial :math:`q` is the soft vote.

    Use it when tasks have several labels each. With one label per task the confusion matrices may
    stay at the identity, which is their initial value; compare with CCEM.

    Parameters
    ----------
    steps : int
        Epochs of the network between two E-steps.
    smoothing : float
        Added to every count of the confusion matrices.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    References
    ----------
    Albarqouni et al. (2016). AggNet: deep learning from crowds for mitosis detection in breast
    cancer histology images. IEEE TMI; Raykar et al. (2010). Learning from crowds. JMLR.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> AggNet(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    steps: int = 1
    smoothing: float = 0.01

    limits: ClassVar[Limits] = {"steps": Count(1, MOST_STARTS), "smoothing": Number(1e-12)}

    def _build(self, network: nn.Module, data: CrowdData) -> PosteriorModel:
        return PosteriorModel(network, data, self.steps, self.smoothing)


class PosteriorModel(TargetModel):
    """A network whose targets are the class posterior, updated every few epochs."""

    table: Tensor

    def __init__(self, network: nn.Module, data: CrowdData, steps: int, smoothing: float) -> None:
        votes = soft_votes(data)
        super().__init__(network, torch.from_numpy(votes))
        self.steps, self.smoothing = steps, smoothing
        counted = confusion_from(votes, data.labels, smoothing)
        self.register_buffer("table", torch.from_numpy(counted))

    def begin_epoch(self, epoch: int, data: CrowdData) -> None:
        """Do an E-step, then estimate the confusion matrices from expected counts."""
        if epoch == 0 or epoch % self.steps:
            return  # the first epochs learn from the votes
        log_probas = log_probas_of(self.network, data.features, device=data.device)
        posterior = forecast(log_probas, data.labels, as_array(self.table))
        self.set_targets(posterior, data)
        counted: Any = confusion_from(as_array(self.targets), data.labels, self.smoothing)
        self.table.copy_(torch.from_numpy(counted))

    def confusion(self) -> Tensor:
        """Return the (J, K, K) confusion matrices."""
        return self.table
