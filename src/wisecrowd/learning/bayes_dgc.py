"""BayesDGC: stochastic variational inference with a classifier as a conjugate potential."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wisecrowd.core.parameter_checks import Flag, Limits, Number, check_number
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.dirichlet import divergence, expected_log
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import safe_log
from wisecrowd.learning.training.crowd_data import CrowdData, log_probas_of
from wisecrowd.learning.training.crowd_model import CrowdModel
from wisecrowd.learning.training.label_model import (
    expected_counts,
    soft_votes,
    softmax,
    vote_scores,
)
from wisecrowd.learning.training.neural_classifier import NeuralClassifier, as_array
from wisecrowd.nn.batches import CrowdBatch


@dataclass(eq=False, repr=False, kw_only=True)
class BayesDGC(NeuralClassifier):
    r"""Bayesian deep generative crowds: Dirichlet posteriors and a network, by natural gradients.

    .. math::
        \log q_i(k) = E\log\pi_k + \log\frac{f_k(x_i)}{\bar f_k}
        + \sum_j E\log\theta_j[k, y_{ij}] + const

    with :math:`q(\pi) = \mathrm{Dir}(\alpha)` and :math:`q(\theta_j[k, \cdot]) =
    \mathrm{Dir}(\beta_{jk})`. Each mini-batch moves :math:`\alpha` and :math:`\beta` towards their
    estimates from this batch alone, with step size :math:`(t + 1)^{-\kappa}`. The network is
    trained by cross entropy to :math:`q`.

    Use it when labels are few or classes are rare: priors regularise workers with few labels, and
    features determine the tasks without labels.

    Parameters
    ----------
    class_alpha : float
        Prior Dirichlet parameter of every class.
    diagonal, elsewhere : float
        Prior Dirichlet parameters of a confusion row, on and off the diagonal.
    forgetting : float
        :math:`\kappa`; with 0 every step is a full step.
    estimate_class : bool
        Whether the model has :math:`\pi`. Without it the network alone determines the class
        frequencies, and :math:`\bar f` is left out.
    divide_by_mean : bool
        Whether :math:`f` is divided by its mean :math:`\bar f` over all tasks. False gives the
        paper's equation (14).
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    elbo_ : (epochs,)
        Evidence lower bound after every epoch.
    class_posterior_, confusion_posterior_ : (n_classes,), (n_workers, n_classes, n_classes)
        Dirichlet parameters of the posterior.
    class_score_ : (n_classes,)
        :math:`E\log\pi_k - \log\bar f_k`, without the terms that the options switch off.

    Notes
    -----
    The formula above without :math:`\bar f` is the paper's equation (14), which lacks a logarithm
    and the restriction to the workers of a task in print. The default divides by
    :math:`\bar f`: a network trained on :math:`q` already learns the class frequencies, so
    :math:`\pi` would count them twice and common classes would grow with every step.

    Potentials are log-probabilities. Raw logits give the same :math:`q`, but the ELBO would be
    unbounded.

    References
    ----------
    Li, Huang and Chen (2021). Crowdsourcing aggregation with deep Bayesian learning. Science China
    Information Sciences 64.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> BayesDGC(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    class_alpha: float = 1.1
    diagonal: float = 5.0
    elsewhere: float = 2.0
    forgetting: float = 0.7
    estimate_class: bool = True
    divide_by_mean: bool = True

    saves: ClassVar[dict[str, Saved]] = {
        "elbo_": SavedArray("*"),
        "class_posterior_": SavedArray("K", "positive"),
        "class_score_": SavedArray("K"),
        "confusion_posterior_": SavedArray("J K K", "positive"),
    }

    limits: ClassVar[Limits] = {
        "forgetting": Number(0.0, 1.0),
        "estimate_class": Flag(),
        "divide_by_mean": Flag(),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        for name in ("class_alpha", "diagonal", "elsewhere"):
            check_number(name, getattr(self, name), 1e-6)

    def _build(self, network: nn.Module, data: CrowdData) -> NaturalGradientModel:
        return NaturalGradientModel(network, data, self)

    def _learned(self, model: CrowdModel, data: CrowdData) -> dict[str, Any]:
        assert isinstance(model, NaturalGradientModel)
        whole = data.whole
        log_f = log_probas_of(model.network, whole.features, device=whole.device)
        model.set_mean(data, log_f)
        elbo = as_array(model.elbo)
        return {
            "confusion": as_array(model.confusion()),
            "elbo": np.append(elbo[np.isfinite(elbo)], model.bound(data, log_f)),
            "class_posterior": as_array(model.alpha),
            "class_score": as_array(model.class_score()),
            "confusion_posterior": as_array(model.beta),
        }

    def _forecast(self, log_probas: Floats, labels: CrowdLabels) -> Floats:
        votes = vote_scores(expected_log(self.confusion_posterior_), labels)
        return softmax(log_probas + self.class_score_ + votes)

    def _log_prior(self, log_probas: Floats) -> Floats:
        return safe_log(softmax(log_probas + self.class_score_))


class NaturalGradientModel(CrowdModel):
    """Dirichlet parameters as buffers; each training batch updates them before the network."""

    alpha: Tensor
    beta: Tensor
    step: Tensor
    elbo: Tensor
    log_mean: Tensor

    def __init__(self, network: nn.Module, data: CrowdData, options: BayesDGC) -> None:
        super().__init__(network)
        labels = data.labels
        self.forgetting, self.estimate_class = options.forgetting, options.estimate_class
        self.divide_by_mean = options.divide_by_mean
        self.n_tasks = max(1, int(_known(data).sum()))
        K = labels.n_classes
        row = torch.full((K, K), options.elsewhere).fill_diagonal_(options.diagonal).double()
        self.register_buffer("alpha_prior", torch.full((K,), options.class_alpha).double())
        self.register_buffer("beta_prior", row.expand(labels.n_workers, K, K).clone())
        counts = torch.from_numpy(expected_counts(soft_votes(data), labels))
        self.register_buffer("alpha", self.get_buffer("alpha_prior").clone())
        self.register_buffer("beta", self.get_buffer("beta_prior") + counts)
        self.register_buffer("step", torch.zeros((), dtype=torch.long))
        self.register_buffer("log_mean", torch.zeros(K).double())
        self.register_buffer("elbo", torch.full((options.epochs,), torch.nan).double())

    def _counts(self, q: Tensor, batch: CrowdBatch) -> Tensor:
        """Return (J, K, L) expected counts of the annotations of a batch."""
        n_workers, n_classes, n_labels = self.get_buffer("beta_prior").shape
        mass = q.double().index_select(0, batch.task)
        if batch.weight is not None:
            mass = mass * batch.weight[:, None]
        total = mass.new_zeros(n_workers * n_labels, n_classes)
        total.index_add_(0, batch.worker * n_labels + batch.label, mass)
        return total.reshape(n_workers, n_labels, n_classes).transpose(1, 2)

    def _posterior(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return q (B, K) of a batch under the current Dirichlet posteriors."""
        logs = torch.digamma(self.beta) - torch.digamma(self.beta.sum(dim=2, keepdim=True))
        rows = logs[batch.worker, :, batch.label]
        if batch.weight is not None:
            rows = rows * batch.weight[:, None]
        scores = log_probas.detach().double() + self.class_score() + batch.per_task(rows)
        q = torch.softmax(scores, dim=1)
        if batch.gold is not None:
            known = batch.gold >= 0
            certain = torch.nn.functional.one_hot(batch.gold.clamp_min(0), q.shape[1])
            q = torch.where(known[:, None], certain.to(q.dtype), q)
        return q

    def class_score(self) -> Tensor:
        """Return the (K,) term added to log f: E log π minus the log of the mean, or zeros."""
        if not self.estimate_class:
            return torch.zeros_like(self.alpha)
        return torch.digamma(self.alpha) - torch.digamma(self.alpha.sum()) - self.log_mean

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Infer q of the batch, update the Dirichlets, and return the cross entropy to q."""
        with torch.no_grad():
            q = self._posterior(log_probas, batch)
            if self.training:
                self._natural_step(q, batch)
        return -(q.to(log_probas.dtype) * log_probas).sum(dim=1).mean()

    def _natural_step(self, q: Tensor, batch: CrowdBatch) -> None:
        rate = float((self.step + 1) ** -self.forgetting) if self.forgetting else 1.0
        scale = self.n_tasks / max(len(batch), 1)
        counts = self._counts(q, batch)
        self.alpha += rate * (self.get_buffer("alpha_prior") + scale * q.sum(dim=0) - self.alpha)
        self.beta += rate * (self.get_buffer("beta_prior") + scale * counts - self.beta)
        self.step += 1

    def begin_epoch(self, epoch: int, data: CrowdData) -> None:
        """Record the bound after the previous epoch, and the mean output of the network."""
        log_f = log_probas_of(self.network, data.features, device=data.device)
        if epoch:
            self.elbo[epoch - 1] = self.bound(data, log_f)
        self.set_mean(data, log_f)

    def set_mean(self, data: CrowdData, log_f: Floats) -> None:
        """Set the mean output of the network over the tasks with labels or gold."""
        if not self.divide_by_mean:
            return
        mean = np.exp(log_f[_known(data)]).mean(axis=0)
        self.log_mean.copy_(torch.from_numpy(safe_log(mean)))

    def bound(self, data: CrowdData, log_f: Floats | None = None) -> float:
        """Return the evidence lower bound of all tasks, each with its optimal q."""
        labels = data.labels
        alpha, beta = as_array(self.alpha), as_array(self.beta)
        if log_f is None:
            log_f = log_probas_of(self.network, data.features, device=data.device)
        scores = log_f + as_array(self.class_score()) + vote_scores(expected_log(beta), labels)
        total = 0.0
        if self.estimate_class:
            total -= divergence(
                alpha, as_array(self.get_buffer("alpha_prior")), expected_log(alpha)
            )
        rows, gold = np.arange(len(scores)), data.gold
        top = scores.max(axis=1)
        log_z = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top
        log_z = np.where(gold >= 0, scores[rows, gold], log_z)  # there q is certain
        prior = as_array(self.get_buffer("beta_prior"))
        return (
            total + float(log_z[_known(data)].sum()) - divergence(beta, prior, expected_log(beta))
        )

    def confusion(self) -> Tensor:
        """Return the (J, K, K) posterior means."""
        return (self.beta / self.beta.sum(dim=2, keepdim=True)).float()


def _known(data: CrowdData) -> NDArray[np.bool_]:
    """Return the (N,) mask of tasks with labels or gold."""
    return np.asarray((data.labels.labels_per_task > 0) | (data.gold >= 0))
