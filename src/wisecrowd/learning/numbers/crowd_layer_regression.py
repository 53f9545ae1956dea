"""The crowd layer for numbers: scale and bias of each worker after a regression network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from wisecrowd.core.parameter_checks import Choice, Limits
from wisecrowd.core.saved_attributes import NUMBER, Saved, SavedValue, is_finite
from wisecrowd.core.types import Floats
from wisecrowd.learning.numbers.crowd_regressor import (
    CrowdRegressor,
    LearnedNumbers,
    NumberTraining,
    fit_noise,
)
from wisecrowd.learning.training.crowd_data import CrowdData, outputs_of
from wisecrowd.learning.training.network_training import (
    ScalarTraining,
    as_array,
    choose_device,
    with_features,
)
from wisecrowd.learning.training.ranks import over_ranks
from wisecrowd.learning.training.trainer import NetworkModel
from wisecrowd.nn.backbones import AffineOutput
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import NUMBER_LAYERS, WorkerNumbers
from wisecrowd.nn.objectives import number_loss


@dataclass(eq=False, repr=False, kw_only=True)
class CrowdLayerRegression(ScalarTraining, CrowdRegressor):
    r"""The crowd layer for numbers: each worker scales and shifts the output of a regression.

    .. math::
        \min \frac{1}{E} \sum_e (y_e - \hat y_{j_e}(f(x_{i_e})))^2, \qquad
        \hat y_j(f) = s_j f,\; f + b_j,\; s_j f + b_j,\; s_j (f + b_j)

    Scales start at 1 and biases at 0. After every epoch their means over annotations are set to
    1 and 0 again, and the network's output takes over what they lose. Numbers are standardised for
    training (without a shift for kind "S"). Noise and the variance around the regression are
    estimated afterwards, so that predictions can use labels.

    Use it when tasks have features that a network must learn from, such as images. Prefer
    RaykarRegression for vectors: this loss weighs all workers alike. Cost per epoch: that of the
    network plus O(annotations).

    Parameters
    ----------
    kind : {"S", "B", "S+B", "B+S"}
        The form of :math:`\hat y_j`, in the order of the equation.
    module : str, torch module, or callable
        "mlp", "linear", "pooled-cnn", "deep-cnn"; a module with one output; or a function of
        ``(shape, n_outputs)`` that makes one.
    **others
        Parameters of ``NeuralClassifier``: epochs, batch_size, lr, weight_decay, selection ...

    Attributes
    ----------
    values_, variance_, low_, high_ : (n_tasks,)
        Posterior from features and labels.
    slope_, bias_, noise_ : (n_workers,)
    residual_variance_ : float
    best_epoch_, selection_, input_shape_

    Notes
    -----
    With balanced assignment the biases cancel, so that kind "B" is about as good as a regression
    on the mean of each task. For kind "B+S" ``bias_`` is :math:`s_j b_j`.

    References
    ----------
    Rodrigues and Pereira (2018). Deep learning from crowds. AAAI.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1))
    >>> numbers = 5 + 2 * X + np.array([-1.0, 0.0, 1.0]) + 0.1 * rng.normal(size=(200, 3))
    >>> fit = CrowdLayerRegression(module="linear", lr=0.1, crowd_lr=0.1).fit(X, numbers)
    >>> fit.predict([[0.0], [1.0]]).round(), fit.bias_.round() + 0.0
    (array([5., 7.]), array([-1.,  0.,  1.]))
    """

    kind: str = "B"

    on_several_processes: ClassVar[bool] = True
    saves: ClassVar[dict[str, Saved]] = {
        "center_": NUMBER,
        "unit_": SavedValue(lambda value: is_finite(value) and value > 0, "a number above zero"),
    }

    limits: ClassVar[Limits] = {"kind": Choice(NUMBER_LAYERS)}

    # ---------------------------------------------------------------------------------------- fit

    def _fit(self, training: NumberTraining) -> LearnedNumbers:
        numbers, device = training.labels, choose_device(self.device)
        selection = self._selection(training, numbers.n_annotations)
        self._require_resumable(training.resume)
        mean = float(np.average(numbers.value, weights=numbers.weights))
        unit = float(np.sqrt(np.average((numbers.value - mean) ** 2, weights=numbers.weights)))
        unit = unit if unit > 0 else 1.0
        center = 0.0 if self.kind == "S" else mean  # scales alone have a meaning around zero only
        standard = replace(numbers, value=(numbers.value - center) / unit)
        data = CrowdData(training.X, standard, (training.gold - center) / unit, device=device)
        useful = (numbers.labels_per_task > 0) | ~np.isnan(training.gold)
        training = with_features(training, data.features.shape)
        if training.valid is not None:
            features, values = training.valid
            training = replace(training, valid=(features, (values - center) / unit))
        with self._own_generator(device):
            rows = torch.from_numpy(np.flatnonzero(useful))
            run = self._train(training, data, rows, selection)
        network = run.model.network.eval().to("cpu")
        predicted = center + unit * outputs_of(network, data.features)
        slope, intercept = (as_array(part) for part in run.model.workers.line())
        bias = unit * intercept + center * (1 - slope)
        outcome = self._outcome_of(run, selection, data.features.shape)
        outcome["extra"] |= {"center": center, "unit": unit}
        return LearnedNumbers(
            predicted,
            fit_noise(predicted, numbers, slope, bias),
            private={"network": network},
            **outcome,
        )

    def _new_model(self, data: CrowdData, seen: CrowdData) -> NumberLayerModel:
        network = self._started_network(data.features, "the number")
        numbers = seen.labels
        network.move(shift=float(np.average(numbers.value, weights=numbers.weights)))
        count = np.bincount(numbers.worker, numbers.weights, numbers.n_workers)
        workers = WorkerNumbers(numbers.n_workers, self.kind)
        return NumberLayerModel(network, workers, torch.from_numpy(count))

    def _score(
        self, model: NumberLayerModel, data: CrowdData, rows: Tensor, valid: Tensor | None,
        known: Any,
    ) -> float:  # fmt: skip
        """Return minus the mean squared error, of held-out labels or of known numbers."""
        if valid is None:
            features, values = known
            found = outputs_of(model.network, features, device=data.device)
            return -float(np.mean((found - values) ** 2))
        return model.held_out_score(data, valid)

    # --------------------------------------------------------------------------------- afterwards

    def _numbers(self, X: Any) -> Floats:
        output = outputs_of(self._network, self._new_features(X))
        return np.asarray(self.center_ + self.unit_ * output)


class NumberLayerModel(NetworkModel):
    """A regression with scale and bias per worker.

    Attributes
    ----------
    workers : WorkerNumbers
    count : (J,)
        Weight of the annotations by each worker.
    """

    network: AffineOutput
    count: Tensor

    def __init__(self, network: AffineOutput, workers: WorkerNumbers, count: Tensor) -> None:
        super().__init__(network)
        self.workers = workers
        self.register_buffer("count", count, persistent=False)

    def expected(self, f: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the (E,) numbers expected of workers, given f(x) of the tasks, (B,)."""
        expected: Tensor = self.workers(f.index_select(0, batch.task), batch.worker)
        return expected

    def loss(self, batch: CrowdBatch) -> Tensor:
        """Return the squared error of the labels plus that of known numbers."""
        f = over_ranks(self.network, batch)
        loss = number_loss(self.expected(f, batch), batch.label, batch.weight)
        if batch.gold is not None:
            known = ~batch.gold.isnan()
            loss = loss + number_loss(f[known], batch.gold[known])
        return loss

    def end_epoch(self, data: CrowdData) -> None:
        """Set the mean scale to 1 and the mean bias to 0, by way of the network's output."""
        if data.gold is None or np.isnan(data.gold).all():  # known numbers fix level and unit
            scale, shift = self.workers.gauge(self.count)
            self.network.move(scale=scale, shift=shift)

    @torch.inference_mode()
    def held_out_score(self, data: CrowdData, rows: Tensor) -> float:
        """Return minus the mean squared error of the labels of held-out tasks."""
        self.eval()
        total = weight = 0.0
        for batch in data.batches(rows, 4096):
            each = data.counts(batch)
            error = (batch.label - self.expected(over_ranks(self.network, batch), batch)) ** 2
            total += float((each * error).sum())
            weight += float(each.sum())
        return -total / max(weight, 1e-12)
