"""CrowdKernel: a kernel classifier and the workers, each judged by the other tasks; no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.parameter_checks import Count, Flag, Limits, Number, as_generator
from wisecrowd.core.saved_attributes import NUMBER, SIZES, Saved, SavedArray
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.class_prior import check_fixed_class_prior, fixed_class_prior
from wisecrowd.kinds.classes.families.confusion import safe_log
from wisecrowd.kinds.classes.prior import TaskPrior
from wisecrowd.learning import network_libraries
from wisecrowd.learning.base import FlatLearner
from wisecrowd.learning.training.crowd_classifier import CrowdClassifier, Learned, Training
from wisecrowd.learning.training.kernel_rounds import (
    Kernel,
    Mismatches,
    Rounds,
    confusion_of,
    label_evidence,
    odd_rows,
)
from wisecrowd.learning.training.label_model import log_softmax
from wisecrowd.learning.training.rows_of_features import recall, remember, remembered

TRIMS = 2  # how often mismatched tasks are taken out of the classifier
MANY_MOVED = 0.1  # share of answers that `balance` decides at which a finding says so
LEAST_SHARE = 1e-6  # of a class in a given class prior
FEWEST_MOVED = 20  # number of these answers


@dataclass(eq=False, repr=False, kw_only=True)
class CrowdKernel(FlatLearner, CrowdClassifier):
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
    round. Tasks without labels are used too.

    Parameters
    ----------
    balance : float
        From 0 to 1: the mean prediction of a class is proportional to its vote share to the power
        ``1 - balance``. It is an assumption, that classes are less skewed than votes, which the
        labels cannot confirm. Set it to 0 if classes are as skewed as the votes. The finding
        "assumed-balance" reports that it decides a tenth of the answers or more.
    class_prior : "auto", "uniform" or (n_classes,) probabilities
        Class frequencies that the mean prediction should have. "auto" takes them from the votes
        and ``balance``. Noise makes votes flatter than rare classes are: give frequencies then.
    n_landmarks : int
        Tasks at which the kernel is evaluated. With no more tasks than that, all are used and the
        result is deterministic; otherwise they are drawn at random.
    rounds : int
        Rounds of estimating workers, temperature, alignment and posterior.
    smoothness : float
        Weight, times unlabelled tasks per labelled task, of a penalty on scores that differ
        between similar tasks. It has no effect if all tasks have labels; 0 turns it off.
    robust : bool
        Keep tasks whose features are odd or contradict their labels out of the classifier, and let
        their answers rest on the workers alone.
    refine : str, torch module, or callable, optional
        Network to train on ``probas_`` afterwards, which then predicts: see ``module`` of
        ``NeuralClassifier``. It needs torch.
    refine_options : dict, optional
        Parameters of ``NeuralClassifier`` for that training, such as ``{"epochs": 30}``.
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
    mismatch_ : (n_tasks,)
        Probability that the features of a task say nothing about its class; 1 for odd rows.
    task_key_, task_output_ : (n_tasks,), (n_tasks, n_classes)
        Hash of the labels, and the classifier's output: they identify training tasks.

    Notes
    -----
    The kernel is the mean of two Gaussian kernels, of standardised features clipped at ±5 and of
    rows of length one, each with the median squared distance as its unit. Features that are shifted
    by a constant change the second one.

    Landmarks, scales and alignment are from all tasks, with labels or without. The penalty of
    ``smoothness`` is the Laplacian of the graph that links tasks through their nearest landmarks.
    It helps where tasks of a class lie close together, and costs accuracy where they do not.

    Rows are odd if their numbers are all equal or far beyond those of the others. Features
    contradict labels where the classifier without the task and two or more workers disagree: a
    mixture model estimates the share of such tasks. Findings name them with and without
    ``robust``.

    On embeddings, a network trained on the posterior is worse than the kernel: test accuracy
    on LabelMe .887 against .905. ``refine`` is for networks that use more than a flat vector,
    such as convolutions over images. The kernel itself flattens the features.

    References
    ----------
    Wahba (1990). Spline models for observational data, for the leave-one-out scores.
    Liu, He and Chang (2010). Large graph construction for scalable semi-supervised learning.
    ICML; Sindhwani, Niyogi and Belkin (2005). Beyond the point cloud. ICML, for ``smoothness``.

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
    smoothness: float = 0.3
    robust: bool = False
    refine: Any = None
    refine_options: dict[str, Any] | None = None

    uses_unlabelled: ClassVar[bool] = True
    module_parameter: ClassVar[str] = "refine"
    inputs_of: ClassVar[str] = "landmarks_"
    saves: ClassVar[dict[str, Saved]] = {
        **remembered(),
        "input_shape_": replace(SIZES, optional=lambda fit: fit.refine is None),
        "mismatch_": SavedArray("N", "probability"),
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

    limits: ClassVar[Limits] = {
        "balance": Number(0.0, 1.0),
        "class_prior": check_fixed_class_prior,
        "n_landmarks": Count(2, 20_000),
        "rounds": Count(1, 1000),
        "smoothness": Number(0.0),
        "robust": Flag(),
    }

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        n_landmarks = (np.shape(self.landmarks_) or (0,))[0]
        return {**super()._axis_sizes(sizes), "landmarks": n_landmarks}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        if (
            self.refine is not None
            and not isinstance(self.refine, str)
            and not callable(self.refine)
        ):
            raise ParameterError(
                f"refine is {self.refine!r}; give a name such as 'mlp', a torch module, or a "
                "function of (shape, n_classes) that makes one."
            )
        if self.refine_options is not None and not isinstance(self.refine_options, Mapping):
            raise ParameterError(
                f"refine_options is {self.refine_options!r}; give a mapping of parameters."
            )
        if self.refine is None and self.refine_options:
            raise ParameterError("refine_options has no effect without refine; set refine as well.")

    # -------------------------------------------------------------------------------------- fit

    def _fit(self, training: Training) -> Learned:
        self._refuse_to_resume(training)
        X, rng, labels = (
            self._as_matrix(training.X),
            as_generator(self.random_state),
            training.labels,
        )
        trainer = None
        if self.refine is not None:
            trainer = _networks().new_trainer(self.refine, self.refine_options, rng)
        useful = (labels.labels_per_task > 0) | (training.gold >= 0)
        odd = odd_rows(X)
        sound = ~odd if self.robust and not odd.all() else np.ones(len(X), dtype=bool)
        kernel = Kernel.of(X[sound], self.n_landmarks, rng)
        n_useful = int(useful[sound].sum())
        unlabelled = int(sound.sum() - n_useful) / max(n_useful, 1)  # per labelled task
        kernel = kernel.smoothed(X[sound], self.smoothness * unlabelled)
        features = kernel.features(X)
        state, mismatches = self._settled(features, training, useful, sound)
        weights, intercept = state.regression.solve(state.targets, state.ridge)
        classifier = {
            "temperature": state.temperature,
            "ridge": state.ridge / state.regression.unit,
            "class_bias": state.bias,
            "weights": kernel.root @ weights,
            "intercept": intercept,
            **kernel.published(),
        }
        log_probas = _log_output(X, {f"{name}_": value for name, value in classifier.items()})
        probas = np.exp(log_probas)
        probas[useful] = state.posterior
        mismatch = np.where(odd, 1.0, 0.0)
        mismatch[useful] = np.maximum(mismatch[useful], mismatches.probability)
        findings = self._findings_of(training, useful, odd, mismatches, state)
        result = Learned(
            log_probas,
            confusion=confusion_of(state.posterior, labels[np.flatnonzero(useful)]),
            probas=probas,
            n_iter=self.rounds,
            history=tuple(state.history),
            findings=findings,
            extra=classifier | {"mismatch": mismatch},
        )
        if trainer is not None:
            result = _networks().refined(result, trainer, training, useful)
        result.extra.update(remember(training, result.log_probas))
        return result

    def _settled(
        self, features: Floats, training: Training, useful: Mask, sound: Mask
    ) -> tuple[Rounds, Mismatches]:
        """Run the rounds; ``robust`` repeats them without the tasks whose features mismatch."""
        trusted, rows = sound, np.flatnonzero(useful)
        target = self._target(training.labels.n_classes)
        state = Rounds(features, training, useful, trusted, target).run(self.rounds)
        found = state.mismatches(features[rows], sound[rows])
        for _ in range(TRIMS if self.robust else 0):
            kept = sound.copy()
            kept[rows[found.probability > 0.5]] = False
            if not found.clear or (kept == trusted).all() or not kept[rows].any():
                break
            trusted = kept
            state = Rounds(features, training, useful, trusted, target).run(self.rounds)
            found = state.mismatches(features[rows], sound[rows])
        return state, found

    def _target(self, n_classes: int) -> float | Floats:
        """Return the balance, or the (n_classes,) log of given class frequencies."""
        none = TaskPrior(np.zeros((1, n_classes)))
        given = fixed_class_prior(self.class_prior, none, n_classes)
        return self.balance if given is None else np.maximum(given, np.log(LEAST_SHARE))

    def _findings_of(
        self, training: Training, useful: Mask, odd: Mask, found: Mismatches, state: Rounds
    ) -> tuple[Finding, ...]:
        tasks, rows = training.labels.tasks, np.flatnonzero(useful)
        order = np.argsort(-found.probability, kind="stable")
        contradicted = rows[order[: int((found.probability > 0.5).sum())]]
        contradicted = contradicted[~odd[contradicted]]
        findings = mismatch_findings(tasks, odd, found, contradicted, self.robust)
        moved = state.moved_by_balance()
        if moved < MANY_MOVED or moved * len(rows) < FEWEST_MOVED:
            return findings
        text = (
            f"The assumption {parameter('balance', self.balance)}, that classes are less skewed "
            f"than labels, decides the answer of {moved:.0%} of the tasks; no label confirms it."
        )
        remedy = f"Compare with {parameter('balance', 0)}, on tasks whose class is known."
        return (*findings, Finding("assumed-balance", "medium", moved, (), text, remedy))

    # ---------------------------------------------------------------------------------- predict

    def _log_probas(self, X: Any) -> Floats:
        if self.refine is not None:
            return np.asarray(self._refined._log_probas(X))
        flat = self._new_matrix(X)
        return _log_output(flat, vars(self))

    def _network_files(self) -> dict[str, bytes]:
        """Return the weights of the refined network, if any, as the content of a file."""
        return {} if self.refine is None else dict(self._refined._network_files())

    def _set_network(self, files: dict[str, bytes]) -> None:
        """Rebuild the refined network, if any, with the weights of a file."""
        if self.refine is not None:
            self._refined = _networks().restored(self, files)

    def _forecast(self, log_probas: Floats, labels: CrowdLabels) -> Floats:
        log_theta = safe_log(self.confusion_)[labels.worker, :, labels.label]
        fresh = np.exp(log_softmax(log_probas + label_evidence(log_theta, labels)))
        return recall(self, fresh, log_probas, labels)


def mismatch_findings(
    tasks: NDArray[Any], odd: Mask, found: Mismatches, contradicted: NDArray[np.intp], robust: bool
) -> tuple[Finding, ...]:
    """Return findings about odd rows and about features that contradict the labels.

    Parameters
    ----------
    tasks, odd : (N,)
        Ids of the tasks, and which have odd rows of features.
    found : Mismatches
    contradicted : row numbers of the mismatches, most probable first
    robust : bool
        Whether these tasks were kept out of the classifier.
    """
    findings, severity = [], "low" if robust else "medium"
    done = "The classifier did not learn from them, and their answers rest on the workers alone."
    remedy = done if robust else f"Correct these rows, or use {parameter('robust', True)}."
    if odd.any():
        ids = tasks[odd]
        text = (
            f"The features of {len(ids)} of {len(tasks)} tasks are constant or far from all others "
            f"({describe_ids(ids)})."
        )
        findings.append(
            Finding("odd-features", severity, float(odd.mean()), tuple(ids.tolist()), text, remedy)
        )
    if found.clear and len(contradicted):
        ids = tasks[contradicted]
        text = (
            f"The features of about {found.share:.0%} of the tasks contradict their labels; the "
            f"most probable are {describe_ids(ids)}."
        )
        findings.append(
            Finding("mismatched-features", severity, found.share, tuple(ids.tolist()), text, remedy)
        )
    return tuple(findings)


def _log_output(X: Floats, learned: Mapping[str, Any]) -> Floats:
    """Return the (n, K) log-probabilities of a fitted classifier."""
    kernel = Kernel(
        learned["landmarks_"], learned["feature_mean_"], learned["feature_scale_"],
        learned["row_mean_"], learned["kernel_scale_"], np.empty((0, 0)),
    )  # fmt: skip
    scores = kernel.matrix(X) @ learned["weights_"] + learned["intercept_"]
    return log_softmax(learned["temperature_"] * scores + learned["class_bias_"])


def _networks() -> Any:
    """Return the module that trains networks, which needs torch."""
    with network_libraries("refine"):
        import wisecrowd.learning.training.neural_classifier as networks
    return networks
