"""CrowdKernel: a kernel classifier and the workers, each judged by the other tasks; no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.features import is_dataset
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.parameter_checks import as_generator, check_integer, check_number
from wisecrowd.core.saved_attributes import NUMBER, Saved, SavedArray
from wisecrowd.core.task_prior import TaskPrior
from wisecrowd.core.votes import vote_table
from wisecrowd.families.confusion import safe_log
from wisecrowd.inference.class_prior import check_fixed_class_prior, fixed_class_prior
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.learning.training.crowd_classifier import CrowdClassifier, Learned, Training
from wisecrowd.learning.training.known_tasks import recall, remember, remembered
from wisecrowd.learning.training.label_model import sum_rows
from wisecrowd.learning.training.targets import expected_counts, with_gold

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # in units of the mean eigenvalue
CLIP = 5.0  # standard deviations
MOST_LEVERAGE = 0.99
SMOOTHING = 0.05  # pseudo-count of every cell of a confusion matrix
POPULATION = 2.0  # pseudo-labels of each row, from the confusion of all workers
USUAL_TEMPERATURE = 5.0  # centre of the prior of the temperature
TEMPERATURES = 0.2, 100.0
ALIGNMENT_STEPS = 15
CHOOSING_ROUNDS = (1, 2, 4)  # rounds that choose the ridge again
DEPENDENCE = 0.1  # correlation of the labels of a task
LEAST_SHARE = 1e-6  # of a class in a given class prior
TINY = 1e-10  # eigenvalues below this share of the largest are zero


@dataclass(eq=False, repr=False, kw_only=True)
class CrowdKernel(CrowdClassifier):
    r"""Kernel ridge regression on a posterior in which no task judges itself; needs no torch.

    .. math::
        q_i(k) \propto \mathrm{softmax}_k(a S^{-i}(x_i) + b)
        \Bigl(\prod_j \theta_j^{-i}[k, y_{ij}]\Bigr)^{1 / (1 + 0.1 (n_i - 1))}

    :math:`S^{-i}` are the scores of a kernel ridge regression on :math:`q` without task
    :math:`i`, in closed form. :math:`\theta_j^{-i}` is the confusion matrix of worker :math:`j`
    without that task. The temperature :math:`a` and the ridge maximise the probability of single
    labels. The exponent allows for labels of a task that depend on each other.

    Use it when features are vectors of up to a few thousand numbers, such as embeddings. Cost:
    O(tasks × landmarks²) once, and O(tasks × landmarks × classes + annotations × classes) per
    round.

    Parameters
    ----------
    balance : float
        From 0 to 1: the mean prediction of a class is proportional to its vote share to the power
        ``1 - balance``. It is an assumption, that classes are less skewed than votes, which the
        labels cannot confirm. Set it to 0 if classes are as skewed as the votes.
    class_prior : "auto", "uniform" or (n_classes,) probabilities
        Class frequencies that the mean prediction should have. "auto" takes them from the votes
        and ``balance``. Noise makes votes flatter than rare classes are: give frequencies then.
    n_landmarks : int
        Tasks at which the kernel is evaluated. With no more tasks than that, all are used and the
        result is deterministic; otherwise they are drawn at random.
    rounds : int
        Rounds of estimating workers, temperature, alignment and posterior.
    random_state : int
        Seed of the landmarks.

    Attributes
    ----------
    temperature_ : float
        :math:`a`.
    ridge_ : float
        Ridge, in units of the mean eigenvalue.
    class_bias_ : (n_classes,)
        :math:`b`.
    confusion_ : (n_workers, n_classes, n_classes)
        Estimated from all tasks.
    history_ : tuple of dict
        Mean log-probability of single labels in every round, without the task that they are of.
    task_key_, task_output_ : (n_tasks,), (n_tasks, n_classes)
        Hash of the labels, and the classifier's output: they identify training tasks.

    Notes
    -----
    The kernel is the mean of two Gaussian kernels, of standardised features clipped at ±5 and of
    rows of length one, each with the median squared distance as its unit. Features that are shifted
    by a constant change the second one.

    References
    ----------
    Wahba (1990). Spline models for observational data, for the leave-one-out scores.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> CrowdKernel(balance=0.0).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    balance: float = 0.5
    class_prior: Any = "auto"
    n_landmarks: int = 1000
    rounds: int = 4

    saves: ClassVar[dict[str, Saved]] = {
        **remembered(),
        "temperature_": NUMBER,
        "ridge_": NUMBER,
        "class_bias_": SavedArray("K"),
        "landmarks_": SavedArray("landmarks inputs"),
        "feature_mean_": SavedArray("inputs"),
        "feature_scale_": SavedArray("inputs", "positive"),
        "row_mean_": SavedArray("inputs"),
        "kernel_scale_": SavedArray("2", "positive"),
        "weights_": SavedArray("landmarks K"),
        "intercept_": SavedArray("K"),
    }

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        features, shape = sizes["features"], np.shape(self.landmarks_)
        inputs = shape[1] if len(shape) == 2 else 0
        fits = features and inputs % features == 0
        return {"inputs": inputs if fits else features, "landmarks": (shape or (0,))[0]}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_number("balance", self.balance, 0.0, 1.0)
        check_fixed_class_prior(self.class_prior)
        check_integer("n_landmarks", self.n_landmarks, 2, 20_000)
        check_integer("rounds", self.rounds, 1, 1000)

    # -------------------------------------------------------------------------------------- fit

    def _fit(self, training: Training) -> Learned:
        if training.resume:
            raise ParameterError(
                "CrowdKernel writes no checkpoints to resume from; fit without resume."
            )
        X, rng = _as_matrix(training.X), as_generator(self.random_state)
        kernel = Kernel.of(X, self.n_landmarks, rng)
        # Other tasks inform neither the classifier nor the workers.
        useful = (training.labels.labels_per_task > 0) | (training.gold >= 0)
        ridge = KernelRidge.of(kernel.features(X[useful]))
        state = _Rounds(ridge, training, useful, self.balance)
        n_classes = training.labels.n_classes
        target = fixed_class_prior(self.class_prior, TaskPrior(np.zeros((1, n_classes))), n_classes)
        if target is not None:
            state.log_target = np.maximum(target, np.log(LEAST_SHARE))
        state = state.run(self.rounds)
        weights, intercept = ridge.solve(state.posterior, state.ridge)
        classifier = {
            "temperature": state.temperature,
            "ridge": state.ridge / ridge.unit,
            "class_bias": state.bias,
            "weights": kernel.root @ weights,
            "intercept": intercept,
            **kernel.published(),
        }
        log_probas = _log_output(X, {f"{name}_": value for name, value in classifier.items()})
        probas = np.exp(log_probas)
        probas[useful] = state.posterior
        return Learned(
            log_probas,
            confusion=confusion_of(state.posterior, training.labels[np.flatnonzero(useful)]),
            probas=probas,
            n_iter=self.rounds,
            history=tuple(state.history),
            extra=classifier | remember(training, log_probas),
        )

    # ---------------------------------------------------------------------------------- predict

    def _log_probas(self, X: Any) -> Floats:
        flat = _as_matrix(X)
        if flat.shape[1] != self.landmarks_.shape[1]:
            raise DataError(
                f"Each row of X has {flat.shape[1]} numbers and CrowdKernel is expecting "
                f"{self.landmarks_.shape[1]}; give features of the shape that the fit had."
            )
        return _log_output(flat, vars(self))

    def _forecast(self, log_probas: Floats, labels: CrowdLabels) -> Floats:
        log_theta = safe_log(self.confusion_)[labels.worker, :, labels.label]
        fresh = np.exp(_log_softmax(log_probas + _evidence(log_theta, labels)))
        return recall(self, fresh, log_probas, labels)


# ------------------------------------------------------------------------------------ the kernel


class Kernel(NamedTuple):
    """Mean of two Gaussian kernels at landmarks, and the map to its features.

    Attributes
    ----------
    landmarks : (m, d)
    mean, scale, row_mean : (d,)
        Centre and standard deviation of the features; centre of the rows of length one.
    gamma : (2,)
        Inverse median squared distances.
    root : (m, r)
        Inverse square root of the kernel matrix of the landmarks.
    """

    landmarks: Floats
    mean: Floats
    scale: Floats
    row_mean: Floats
    gamma: Floats
    root: Floats

    @classmethod
    def of(cls, X: Floats, n_landmarks: int, rng: np.random.Generator) -> Kernel:
        """Return the kernel of features (n, d)."""
        n = len(X)
        chosen = np.arange(n) if n <= n_landmarks else rng.choice(n, n_landmarks, replace=False)
        mean, spread = X.mean(axis=0), X.std(axis=0)
        # A constant feature has no influence.
        scale = np.where(spread > 1e-12 * (1 + np.abs(mean)), spread, 1e150)
        landmarks, row_mean = X[np.sort(chosen)], _unit_rows(X).mean(axis=0)
        gamma = np.ones(2)
        plain = cls(landmarks, mean, scale, row_mean, gamma, np.eye(len(landmarks)))
        for number, view in enumerate(plain._views(landmarks)):
            distance = _squared_distances(view, view)[np.triu_indices(len(view), 1)]
            middle = float(np.median(distance)) if len(distance) else 0.0
            gamma[number] = 1 / middle if middle > 0 else 1.0
        values, vectors = np.linalg.eigh(plain.matrix(landmarks))
        kept = values > TINY * values.max()
        return plain._replace(root=vectors[:, kept] / np.sqrt(values[kept]))

    def _views(self, X: Floats) -> tuple[Floats, Floats]:
        standard = np.clip((X - self.mean) / self.scale, -CLIP, CLIP)
        return standard, _unit_rows(X) - self.row_mean

    def matrix(self, X: Floats) -> Floats:
        """Return the (n, m) kernel between rows and landmarks."""
        total = np.zeros((len(X), len(self.landmarks)))
        views, places = self._views(X), self._views(self.landmarks)
        for gamma, rows, columns in zip(self.gamma.tolist(), views, places, strict=True):
            total += 0.5 * np.exp(-gamma * _squared_distances(rows, columns))
        return total

    def features(self, X: Floats) -> Floats:
        """Return the (n, r) features whose products are the kernel."""
        return self.matrix(X) @ self.root

    def published(self) -> dict[str, Any]:
        """Return the attributes that predictions need."""
        return {
            "landmarks": self.landmarks, "feature_mean": self.mean, "feature_scale": self.scale,
            "row_mean": self.row_mean, "kernel_scale": self.gamma,
        }  # fmt: skip


def _log_output(X: Floats, learned: Mapping[str, Any]) -> Floats:
    """Return the (n, K) log-probabilities of a fitted classifier."""
    kernel = Kernel(
        learned["landmarks_"], learned["feature_mean_"], learned["feature_scale_"],
        learned["row_mean_"], learned["kernel_scale_"], np.empty((0, 0)),
    )  # fmt: skip
    scores = kernel.matrix(X) @ learned["weights_"] + learned["intercept_"]
    return _log_softmax(learned["temperature_"] * scores + learned["class_bias_"])


class KernelRidge(NamedTuple):
    """Ridge regression on centred features, for any ridge from one decomposition.

    Attributes
    ----------
    centre : (r,)
        Mean of the features.
    left, values, right : (n, s), (s,), (r, s)
        Singular vectors of the centred features, and squared singular values.
    """

    centre: Floats
    left: Floats
    values: Floats
    right: Floats

    @classmethod
    def of(cls, features: Floats) -> KernelRidge:
        """Decompose features (n, r)."""
        centre = features.mean(axis=0)
        centred = features - centre
        values, right = np.linalg.eigh(centred.T @ centred)
        kept = values > TINY * max(values.max(initial=0.0), 1e-300)
        values, right = values[kept], right[:, kept]
        return cls(centre, centred @ right / np.sqrt(values), values, right)

    @property
    def unit(self) -> float:
        """Mean eigenvalue per task."""
        return float(self.values.sum() / max(len(self.left), 1)) or 1.0

    def solve(self, targets: Floats, ridge: float) -> tuple[Floats, Floats]:
        """Return weights (r, K) and intercepts (K,)."""
        mean = targets.mean(axis=0)
        shrunk = np.sqrt(self.values) / (self.values + ridge)
        weights = self.right @ (shrunk[:, None] * (self.left.T @ (targets - mean)))
        return weights, mean - self.centre @ weights

    def leave_one_out(self, targets: Floats, ridge: float) -> Floats:
        """Return (n, K) scores of each row by the regression without it."""
        mean, shrunk = targets.mean(axis=0), self.values / (self.values + ridge)
        fitted = self.left @ (shrunk[:, None] * (self.left.T @ (targets - mean))) + mean
        leverage = np.minimum(self.left**2 @ shrunk + 1 / len(targets), MOST_LEVERAGE)[:, None]
        return np.asarray((fitted - leverage * targets) / (1 - leverage))


# ------------------------------------------------------------------------------------ the rounds


class _Rounds:
    """The alternation: workers, temperature, alignment and posterior of the useful tasks."""

    def __init__(
        self, regression: KernelRidge, training: Training, useful: NDArray[np.bool_], balance: float
    ) -> None:
        rows = np.flatnonzero(useful)
        self.regression, self.labels = regression, training.labels[rows]
        self.known = Training(training.X, self.labels, training.gold[rows])
        n_classes = self.labels.n_classes
        votes = vote_table(self.labels, weighted=True)
        count = votes.sum(axis=1, keepdims=True)
        self.posterior = with_gold((votes + 1 / n_classes) / (count + 1), self.known)
        share = votes.sum(axis=0) + 1e-3
        target = (share / share.sum()) ** (1 - balance)
        self.log_target = np.log(target / target.sum())
        self.ridge, self.temperature = RIDGES[2] * regression.unit, USUAL_TEMPERATURE
        self.bias = np.zeros(n_classes)
        self.history: list[dict[str, float]] = []

    def run(self, n_rounds: int) -> _Rounds:
        for number in range(1, n_rounds + 1):
            theta = label_probas_without_own_task(self.posterior, self.labels)
            ridges = [self.ridge]
            if number in CHOOSING_ROUNDS:
                ridges = [ridge * self.regression.unit for ridge in RIDGES]
            best = -np.inf
            for ridge in ridges:
                scores = self.regression.leave_one_out(self.posterior, ridge)
                value, temperature = best_temperature(scores, theta, self.labels)
                if value > best:
                    best, self.ridge, self.temperature, chosen = value, ridge, temperature, scores
            log_f = self.temperature * chosen
            self.bias = aligned(log_f, self.log_target)
            log_q = _log_softmax(log_f + self.bias) + _evidence(np.log(theta), self.labels)
            self.posterior = with_gold(np.exp(_log_softmax(log_q)), self.known)
            mean = best / max(_total_weight(self.labels), 1e-300)
            self.history.append({"round": float(number), "label_log_probability": mean})
            report(Progress(number, n_rounds, mean))
        return self


def label_probas_without_own_task(posterior: Floats, labels: CrowdLabels) -> Floats:
    """Return (E, K) probabilities of each label by class, from the worker's other tasks."""
    counts = expected_counts(posterior, labels)
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    pair = labels.task.astype(np.int64) * labels.n_workers + labels.worker
    same_pair = _group_sums(pair, weight)
    same_label = _group_sums(pair * labels.n_classes + labels.label, weight)
    own = posterior[labels.task]
    cell = counts[labels.worker, :, labels.label] - same_label[:, None] * own
    row = counts.sum(axis=2)[labels.worker] - same_pair[:, None] * own
    cell, row = np.maximum(cell, 0.0), np.maximum(row, 0.0)
    usual = POPULATION * population_confusion(counts)[:, labels.label].T
    smoothing = SMOOTHING * labels.n_classes
    return np.asarray((cell + SMOOTHING + usual) / (row + smoothing + POPULATION))


def confusion_of(posterior: Floats, labels: CrowdLabels) -> Floats:
    """Return (J, K, K) confusion matrices from all tasks, shrunk to that of all workers."""
    counts = expected_counts(posterior, labels)
    smoothed = counts + SMOOTHING + POPULATION * population_confusion(counts)
    return np.asarray(smoothed / smoothed.sum(axis=2, keepdims=True))


def population_confusion(counts: Floats) -> Floats:
    """Return the (K, K) confusion matrix of all workers together."""
    total = counts.sum(axis=0) + SMOOTHING
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def best_temperature(scores: Floats, theta: Floats, labels: CrowdLabels) -> tuple[float, float]:
    """Return the log-probability of single labels at the best temperature, and the temperature.

    The logarithm of the temperature has a normal prior around ``USUAL_TEMPERATURE``.
    """
    from scipy.optimize import minimize_scalar

    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight

    def loss(log_temperature: float) -> float:
        probas = np.exp(_log_softmax(np.exp(log_temperature) * scores))[labels.task]
        found = weight @ np.log((probas * theta).sum(axis=1))
        return float(0.5 * (log_temperature - np.log(USUAL_TEMPERATURE)) ** 2 - found)

    found = minimize_scalar(loss, bounds=tuple(np.log(TEMPERATURES)), method="bounded")
    return -float(found.fun), float(np.exp(found.x))


def aligned(log_f: Floats, log_target: Floats) -> Floats:
    """Return class biases (K,) that make the mean prediction proportional to a target."""
    bias: Floats = np.zeros(len(log_target))
    for _ in range(ALIGNMENT_STEPS):
        mean = np.exp(_log_softmax(log_f + bias)).mean(axis=0)
        bias += log_target - np.log(np.maximum(mean, 1e-300))
    return np.asarray(bias - bias.mean())


def _evidence(log_theta: Floats, labels: CrowdLabels) -> Floats:
    """Return (n, K) log-evidence of the labels of each task, damped for their dependence."""
    total = sum_rows(labels.task, log_theta, labels.n_tasks, labels.weight)
    count = np.bincount(labels.task, labels.weight, labels.n_tasks)
    return np.asarray(total / (1 + DEPENDENCE * np.maximum(count - 1, 0))[:, None])


def _group_sums(key: NDArray[np.int64], weight: Floats) -> Floats:
    """Return the total weight of the rows that have the same key, for each row."""
    _, place = np.unique(key, return_inverse=True)
    return np.asarray(np.bincount(place, weight)[place])


def _total_weight(labels: CrowdLabels) -> float:
    return float(labels.n_annotations if labels.weight is None else labels.weight.sum())


def _unit_rows(X: Floats) -> Floats:
    length = np.sqrt((X * X).sum(axis=1, keepdims=True))
    return np.asarray(X / np.where(length > 0, length, 1.0))


def _squared_distances(rows: Floats, columns: Floats) -> Floats:
    distance: Floats = -2 * rows @ columns.T
    distance += (rows * rows).sum(axis=1)[:, None]
    distance += (columns * columns).sum(axis=1)
    np.maximum(distance, 0.0, out=distance)
    return distance


def _log_softmax(scores: Floats) -> Floats:
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def _as_matrix(X: Any) -> Floats:
    if is_dataset(X):
        raise DataError(
            "CrowdKernel needs all features at once and X is a dataset; give an array of its items."
        )
    return np.asarray(X, dtype=np.float64).reshape(len(X), -1)
