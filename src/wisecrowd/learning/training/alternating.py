r"""Alternating inference and training: the classifier is the task prior of the inference.

E-step: the labels' posterior :math:`q(z)` under the prior :math:`h_i = \mathrm{clip}(f(x_i), c)`.
M-step: cross entropy of the classifier to :math:`q`. Clipping bounds the confidence of the prior:
:math:`c = 1/K` ignores the classifier, and 1 uses its output unchanged.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import ParameterError, WisecrowdWarning
from wisecrowd.core.parameter_checks import MOST_STARTS, Count, Flag, Limits, as_generator, is_auto
from wisecrowd.core.saved_attributes import Saved, number_between
from wisecrowd.core.types import Floats
from wisecrowd.inference.monitor import stage, unreported
from wisecrowd.kinds.classes.families.confusion import safe_log
from wisecrowd.learning.training.crowd_classifier import Learned, Training
from wisecrowd.learning.training.crowd_data import CrowdData, log_probas_of
from wisecrowd.learning.training.crowd_model import CrowdModel, TargetModel
from wisecrowd.learning.training.label_model import with_gold
from wisecrowd.learning.training.neural_classifier import NeuralClassifier, as_array
from wisecrowd.nn.batches import CrowdBatch

CLIPS = (0.5, 0.7, 0.9, 0.97, 1.0)  # candidates of "auto", besides a uniform prior
HELD_OUT = 0.1  # share of the annotations that "auto" holds out


def clip_probas(probas: Floats, largest: float) -> Floats:
    """Cap probabilities at ``largest`` and spread the excess evenly over the other classes.

    Parameters
    ----------
    probas : (N, K)
    largest : float
        Between 1/K, where rows become uniform, and 1, where nothing changes.

    Examples
    --------
    >>> clip_probas(np.array([[0.98, 0.02, 0.0], [0.4, 0.3, 0.3]]), 0.9)
    array([[0.9 , 0.06, 0.04],
           [0.4 , 0.3 , 0.3 ]])
    """
    clipped: Floats = np.array(probas, dtype=np.float64)
    largest = max(largest, 1 / clipped.shape[1])
    for _ in range(clipped.shape[1]):  # spreading may lift another class over the cap
        rows = np.flatnonzero((clipped > largest * (1 + 1e-12)).any(axis=1))
        if not len(rows):
            break
        part = clipped[rows]
        capped = part >= largest * (1 - 1e-12)
        surplus = np.where(capped, part - largest, 0.0).sum(axis=1, keepdims=True)
        room = np.maximum((~capped).sum(axis=1, keepdims=True), 1)
        clipped[rows] = np.where(capped, largest, part + surplus / room)
    return np.asarray(clipped / clipped.sum(axis=1, keepdims=True))


@dataclass(eq=False, repr=False, kw_only=True)
class AlternatingClassifier(NeuralClassifier):
    """Base class of deepMF and deepBP, which differ in the inference method.

    Parameters
    ----------
    prior : prior object, (a, b), (n_classes, n_classes) array, or "weak"
        Prior of the workers; any of :mod:`wisecrowd.inference.priors`.
    clip : float or "auto"
        Largest probability of the task prior. "auto" selects the value that maximises the
        likelihood of held-out annotations, without gold.
    steps : int
        Epochs of the network between two E-steps. If ``batch_size`` covers all tasks, an epoch is
        one step of the optimiser, as in the paper.
    rounds : int
        Iterations of the inference method per E-step.
    clip_in_loss : bool
        Also clip the classifier in the M-step, like the published code; its gradient is then zero
        beyond the cap.
    """

    prior: Any = "weak"
    clip: Any = 0.9
    steps: int = 1
    rounds: int = 5
    clip_in_loss: bool = False

    saves: ClassVar[dict[str, Saved]] = {
        "clip_": number_between(0, 1),
    }

    limits: ClassVar[Limits] = {
        "steps": Count(1, MOST_STARTS),
        "rounds": Count(1, MOST_STARTS),
        "clip_in_loss": Flag(),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        number = isinstance(self.clip, int | float) and not isinstance(self.clip, bool)
        if not is_auto(self.clip) and not (number and 0 < self.clip <= 1):
            raise ParameterError(
                f"clip is {self.clip!r}; give 'auto' or a number between 1 / n_classes and 1."
            )

    def _inference(self, last: bool = False) -> Aggregator:
        """Return the method of the E-step; the last one runs until it converges."""
        raise TypeError(f"{type(self).__name__} must define _inference.")

    def _build(self, network: nn.Module, data: CrowdData) -> AlternatingModel:
        return AlternatingModel(network, data, self._inference(), self)

    def _learned(self, model: CrowdModel, data: CrowdData) -> dict[str, Any]:
        assert isinstance(model, AlternatingModel)
        whole = data.whole
        log_f = log_probas_of(model.network, whole.features, device=whole.device)
        start = as_array(model.get_buffer("exact_targets"))
        begun = bool(whole.labels.n_annotations) and start.any()
        probas = clip_probas(np.exp(log_f), model.clip)
        final = _quietly(self._inference(last=True), whole, probas, start if begun else None)
        return {
            "probas": np.array(final.probas_),
            "confusion": np.array(final.confusion_),
            "clip": float(model.clip),
            **self._evidence(final, whole, log_f),
        }

    def _evidence(self, final: Any, data: CrowdData, log_f: Floats) -> dict[str, Any]:
        """Return further results of the last inference that predictions with labels need."""
        raise TypeError(f"{type(self).__name__} must define _evidence.")

    def _log_prior(self, log_probas: Floats) -> Floats:
        return safe_log(clip_probas(np.exp(log_probas), self.clip_))

    # ------------------------------------------------------------------- the clip, without gold

    def _fit(self, training: Training) -> Learned:
        if is_auto(self.clip):
            return self._with(clip=self._best_clip(training))._fit(training)
        return super()._fit(training)

    def _with(self, **parameters: Any) -> Self:
        """Return an unfitted copy with some other parameters."""
        return type(self)(**{**self.get_params(deep=False), **parameters})

    def _best_clip(self, training: Training) -> float:
        """Return the clip under which held-out annotations are most likely."""
        labels = training.labels
        rng = as_generator(self.random_state)
        hidden = rng.random(labels.n_annotations) < HELD_OUT
        seen, unseen = labels.select_annotations(~hidden), labels.select_annotations(hidden)
        if not unseen.n_annotations or not seen.n_annotations:
            return 0.9
        shown = Training(training.X, seen, training.gold)
        candidates = sorted({1 / labels.n_classes, *(c for c in CLIPS if c > 1 / labels.n_classes)})
        scores = []
        for clip in candidates:
            with stage(f"clip {clip:.3g}"):
                learned = self._with(clip=clip, selection="last", checkpoint=None)._fit(shown)
            assert learned.probas is not None
            assert learned.confusion is not None
            rows = learned.confusion[unseen.worker, :, unseen.label]  # (E, K)
            likelihood = (learned.probas[unseen.task] * rows).sum(axis=1)
            scores.append(np.average(safe_log(likelihood), weights=unseen.weight))
        return float(candidates[int(np.argmax(scores))])


class AlternatingModel(TargetModel):
    """A network whose targets are the posterior under its own output as task prior."""

    table: Tensor

    def __init__(
        self, network: nn.Module, data: CrowdData, method: Aggregator,
        options: AlternatingClassifier,
    ) -> None:  # fmt: skip
        n_tasks, n_classes = data.labels.n_tasks, data.labels.n_classes
        super().__init__(network, torch.zeros(n_tasks, n_classes))
        self.method, self.clip = method, max(float(options.clip), 1 / n_classes)
        self.steps, self.clip_in_loss = options.steps, options.clip_in_loss
        n_workers = data.labels.n_workers
        self.register_buffer("table", torch.zeros(n_workers, n_classes, n_classes).double())
        self.register_buffer("exact_targets", torch.zeros(n_tasks, n_classes).double())

    def begin_epoch(self, epoch: int, data: CrowdData) -> None:
        """Do an E-step with the current classifier; the first one has a uniform prior."""
        if epoch == 0:
            self.infer(np.full(self.targets.shape, 1 / self.targets.shape[1]), data)
        elif epoch % self.steps == 0:
            log_f = log_probas_of(self.network, data.features, device=data.device)
            start = as_array(self.get_buffer("exact_targets"))
            self.infer(clip_probas(np.exp(log_f), self.clip), data, start)

    def infer(self, probas: Floats, data: CrowdData, start: Floats | None = None) -> None:
        """Replace the targets by the posterior under a task prior (N, K)."""
        fitted = _quietly(self.method, data, probas, start)
        exact = torch.from_numpy(with_gold(np.array(fitted.probas_), data))
        self.get_buffer("exact_targets").copy_(exact)
        self.targets.copy_(exact)
        self.table.copy_(torch.from_numpy(np.array(fitted.confusion_)))

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the cross entropy to the posterior."""
        if self.clip_in_loss:
            log_probas = log_probas.clamp_max(float(np.log(self.clip)))
        return super().crowd_loss(log_probas, batch)

    def confusion(self) -> Tensor:
        """Return the (J, K, K) posterior means of the confusion matrices."""
        return self.table.float()


def _quietly(
    method: Aggregator, data: CrowdData, probas: Floats, start: Floats | None
) -> Aggregator:
    """Fit an inference method with a task prior; hide warnings and progress of every epoch."""
    prior = np.maximum(with_gold(probas, data), 1e-300)
    if (
        start is not None
    ):  # the fit multiplies its start by the prior, which this one already includes
        scores = safe_log(start) - np.log(prior)
        start = np.exp(scores - scores.max(axis=1, keepdims=True))
    with warnings.catch_warnings(), unreported():
        warnings.simplefilter("ignore", WisecrowdWarning)
        return method.fit(data.labels, task_prior=prior, init=start)
