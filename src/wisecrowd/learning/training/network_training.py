"""NetworkTraining: parameters and steps of every method that trains a network."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from wisecrowd.core.estimator import Estimator
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import (
    MOST_ITERATIONS,
    Choice,
    Count,
    Flag,
    Limits,
    Number,
    as_generator,
    check_number,
    is_auto,
)
from wisecrowd.core.saved_attributes import COUNT, SIZES, Saved, SavedValue
from wisecrowd.core.types import Floats
from wisecrowd.inference.monitor import followed_by_refit, stage
from wisecrowd.learning.training.checkpoint import (
    FILE,
    Fingerprint,
    load_checkpoint,
    network_from,
    refuse_to_overwrite,
    require_own,
    save_checkpoint,
)
from wisecrowd.learning.training.crowd_data import Features
from wisecrowd.learning.training.output_calibration import HeldOut
from wisecrowd.learning.training.ranks import (
    current_ranks,
    require_able,
    require_equal_data,
    require_rows_apart,
)
from wisecrowd.learning.training.trainer import (
    OPTIMIZERS,
    SCHEDULES,
    NetworkModel,
    TrainerOptions,
    TrainingState,
    own_random_numbers,
    train,
)
from wisecrowd.nn.backbones import AffineOutput, Standardize, make_backbone

SELECTIONS = ("auto", "last", "crowd", "gold")
ENOUGH_LABELS = 100  # held-out labels from which "auto" chooses the epoch by them
PATIENCE = 10, 20_000  # epochs and tasks without improvement after which "auto" stops
FINISHED = ("", "patience")  # reasons to stop that need no warning
MANY_ROWS, SMALL_BATCH, LARGE_BATCH = 10_000, 64, 256  # of automatic batches
RARELY = 1.0  # seconds between checkpoints: writing to disk may take longer than an epoch


@dataclass(frozen=True, eq=False)
class Run:
    """A trained model, the data it has seen, and how it went."""

    model: Any
    seen: Any
    state: TrainingState
    history: list[dict[str, float]]
    held_out: HeldOut | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkTraining(Estimator):
    """The part of a learner that trains a network; ``NeuralClassifier`` lists the parameters.

    A base class for a kind of labels defines ``_new_model`` and ``_score``, and calls ``_train``
    inside ``_own_generator``. Data are objects with ``features``, ``device``, ``batches(rows,
    size)``, ``only(rows)`` and ``arrays()``.
    """

    random_state: int | None = 0
    module: Any = "mlp"
    epochs: int = 60
    batch_size: Any = "auto"
    lr: float = 1e-3
    crowd_lr: float = 1e-2
    weight_decay: float = 1e-4
    optimizer: str = "adam"
    schedule: str = "constant"
    clip_gradient: float | None = None
    selection: str = "auto"
    valid_fraction: float = 0.1
    patience: Any = "auto"
    refit: bool = True
    checkpoint: Any = None
    device: str = "auto"

    streams: ClassVar[bool] = True
    on_several_processes: ClassVar[bool] = False  # whether every step goes through the ranks
    saves: ClassVar[dict[str, Saved]] = {
        "best_epoch_": COUNT,
        "selection_": SavedValue(lambda value: value in SELECTIONS, "a way to choose an epoch"),
        "input_shape_": SIZES,
    }

    limits: ClassVar[Limits] = {
        "epochs": Count(1, MOST_ITERATIONS),
        "batch_size": Count(1, auto=True),
        "weight_decay": Number(0.0),
        "optimizer": Choice(OPTIMIZERS),
        "schedule": Choice(SCHEDULES),
        "selection": Choice(SELECTIONS),
        "valid_fraction": Number(1e-06, 0.9),
        "refit": Flag(),
        "clip_gradient": Number(1e-12, none=True),
        "patience": Count(1, auto=True, none=True),
    }

    # -------------------------------------------------------- overridden by a base class per kind

    def _new_model(self, data: Any, seen: Any) -> NetworkModel:
        """Return the model to train, around a new network; ``seen`` is a part of the data."""
        raise TypeError(f"{type(self).__name__} must define _new_model.")

    def _score(
        self, model: Any, data: Any, rows: Tensor, valid: Tensor | None, known: Any
    ) -> float:
        """Return the score of an epoch, on held-out rows or on a known validation set."""
        raise TypeError(f"{type(self).__name__} must define _score.")

    def _sampler(self, data: Any, rows: Tensor) -> Callable[[], Tensor] | None:
        """Return a function that draws the rows of an epoch; None means all, shuffled."""
        return None

    def _held_out(self, data: Any, useful: Tensor) -> tuple[Tensor, Tensor]:
        """Return rows to train on, and held-out rows that choose the epoch."""
        return held_out(useful, self.valid_fraction)

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        for name in ("lr", "crowd_lr"):
            check_number(name, getattr(self, name), 1e-12)

    # ------------------------------------------------------------------------------------ training

    @contextmanager
    def _own_generator(self, device: torch.device) -> Iterator[None]:
        """Seed torch's generator by ``random_state``, and restore it afterwards."""
        cuda = [torch.cuda.current_device()] if device.type == "cuda" else []
        with own_random_numbers(cuda):
            torch.manual_seed(int(as_generator(self.random_state).integers(2**31)))
            yield

    def _require_resumable(self, resume: bool | None) -> None:
        if resume and self.checkpoint is None:
            raise ParameterError("There is nothing to resume from; set checkpoint to its file.")
        if resume and not isinstance(self.random_state, int | np.integer):
            raise ParameterError(
                f"random_state is {self.random_state!r}; give the integer that the interrupted fit "
                "had, so that it goes on with the same draws."
            )

    def _selection(self, training: Any, n_labels: int) -> str:
        """Return the way to choose an epoch, given the number of labels of the crowd."""
        if self.selection == "gold" and training.valid is None:
            how = for_reader("fit(..., valid=(X, y))", "--valid FILE --valid-truth FILE")
            raise ParameterError(f"selection is 'gold'; give {how} to choose by.")
        if self.selection != "auto":
            return self.selection
        if training.valid is not None:
            return "gold"
        return "crowd" if self.valid_fraction * n_labels >= ENOUGH_LABELS else "last"

    def _train(self, training: Any, data: Any, useful: Tensor, selection: str) -> Run:
        """Train on the useful rows once, or a second time to include the held-out ones."""
        if current_ranks() is not None:
            require_able(type(self))
            require_equal_data(data)
        if selection != "crowd":
            return self._run(data, useful, training, self.epochs, selection == "gold")
        rows, valid = self._held_out(data, useful)
        with followed_by_refit() if self.refit else nullcontext():
            chosen = self._run(data, rows, training, self.epochs, True, valid)
        return self._again(chosen, data, useful, training, valid)

    def _again(self, chosen: Run, data: Any, useful: Tensor, training: Any, valid: Tensor) -> Run:
        """Train on all rows up to the selected epoch, if ``refit`` asks for it."""
        done = not chosen.state.interrupted and chosen.state.stopped in FINISHED
        if not self.refit or not done or not chosen.state.best_epoch:
            return chosen
        with stage("refit"):
            again = self._run(
                data, useful, training, chosen.state.best_epoch, False, None, ".refit"
            )
        if again.state.interrupted:  # the selected model is complete, this one is not
            return replace(chosen, state=replace(chosen.state, interrupted=True))
        return replace(again, history=chosen.history)

    def _run(
        self, data: Any, rows: Tensor, training: Any, epochs: int, judged: bool,
        valid: Tensor | None = None, suffix: str = "",
    ) -> Run:  # fmt: skip
        """Train a new model on some rows, or resume from a checkpoint."""
        seen, options = data.only(rows), self._options(epochs, None if valid is None else len(rows))
        model = self._new_model(data, seen).to(data.device)
        require_rows_apart(model.network)
        if is_auto(self.batch_size):  # by all rows, so that a refit has batches of the same size
            n_rows = len(rows) if valid is None else len(rows) + len(valid)
            options = with_automatic_batch(options, n_rows)
        path, resumed = f"{self.checkpoint}{suffix}", None
        if self.checkpoint is not None:
            key = replace(self._fingerprint(data), part=suffix)
            if training.resume:
                resumed = load_checkpoint(path, key, model, options)
            else:
                require_own(path)
                if training.resume is None and not suffix:
                    refuse_to_overwrite(path, key)

        def score() -> float:
            return self._score(model, data, rows, valid, training.valid)

        saved = -math.inf

        def after_epoch(state: TrainingState, optimizer: Any, best: dict[str, Tensor]) -> None:
            nonlocal saved
            over = state.epoch == epochs or state.stopped
            if self.checkpoint is not None and (over or time.monotonic() > saved + RARELY):
                save_checkpoint(path, key, model, optimizer, state, best)
                saved = time.monotonic()

        state = train(
            model, seen, rows, options,
            score=score if judged else None,
            state=resumed.state if resumed else None,
            optimizer=resumed.optimizer if resumed else None,
            best=resumed.best if resumed else None,
            after_epoch=after_epoch,
            sample=self._sampler(data, rows),
        )  # fmt: skip
        return Run(model, seen, state, state.history)

    def _options(self, epochs: int, judged_rows: int | None) -> TrainerOptions:
        """Return the options of a run; held-out labels judge it if ``judged_rows`` is given."""
        patience = self.patience
        if is_auto(patience):
            patience = None if judged_rows is None else usual_patience(judged_rows)
        return TrainerOptions(
            epochs, self.batch_size, self.lr, self.crowd_lr, self.weight_decay, self.optimizer,
            self.schedule, self.clip_gradient, patience, self.epochs,
        )  # fmt: skip

    def _fingerprint(self, data: Any) -> Fingerprint:
        """Return method, parameters and a hash of the data, which identify a checkpoint."""
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k != "checkpoint"}
        if callable(self.module) and not isinstance(self.module, nn.Module):
            parameters["module"] = getattr(self.module, "__qualname__", type(self.module))
        digest = hashlib.sha256(repr(data.features.shape).encode())
        for part in data.arrays():
            digest.update(np.ascontiguousarray(part).data)
        if not data.features.is_dataset:
            digest.update(data.features.sample().numpy().reshape(-1).data)
        texts = {name: repr(value) for name, value in parameters.items()}
        return Fingerprint(type(self).__name__, texts, digest.hexdigest()[:16])

    # ---------------------------------------------------------------------------------- afterwards

    def _outcome_of(self, run: Run, selection: str, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return what every trained network publishes, by the names of ``Learned``."""
        state = run.state
        return {
            "n_iter": state.epoch,
            "converged": not state.interrupted and state.stopped in FINISHED,
            "history": tuple(run.history),
            "findings": findings_of(state),
            "extra": {
                "best_epoch": state.best_epoch, "selection": selection, "input_shape": shape,
            },
        }  # fmt: skip

    def _network_of_fit(self) -> nn.Module:
        """Return a new network of the sizes of the fit, for the weights of a file."""
        raise TypeError(f"{type(self).__name__} must define _network_of_fit.")

    def _new_features(self, X: Any) -> Features:
        """Return the features of new rows, of the shape of the fit."""
        features = Features(X)
        require_shape(features, tuple(self.input_shape_), "X has")
        return features

    def _set_network(self, files: dict[str, bytes]) -> None:
        """Rebuild the network with the weights of a file."""
        own = isinstance(self.module, str)
        self._network = network_from(files, self._network_of_fit, trial=own)

    def _network_files(self) -> dict[str, bytes]:
        """Return the weights of the network as the content of a file."""
        network: nn.Module = vars(self)["_network"]
        weights = {k: v.contiguous() for k, v in network.state_dict().items()}
        return {FILE: to_bytes(weights)}


@dataclass(eq=False, repr=False, kw_only=True)
class ScalarTraining(NetworkTraining):
    """The part of a learner whose network has one output, a number or a reward."""

    def _make_network(self, shape: tuple[int, ...]) -> AffineOutput:
        return AffineOutput(make_backbone(self.module, shape, 1))

    def _started_network(self, features: Features, output: str) -> AffineOutput:
        """Return a new network that knows the scale of the features."""
        network = self._make_network(features.shape)
        standardize(network, features)
        require_outputs(network.module, features, 1, f"one output, {output}")
        return network

    def _network_of_fit(self) -> AffineOutput:
        return self._make_network(tuple(self.input_shape_))


def with_features(training: Any, shape: tuple[int, ...]) -> Any:
    """Convert the validation features once, and require the shape of the training features."""
    if training.valid is None:
        return training
    X, truth = training.valid
    features = Features(X)
    require_shape(features, shape, "The validation set has")
    return replace(training, valid=(features, truth))


def held_out(rows: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Return rows to train on and held-out rows, drawn at random and sorted."""
    order = rows[torch.randperm(len(rows))]
    n_valid = min(max(1, round(share * len(order))), len(order) - 1)
    return order[n_valid:].sort().values, order[:n_valid].sort().values


def with_automatic_batch(options: TrainerOptions, n_rows: int) -> TrainerOptions:
    """Return options with batches of 64 rows, or of 256 at doubled rates from 10,000 rows.

    A batch of four times the size has half the noise; with the same rates, 256 cost a point of
    accuracy on 20,000 rows of covtype with simulated workers.
    """
    if n_rows < MANY_ROWS:
        return replace(options, batch_size=SMALL_BATCH)
    factor = math.sqrt(LARGE_BATCH / SMALL_BATCH)
    return replace(
        options, batch_size=LARGE_BATCH, lr=factor * options.lr, crowd_lr=factor * options.crowd_lr
    )


def usual_patience(n_rows: int) -> int:
    """Return the patience "auto" in epochs: small data sets have noisy scores and are cheap.

    Examples
    --------
    >>> usual_patience(1000), usual_patience(50_000)
    (20, 10)
    """
    return max(PATIENCE[0], -(-PATIENCE[1] // n_rows))


def as_array(tensor: Tensor) -> Floats:
    """Return a float64 array with a copy of the values of a tensor."""
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float64)


def choose_device(device: str) -> torch.device:
    """Return the device of a name; "auto" is a GPU if available."""
    if is_auto(device):
        alone = current_ranks() is None  # several processes exchange what is in main memory
        return torch.device("cuda" if alone and torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ParameterError(f"device is {device!r}, which torch cannot use: {reason}.") from None
    return chosen


def standardize(network: nn.Module, features: Features) -> None:
    """Fit the ``Standardize`` layers of a network to the features."""
    for layer in network.modules():
        if isinstance(layer, Standardize):
            layer.fit(part.flatten(1) for part in features.parts())


def require_shape(features: Features, expected: tuple[int, ...], who: str) -> None:
    """Require features of the shape of the fit."""
    if features.shape != expected:
        raise DataError(
            f"{who} features of shape {features.shape} per task, and those of the fit are "
            f"{expected}; give features of the same shape."
        )


def require_outputs(network: nn.Module, features: Features, n_outputs: int, what: str) -> None:
    """Require that a module takes these features and returns so many outputs per row."""
    rows = torch.arange(min(len(features), 2))
    x = features[rows]
    network.eval()
    try:
        with torch.no_grad():
            shape = tuple(network(x).shape)
    except (RuntimeError, ValueError, IndexError) as error:
        reason = str(error).splitlines()[0]
        raise ParameterError(
            f"The module cannot take features of shape {features.shape} ({reason}); give one that "
            "fits, or a function of (shape, n_classes) that makes it."
        ) from error
    if shape != (len(rows), n_outputs):
        raise ParameterError(
            f"The module's output for {len(rows)} tasks has shape {shape}; it must have {what}, "
            f"{(len(rows), n_outputs)}."
        )


def findings_of(state: TrainingState) -> tuple[Finding, ...]:
    """Return findings about training that was interrupted or diverged."""
    if state.interrupted:
        text = (
            f"Training was interrupted after epoch {state.epoch}; the best model so far, that of "
            f"epoch {state.best_epoch}, was kept."
        )
        return (Finding("interrupted-training", "medium", float(state.epoch), (), text, ""),)
    if state.stopped in FINISHED:
        return ()
    return (Finding("diverged-training", "high", float(state.epoch), (), state.stopped, ""),)
