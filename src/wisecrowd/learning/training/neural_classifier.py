"""NeuralClassifier: training of a network on crowd labels, with a loss per method.

:class:`PosteriorTrainer` trains a network on the posterior of a method that has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import Choice, Flag, Limits
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import safe_log
from wisecrowd.learning.training.crowd_classifier import CrowdClassifier, Learned, Training
from wisecrowd.learning.training.crowd_data import CrowdData, Features, log_probas_of
from wisecrowd.learning.training.crowd_model import CrowdModel, TargetModel
from wisecrowd.learning.training.label_model import fit_confusion, label_log_probas
from wisecrowd.learning.training.network_training import (
    NetworkTraining,
    Run,
    choose_device,
    require_outputs,
    standardize,
    with_features,
)
from wisecrowd.learning.training.network_training import as_array as as_array
from wisecrowd.learning.training.output_calibration import (
    Calibration,
    HeldOut,
    calibration_by_classes,
    judge_by_labels,
)
from wisecrowd.nn.backbones import make_backbone

BALANCES = ("none", "weights", "sampling")
MOST_LABELS = 20_000  # labels that estimate confusion matrices after every epoch


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

    limits: ClassVar[Limits] = {"balance": Choice(BALANCES), "calibrate": Flag()}

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

    # ---------------------------------------------------------------------------------------- fit

    def _fit(self, training: Training) -> Learned:
        labels = training.labels
        selection = self._selection(training, labels.n_annotations)
        device = choose_device(self.device)
        self._require_resumable(training.resume)
        weight = _inverse_frequency(labels.class_totals) if self.balance == "weights" else None
        data = CrowdData(training.X, labels, training.gold, device=device, label_weight=weight)
        with self._own_generator(device):
            some = (labels.labels_per_task > 0) | (training.gold >= 0) | self.uses_unlabelled
            useful = torch.from_numpy(np.flatnonzero(some))
            training = with_features(training, data.features.shape)
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

    def _network_of_fit(self) -> nn.Module:
        return self._make_network(tuple(self.input_shape_), len(self.classes_), len(self.workers_))

    def _log_probas(self, X: Any) -> Floats:
        return log_probas_of(self._network, self._new_features(X))


def _inverse_frequency(class_totals: Floats) -> Floats:
    """Return (K,) weights inverse to label frequency, with mean 1 over the labels."""
    used = class_totals > 0
    weight = np.zeros(len(class_totals))
    weight[used] = class_totals.sum() / (used.sum() * class_totals[used])
    return weight


@torch.inference_mode()
def crowd_score(model: CrowdModel, data: CrowdData, train: Tensor, valid: Tensor) -> float:
    """Return the mean log-likelihood of the labels of held-out tasks; needs no gold.

    A model without a likelihood defines ``held_out_score`` instead.
    """
    model.eval()
    own = model.held_out_score(data, valid)
    if own is not None:
        return own
    total = weight = 0.0
    for batch in data.batches(valid, 4096):
        values = model.label_log_probas(batch)
        if values is None:
            return _fitted_score(model, data, train, valid)
        each = data.counts(batch)  # balancing affects training, not the likelihood
        total += float((each * values).sum())
        weight += float(each.sum())
    return total / max(weight, 1e-12)


def judge_held_out(
    model: CrowdModel, seen: CrowdData, data: CrowdData, valid: Tensor
) -> HeldOut | None:
    """Return what the labels of held-out rows say about a trained model.

    Parameters
    ----------
    model : CrowdModel
        Trained on ``seen``, the data without the labels of the rows ``valid``.
    """
    log_probas = log_probas_of(model.network, data.features, device=data.device)
    table = model.confusion()
    if table is None:
        used = np.flatnonzero(seen.labels.labels_per_task > 0)
        confusion = _confusion_of(log_probas, seen.labels, used)
    else:
        confusion = table.detach().cpu().numpy().astype(np.float64)
    rows = valid.numpy()
    return judge_by_labels(log_probas[rows], data.labels[rows], confusion)


def _fitted_score(model: CrowdModel, data: CrowdData, train: Tensor, valid: Tensor) -> float:
    """Return the score of a model without confusion matrices: estimate them from its output."""
    log_probas = log_probas_of(model.network, data.features, device=data.device)
    unseen = data.labels[valid.numpy()]
    confusion = _confusion_of(log_probas, data.labels, train.numpy())
    values = label_log_probas(log_probas[valid.numpy()], unseen, safe_log(confusion))
    return float(np.average(values, weights=unseen.weight))


def _confusion_of(log_probas: Floats, labels: CrowdLabels, rows: NDArray[np.int64]) -> Floats:
    """Return (J, K, K) confusion matrices by the classifier's output on some rows, or on a part."""
    step = -(-int(labels.labels_per_task[rows].sum()) // MOST_LABELS)
    some = rows[:: max(step, 1)]
    return fit_confusion(np.exp(log_probas[some]), labels[some])


def gold_score(model: CrowdModel, features: Features, codes: NDArray[Any], device: Any) -> float:
    """Return the mean log-probability of the known classes of a validation set."""
    log_probas = log_probas_of(model.network, features, device=device)
    return float(log_probas[np.arange(len(codes)), codes].mean())


@dataclass(eq=False, repr=False, kw_only=True)
class PosteriorTrainer(NeuralClassifier):
    """A network trained by cross entropy to given class probabilities, of all tasks.

    Attributes
    ----------
    targets : (N, K)
        The class probabilities.
    """

    targets: Any = None

    uses_unlabelled: ClassVar[bool] = True

    def _build(self, network: nn.Module, data: CrowdData) -> TargetModel:
        return TargetModel(network, torch.from_numpy(self.targets))


def new_trainer(
    module: Any, options: dict[str, Any] | None, rng: np.random.Generator
) -> PosteriorTrainer:
    """Return a trainer, or an error that names the wrong option.

    Parameters
    ----------
    module : str, torch module, or callable
    options : dict, optional
        Parameters of ``NeuralClassifier``.
    rng : generator that draws the seed
    """
    given, known = dict(options or {}), {one.name for one in fields(NeuralClassifier)}
    fixed = known & {"module", "random_state", "checkpoint"}
    unknown = sorted(set(given) - (known - fixed))
    if unknown:
        raise ParameterError(
            f"refine_options has {unknown[0]!r}; it takes {', '.join(sorted(known - fixed))}."
        )
    trainer = PosteriorTrainer(module=module, random_state=int(rng.integers(2**31)), **given)
    trainer._validate_parameters()
    return trainer


def refined(result: Learned, trainer: PosteriorTrainer, training: Training, useful: Any) -> Learned:
    """Return a result whose classifier is a network trained on its posterior.

    Parameters
    ----------
    result : Learned
        With a posterior.
    trainer : PosteriorTrainer
    training : Training
    useful : (N,)
        Tasks whose posterior stays. That of the others is the output of the classifier.
    """
    posterior = np.exp(result.log_probas) if result.probas is None else result.probas
    trainer.targets = posterior.copy()
    learned = trainer._fit(training)
    trainer.targets = None
    shape = learned.extra["input_shape"]
    vars(trainer).update(_network=learned.private["network"], input_shape_=shape)
    return replace(
        result,
        log_probas=learned.log_probas,
        probas=np.where(useful[:, None], posterior, np.exp(learned.log_probas)),
        converged=learned.converged,
        findings=(*result.findings, *learned.findings),
        extra=result.extra | {"input_shape": shape},
        private={"refined": trainer},
    )


def restored(method: CrowdClassifier, files: dict[str, bytes]) -> PosteriorTrainer:
    """Return the trained network of a loaded method, with the weights of its file."""
    trainer = PosteriorTrainer(module=vars(method)["refine"])
    names = ("input_shape_", "classes_", "workers_")
    vars(trainer).update({name: vars(method)[name] for name in names})
    trainer._set_network(files)
    return trainer
