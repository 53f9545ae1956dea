"""Virtual adversarial training: a classifier that is smooth at all tasks, labelled or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from wisecrowd.core.parameter_checks import Count, Limits, Number, check_number
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import ConfusionModel
from wisecrowd.learning.training.neural_classifier import NeuralClassifier
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import ConfusionHead, SoftmaxConfusion
from wisecrowd.nn.objectives import coupled_cross_entropy

PROBE = 1e-2  # length of the step, in units of the radius, that finds the adversarial direction


@dataclass(eq=False, repr=False, kw_only=True)
class VirtualAdversarial(NeuralClassifier):
    r"""Coupled cross entropy of the labels, and a classifier that is smooth at every task.

    .. math::
        \min_{f, \theta} -\frac{1}{E} \sum_{e} \log \sum_k f_k(x_i) \theta_j[k, y_{ij}]
        + \frac{\alpha}{N} \sum_i \max_{\|r\| \leq \rho}
        \mathrm{KL}\bigl(f(x_i) \,\|\, f(x_i + r)\bigr)
        + \frac{\eta}{N} \sum_i H\bigl(f(x_i)\bigr)

    The first sum is over annotations, the others are over all tasks, with labels or without. The
    direction :math:`r` in which the prediction changes most is found by power iterations.

    Use it when most tasks have no labels, and tasks of a class lie close together. Cost: three
    to four times that of training on labels, over all tasks.

    Parameters
    ----------
    alpha : float
        Weight of smoothness, :math:`\alpha`.
    radius : float
        :math:`\rho`, in standard deviations of a feature: the norm is ``radius`` times the square
        root of the number of features.
    entropy : float
        Weight of the mean entropy of predictions, :math:`\eta`.
    power_steps : int
        Power iterations.
    strength : float
        Initial logit of the diagonals of the confusion matrices.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)

    Notes
    -----
    The paper has labels without noise; here the labels' loss is that of a crowd. Dropout is off
    in the smoothness term, so that differences are due to :math:`r` alone.

    References
    ----------
    Miyato, Maeda, Koyama and Ishii (2018). Virtual adversarial training: a regularization method
    for supervised and semi-supervised learning. IEEE TPAMI 41(8).

    Examples
    --------
    >>> import numpy as np
    >>> from wisecrowd import CrowdLabels
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> tasks, workers = [0, 0, 30, 30], ["a", "b", "a", "b"]
    >>> labels = CrowdLabels.from_arrays(tasks, workers, [0, 0, 1, 1], tasks=list(range(60)))
    >>> model = VirtualAdversarial(module="linear", epochs=20, lr=0.1).fit(X, labels)
    >>> model.predict(np.eye(2))
    array([0, 1])
    """

    alpha: float = 1.0
    radius: float = 0.1
    entropy: float = 0.3
    power_steps: int = 1
    strength: float = 4.0

    uses_unlabelled: ClassVar[bool] = True
    on_several_processes: ClassVar[bool] = False  # the adversarial steps need all features

    limits: ClassVar[Limits] = {"radius": Number(1e-12), "power_steps": Count(1, 100)}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        for name in ("alpha", "entropy", "strength"):
            check_number(name, getattr(self, name), 0.0)

    def _build(self, network: nn.Module, data: CrowdData) -> AdversarialModel:
        labels = data.labels
        head = SoftmaxConfusion(labels.n_workers, labels.n_classes, strength=self.strength)
        sample = data.features.sample()
        scale = sample.double().std(dim=0, unbiased=False).to(sample.dtype)
        weights = (self.alpha, self.entropy)
        return AdversarialModel(network, head, scale, self.radius, weights, self.power_steps)


class AdversarialModel(ConfusionModel):
    """A classifier whose loss has a term for smoothness at all tasks of a batch."""

    scale: Tensor

    def __init__(
        self, network: nn.Module, head: ConfusionHead, scale: Tensor, radius: float,
        weights: tuple[float, float], power_steps: int,
    ) -> None:  # fmt: skip
        super().__init__(network, head)
        self.register_buffer("scale", scale)
        self.radius = radius * scale.numel() ** 0.5
        self.alpha, self.entropy = weights
        self.power_steps = power_steps

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the loss of the labels plus smoothness and entropy of all tasks."""
        rows = self.head.rows(batch.worker, batch.label)
        loss = coupled_cross_entropy(log_probas, rows, batch)
        if self.alpha:
            loss = loss + self.alpha * self.roughness(batch.x)
        if self.entropy:
            loss = loss - self.entropy * (log_probas.exp() * log_probas).sum(dim=1).mean()
        return loss

    def roughness(self, x: Tensor) -> Tensor:
        """Return the mean divergence of predictions at tasks and next to them, in the worst way."""
        was_training = self.network.training
        self.network.eval()
        with torch.no_grad():
            here = self.log_probas(x)
        direction = self.worst_direction(x, here)
        there = self.log_probas(x + self.radius * self.scale * direction)
        self.network.train(was_training)
        return _divergence(here, there)

    def worst_direction(self, x: Tensor, here: Tensor) -> Tensor:
        """Return (B, ...) directions of length one in which predictions change most."""
        direction = _unit(torch.randn_like(x))
        for _ in range(self.power_steps):
            direction.requires_grad_()
            there = self.log_probas(x + PROBE * self.radius * self.scale * direction)
            (gradient,) = torch.autograd.grad(_divergence(here, there), direction)
            direction = _unit(gradient.detach())
        return direction


def _divergence(here: Tensor, there: Tensor) -> Tensor:
    """Return the mean KL divergence of (B, K) log-probabilities."""
    return functional.kl_div(there, here, log_target=True, reduction="batchmean")


def _unit(direction: Tensor) -> Tensor:
    """Scale (B, ...) rows to length one; a row of zeros stays."""
    flat = direction.flatten(1)
    largest = flat.abs().amax(dim=1, keepdim=True).clamp_min(1e-30)
    flat = functional.normalize(flat / largest)  # squares of tiny numbers would vanish
    return flat.view_as(direction)
