"""Logistic regression per class and workers who miss and invent classes, estimated together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.findings import Finding
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.sets.answers import SetAnswers
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.methods.base import WorkerSets, check_threshold, chosen_classes
from wisecrowd.kinds.sets.methods.label_rules import LabelRules
from wisecrowd.kinds.sets.methods.set_mixture import SetMixture, SetParams
from wisecrowd.kinds.sets.metrics import set_scores
from wisecrowd.kinds.sets.truth import SetPrior, known_sets, set_prior
from wisecrowd.learning.base import FlatLearner, Outcome, TaskLearner, TrainingSet
from wisecrowd.learning.training.label_model import Standardised, lowest
from wisecrowd.learning.training.rows_of_features import by_rows, require_given

LEAST = 1e-6  # smallest probability that features alone may give a class
WORKER_STEPS, WORKER_TOLERANCE = 100, 1e-3  # of the fits to workers in between


@dataclass(frozen=True, eq=False)
class LearnedSets(Outcome):
    """Results of a fit to sets: the workers, and a model of the labels given the features."""

    model: SetMixture
    params: SetParams


@dataclass(eq=False, repr=False, kw_only=True)
class RaykarSets(FlatLearner, TaskLearner):
    r"""A logistic regression for every class, and sensitivity and false alarms of workers.

    .. math::
        P(z_{ik} = 1 \mid x_i) = \sigma(w_k^\top x_i + c_k), \qquad
        P(k \in Y_{ij} \mid z_i) = s_{jk} z_{ik} + f_{jk} (1 - z_{ik})

    Two steps alternate: ``SharedTwoCoin`` with the regressions as task prior gives the probability
    of every class of every task; ridge-penalised logistic regressions on these probabilities give
    :math:`w` and :math:`c`. Rates of workers are shared between classes as there. Features are
    standardised; rows of ``X`` that are not vectors are flattened. It needs no torch.

    Use it when workers tick several classes, and whether a class applies is roughly linear in the
    features, such as embeddings. Cost per alternation: that of ``SharedTwoCoin`` and of a logistic
    regression per class.

    Parameters
    ----------
    l2 : float
        Penalty of the weights of standardised features.
    shrinkage : float
        Number of labels that the pooled rates count for in those of a worker.
    threshold : float or "cardinality"
        A class is in the set if it is at least this probable. "cardinality" takes as many classes
        as the probabilities sum to.
    max_iter : int
        Maximum number of alternations.
    tol : float
        Change of the probabilities of the regressions that counts as converged.
    random_state : int
        Not used; the method is deterministic.

    Attributes
    ----------
    coef_, intercept_ : (n_classes, n_features), (n_classes,)
        Weights and intercepts for the features as given.
    labels_ : (n_tasks,) str
        The classes of each task, with ``|`` between them.
    probas_ : (n_tasks, n_classes)
        Probability of every class from features and labels; rows do not sum to one.
    members_ : (n_tasks, n_classes) bool
        The classes of each task as a table.
    sensitivity_, false_alarm_ : (n_workers, n_classes)
        Expected rates of each worker.
    pooled_sensitivity_, pooled_false_alarm_ : (n_classes,)
        Those of a worker about whom nothing is known.
    history_ : tuple of dict
        Change of the probabilities in every alternation.

    Notes
    -----
    The paper has one class; here every class has a regression, and workers have rates per class
    that are shrunk to the crowd's. There are no epochs: ``fit`` does not use ``valid``, with a
    finding, and refuses ``resume``.

    References
    ----------
    Raykar et al. (2010). Learning from crowds. JMLR 11, 1297-1322.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 2))
    >>> task, worker = np.repeat(np.arange(120), 3), np.tile(["ann", "bob", "cem"], 120)
    >>> sets = [[c for c, x in zip("ab", X[i]) if x > 0] for i in task]
    >>> RaykarSets().fit(X, (task, worker, sets)).predict([[2.0, 2.0], [-2.0, 2.0]]).tolist()
    ['a|b', 'b']
    """

    l2: float = 10.0
    shrinkage: float = 5.0
    threshold: Any = 0.5
    max_iter: int = 30
    tol: float = 1e-2

    takes: ClassVar[str] = "sets"
    without_labels: ClassVar[str] = (
        "learns nothing from them, and they get the regressions' own answer."
    )
    saves: ClassVar[dict[str, Saved]] = {
        "coef_": SavedArray("K inputs"),
        "intercept_": SavedArray("K"),
        "sensitivity_": SavedArray("J K", "probability"),
        "false_alarm_": SavedArray("J K", "probability"),
        "pooled_sensitivity_": SavedArray("K", "probability"),
        "pooled_false_alarm_": SavedArray("K", "probability"),
    }
    _fit_call = "fit(X, sets)"
    limits: ClassVar[Limits] = {
        "l2": Number(0.0),
        "shrinkage": Number(0.01, 1000000.0),
        "threshold": check_threshold,
    }

    # -------------------------------------------------------------------------------------- fit

    def _training(
        self, X: Any, y: Any, ids: Any, gold: Any, valid: Any, resume: Any
    ) -> TrainingSet:
        data = as_set_targets(y, len(X), ids)
        if data.n_annotations == 0:
            raise DataError("There are no annotations to fit; give sets for some rows of X.")
        return TrainingSet(X, data, set_prior(None, gold, data), valid, resume)

    def _fit(self, training: TrainingSet) -> LearnedSets:
        self._refuse_to_resume(training, "writes no checkpoints")
        data: CrowdSets = training.labels
        prior: SetPrior = training.gold
        standard = Standardised.of(self._as_matrix(training.X))
        rules = LabelRules.none(data.n_classes)
        model = SetMixture(data, prior, rules, float(self.shrinkage))
        run = model.run(1, WORKER_STEPS, WORKER_TOLERANCE)
        useful = model.counted > 0
        weights, old = np.zeros((data.n_classes, standard.X.shape[1])), model.start
        history: list[dict[str, float]] = []
        converged = False
        while len(history) < self.max_iter and not converged:
            weights = solve_sigmoid(standard.X[useful], run.probas[useful], self.l2, weights)
            chance = np.clip(_sigmoid(standard.X @ weights.T), LEAST, 1 - LEAST)
            model = SetMixture(data, prior._replace(probas=chance), rules, float(self.shrinkage))
            run = model.run(1, WORKER_STEPS, WORKER_TOLERANCE)
            moved = float(np.abs(chance - old).max())
            old, converged = chance, moved <= self.tol
            report(Progress(len(history) + 1, self.max_iter, -moved))
            history.append({"iteration": len(history) + 1.0, "change": moved})
        coef, intercept = standard.as_given(weights)
        return LearnedSets(
            model, run.params, n_iter=len(history), converged=converged, history=tuple(history),
            findings=self._unused(training), extra={"coef": coef, "intercept": intercept},
        )  # fmt: skip

    def _answer(self, training: TrainingSet, result: LearnedSets) -> tuple[Finding, ...]:
        params = result.params
        (self.sensitivity_, self.false_alarm_), pooled = params.rates, params.pooled
        self.pooled_sensitivity_, self.pooled_false_alarm_ = pooled
        probas = result.model.careful(params)
        worth = WorkerSets.of(training.labels, probas)
        vars(self).update(self._answers(probas))
        self.worker_accuracy_, self.worker_accuracy_error_ = worth.accuracy, worth.error
        vars(self).update({f"{name}_": value for name, value in worth.published().items()})
        return ()

    # ---------------------------------------------------------------------------------- predict

    def predict_proba(self, X: Any, labels: Any = None, *, tasks: Any = None) -> Floats:
        """Return the (n, n_classes) probabilities of classes of new tasks.

        Parameters
        ----------
        X : features
        labels : sets of these tasks, optional
            With labels, the result is the posterior from features and labels. On the training tasks
            it equals ``probas_``, except for tasks with gold.
        tasks : (n,) ids, optional
            Task of each row, as in ``fit``.
        """
        flat = self._new_matrix(self._checked(X))
        score = np.asarray(flat @ self.coef_.T) + self.intercept_
        chance = np.clip(_sigmoid(score), LEAST, 1 - LEAST)
        if labels is None:
            return chance
        data = as_set_targets(labels, len(chance), tasks).in_fitted_ids(self)
        rules = LabelRules.none(data.n_classes)
        model = SetMixture(data, SetPrior(probas=chance), rules, float(self.shrinkage))
        return model.careful(self._params())

    def _params(self) -> SetParams:
        return SetParams(
            np.stack([self.sensitivity_, self.false_alarm_]),
            np.stack([self.pooled_sensitivity_, self.pooled_false_alarm_]),
            np.full((1, len(self.classes_)), 0.5),
            np.ones(1),
        )

    def _answers(self, probas: Floats) -> dict[str, Any]:
        answers = SetAnswers(probas, chosen_classes(probas, self.threshold))
        return answers.attributes(vars(self))

    def predict(self, X: Any, labels: Any = None, *, tasks: Any = None) -> NDArray[Any]:
        """Return the (n,) sets of new tasks as text; see :meth:`predict_proba`."""
        found: NDArray[Any] = self._answers(self.predict_proba(X, labels, tasks=tasks))["labels_"]
        return found

    def score(self, X: Any, y: Any) -> float:
        """Return micro F1 on the (n,) true sets of the rows of ``X``; None is unknown."""
        probas = self.predict_proba(X)
        rows = np.arange(len(probas))
        empty = CrowdSets.from_arrays(
            rows, np.zeros(len(rows), int), [""] * len(rows), classes=self.classes_.tolist()
        )
        return set_scores(known_sets(list(y), empty), self._answers(probas)["members_"])["micro_f1"]

    def prediction_columns(
        self, X: Any, ids: Any = None, labels: Any = None
    ) -> dict[str, NDArray[Any]]:
        """Return the table of ``wisecrowd predict``: task, labels and every ``p_CLASS``."""
        found = self._answers(self.predict_proba(X, labels, tasks=ids))
        tasks = np.arange(len(found["labels_"])) if ids is None else ids
        return SetAnswers.main_columns(found | {"tasks_": tasks, "classes_": self.classes_})


def solve_sigmoid(X: Any, targets: Floats, l2: float, start: Floats, tol: float = 1e-6) -> Floats:
    r"""Return the (K, d) weights of a logistic regression per class, on probabilities.

    They minimise :math:`-\sum_{ik} [q_{ik} \log f_{ik} + (1 - q_{ik}) \log(1 - f_{ik})] +
    \frac{\lambda}{2} \|W\|^2`; the last column, the intercept, is not penalised.

    Parameters
    ----------
    X : (N, d) array, or what has its products
        Features with a last column of ones.
    targets : (N, K)
    l2 : float
    start : (K, d)
        Initial weights; returned unchanged if L-BFGS does not improve on them.
    tol : float
        Largest entry of the mean gradient at convergence.
    """
    penalty = np.full(X.shape[1], l2)
    penalty[-1] = 1e-6  # a class that is in all sets has no finite intercept otherwise

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(start.shape)
        score = X @ weights.T
        value = (np.logaddexp(0, score) - targets * score).sum()
        value += 0.5 * (penalty * weights**2).sum()
        gradient = (_sigmoid(score) - targets).T @ X + penalty * weights
        return float(value) / len(X), np.asarray(gradient).ravel() / len(X)

    return lowest(loss, start, tol)


def _sigmoid(score: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(score, -500, 500))))


def as_set_targets(y: Any, n_rows: int, tasks: Any = None) -> CrowdSets:
    """Return sets with one task per row of the features, in that order.

    Parameters
    ----------
    y : CrowdSets, long frame, or (task, worker, label)
    n_rows, tasks
        As in :func:`~wisecrowd.learning.training.rows_of_features.as_targets`.
    """
    require_given(y)
    return by_rows(CrowdSets.coerce(y), n_rows, tasks)
