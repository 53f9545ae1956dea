"""NeuralClassifier: training of a network on crowd labels, with a loss per method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wisecrowd.core.parameter_checks import check_choice, check_flag
from wisecrowd.learning.training.crowd_classifier import CrowdClassifier, Learned, Training
from wisecrowd.learning.training.crowd_data import CrowdData, Features, log_probas_of
from wisecrowd.learning.training.crowd_model import CrowdModel
from wisecrowd.learning.training.epoch_selection import (
    crowd_score,
    gold_score,
    judge_held_out,
)
from wisecrowd.learning.training.network_files import network_from
from wisecrowd.learning.training.network_training import (
    NetworkTraining,
    Run,
    choose_device,
    require_outputs,
    require_shape,
    standardize,
)
from wisecrowd.learning.training.network_training import as_array as as_array
from wisecrowd.learning.training.output_calibration import Calibration, calibration_by_classes
from wisecrowd.nn.backbones import make_backbone

Floats = NDArray[np.float64]
BALANCES = ("none", "weights", "sampling")


@dataclass(eq=False, repr=False, kw_only=True)
class NeuralClassifier(NetworkTraining, CrowdClassifier):
    """Base class of the methods that train a network; a method defines ``_build``.

    Parameters
    ----------
    module : str, torch module, or callable
        "mlp", "linear", "pooled-cnn", "deep-cnn"; a module from features to logits, copied with
        its weights; or a function of ``(shape, n_classes)`` that makes one.
    epochs : int
        Number of passes over the tasks.
    batch_size : int or "auto"
        Number of tasks per batch, with all their labels. "auto" is 64, and 256 from 10,000 tasks;
        the learning rates are then twice those given.
    lr, crowd_lr : float
        Learning rates of the network and of the worker parameters.
    weight_decay : float
        Weight decay of the network; worker parameters have none.
    optimizer : {"adam", "adamw", "sgd"}
    schedule : {"constant", "cosine", "one-cycle"}
    clip_gradient : float, optional
        Largest norm of a gradient; larger ones are scaled down.
    balance : {"none", "weights", "sampling"}
        For rare classes: weight labels, or sample tasks, inversely to the label's frequency.
    calibrate : bool
        Calibrate ``probas_`` and ``predict_proba``: an exponent of the classifier's output, and
        less weight for the labels of tasks with many, because they are not independent. Both are
        chosen by the held-out labels of "crowd"; with ``valid``, its classes choose the former.
        With "last" nothing chooses them, and the posteriors stay those of the method.
    selection : {"auto", "last", "crowd", "gold"}
        Epoch to keep: the last one ("last"), the one with the most likely labels on held-out tasks
        ("crowd"), or the best one on ``fit(..., valid=(X, y))`` ("gold"). "auto" is "gold" with
        such a validation set, else "crowd" if that holds out 100 labels or more, else "last".
    valid_fraction : float
        Share of the tasks that "crowd" holds out.
    patience : int, "auto" or None
        Number of epochs without improvement after which training stops; None never stops early.
        "auto" is 10 epochs, but at least 20 000 tasks, for "crowd", and None otherwise.
    refit : bool
        Whether to train again on all tasks, up to the epoch that "crowd" selected.
    checkpoint : path, optional
        File to resume from, written during training; ``refit`` writes a second one.
    device : str
        Name of a torch device; "auto" uses a GPU if available.
    random_state : int
    """

    balance: str = "none"
    calibrate: bool = True

    on_several_processes: ClassVar[bool] = True

    # ------------------------------------------------------------------- overridden by the methods

    def _build(self, network: nn.Module, data: CrowdData) -> CrowdModel:
        """Return the model to train, around a new network."""
        raise TypeError(f"{type(self).__name__} must define _build.")

    def _make_network(self, shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        """Return the network that predicts, from features to logits."""
        return make_backbone(self.module, shape, n_classes)

    def _learned(self, model: CrowdModel, data: CrowdData) -> dict[str, Any]:
        """Return results of the trained model: fields of ``Learned``, and others for ``extra``."""
        table = model.confusion()
        return {} if table is None else {"confusion": as_array(table)}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_choice("balance", self.balance, BALANCES)
        check_flag("calibrate", self.calibrate)

    # ---------------------------------------------------------------------------------------- fit

    def _fit(self, training: Training) -> Learned:
        labels = training.labels
        selection = self._selection(training, labels.n_annotations)
        device = choose_device(self.device)
        self._require_resumable(training.resume)
        weight = _inverse_frequency(labels.class_totals) if self.balance == "weights" else None
        data = CrowdData(training.X, labels, training.gold, device=device, label_weight=weight)
        with self._own_generator(device):
            useful = torch.from_numpy(self._useful_rows(training))
            training = _with_features(training, data)
            run = self._train(training, data, useful, selection)
            learned = self._learned(run.model, run.seen)
        network = run.model.network.eval().to("cpu")
        outcome = self._outcome_of(run, selection, data.features.shape)
        known = {field.name for field in fields(Learned)}
        result = {key: value for key, value in learned.items() if key in known}
        outcome["extra"] |= {key: value for key, value in learned.items() if key not in known}
        outcome["findings"] += result.pop("findings", ())
        return Learned(
            log_probas_of(network, data.features),
            calibration=self._calibration(run, training.valid),
            gain=(run.held_out.gain, run.held_out.error) if run.held_out else None,
            private={"network": network, **result.pop("private", {})},
            **outcome,
            **result,
        )

    def _again(
        self, chosen: Run, data: CrowdData, useful: Tensor, training: Any, valid: Tensor
    ) -> Run:
        scale = chosen.model.evidence_scale(data, valid)
        judged = judge_held_out(chosen.model, chosen.seen, data, valid)
        run = super()._again(chosen, data, useful, training, valid)
        run.model.scale_evidence(scale)
        return replace(run, held_out=judged)

    def _calibration(self, run: Run, valid: Any) -> Calibration | None:
        """Return the calibration by known classes or by held-out labels; None without both."""
        if not self.calibrate:
            return None
        if valid is not None:
            features, codes = valid
            return calibration_by_classes(log_probas_of(run.model.network, features), codes)
        return run.held_out.calibration if run.held_out else None

    def _useful_rows(self, training: Training) -> NDArray[np.int64]:
        useful = (training.labels.labels_per_task > 0) | (training.gold >= 0)
        return np.flatnonzero(useful | self.uses_unlabelled)

    def _held_out(self, data: CrowdData, useful: Tensor) -> tuple[Tensor, Tensor]:
        has_labels = torch.from_numpy(data.labels.labels_per_task > 0)[useful]
        if has_labels.all() or has_labels.sum() < 2:
            return super()._held_out(data, useful)
        # A task without labels cannot choose an epoch.
        rows, valid = super()._held_out(data, useful[has_labels])
        return torch.cat([rows, useful[~has_labels]]).sort().values, valid

    def _new_model(self, data: CrowdData, seen: CrowdData) -> CrowdModel:
        n_classes = data.labels.n_classes
        network = self._make_network(data.features.shape, n_classes, data.labels.n_workers)
        standardize(network, data.features)
        require_outputs(network, data.features, n_classes, "one logit per class")
        return self._build(network, seen)

    def _score(
        self, model: CrowdModel, data: CrowdData, rows: Tensor, valid: Tensor | None, known: Any
    ) -> float:
        if valid is not None:
            return crowd_score(model, data, rows, valid)
        return gold_score(model, known[0], known[1], data.device)

    def _sampler(self, data: CrowdData, rows: Tensor) -> Callable[[], Tensor] | None:
        if self.balance != "sampling":
            return None
        labels = data.labels[rows.numpy()]
        rarity = _inverse_frequency(labels.class_totals)[labels.label]
        mean = np.bincount(labels.task, rarity, labels.n_tasks) / np.maximum(
            labels.labels_per_task, 1
        )
        odds = torch.from_numpy(np.where(mean > 0, mean, 1.0))
        return lambda: rows[torch.multinomial(odds, len(rows), replacement=True)]

    # ------------------------------------------------------------------------------- afterwards

    def _set_network(self, files: dict[str, bytes]) -> None:
        """Rebuild the network with the weights of a file."""
        sizes = tuple(self.input_shape_), len(self.classes_), len(self.workers_)
        own = isinstance(self.module, str)
        self._network = network_from(files, lambda: self._make_network(*sizes), trial=own)

    def _log_probas(self, X: Any) -> Floats:
        features = Features(X)
        require_shape(features, tuple(self.input_shape_), "X has")
        return log_probas_of(self._network, features)


def _with_features(training: Training, data: CrowdData) -> Training:
    """Convert the validation features once, and require the shape of the training features."""
    if training.valid is None:
        return training
    X, codes = training.valid
    features = Features(X)
    require_shape(features, data.features.shape, "The validation set has")
    return replace(training, valid=(features, codes))


def _inverse_frequency(class_totals: Floats) -> Floats:
    """Return (K,) weights inverse to label frequency, with mean 1 over the labels."""
    used = class_totals > 0
    weight = np.zeros(len(class_totals))
    weight[used] = class_totals.sum() / (used.sum() * class_totals[used])
    return weight
