"""Logistic regression per class and workers who miss and invent classes, estimated together."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.concurrency import exclusive_fit
from wisecrowd.core.estimator import Estimator
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.features import as_features, as_set_targets, is_dataset, is_sparse
from wisecrowd.core.findings import Finding, warn_of
from wisecrowd.core.parameter_checks import (
    MOST_ITERATIONS,
    as_generator,
    check_integer,
    check_number,
)
from wisecrowd.core.saved_attributes import RECORDS, Saved, SavedArray, SavedValue, is_count
from wisecrowd.core.set_answers import SetAnswers
from wisecrowd.core.set_scores import set_scores
from wisecrowd.core.set_truth import SetPrior, known_sets, set_prior
from wisecrowd.core.sets import CrowdSets
from wisecrowd.families.label_rules import LabelRules
from wisecrowd.families.set_method import WorkerSets, check_threshold, chosen_classes
from wisecrowd.families.set_mixture import SetMixture, SetParams
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.learning.training.logistic import Standardised

Floats = NDArray[np.float64]
LEAST = 1e-6  # smallest probability that features alone may give a class
WORKER_STEPS, WORKER_TOLERANCE = 100, 1e-3  # of the fits to workers in between


@dataclass(eq=False, repr=False, kw_only=True)
class RaykarSets(Estimator):
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
    that are shrunk to the crowd's.

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
    random_state: int | None = 0

    takes: ClassVar[str] = "sets"
    rows_are: ClassVar[str] = "tasks"
    saves: ClassVar[dict[str, Saved]] = {
        "coef_": SavedArray("K inputs"),
        "intercept_": SavedArray("K"),
        "sensitivity_": SavedArray("J K", "probability"),
        "false_alarm_": SavedArray("J K", "probability"),
        "pooled_sensitivity_": SavedArray("K", "probability"),
        "pooled_false_alarm_": SavedArray("K", "probability"),
        "history_": RECORDS,
        "n_features_in_": SavedValue(is_count, "a count", optional=True),
        "feature_names_in_": SavedArray("features", "id", optional=True),
    }
    _fit_call = "fit(X, sets)"

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        # Features that are not vectors are flattened; only the size of their first axis is saved.
        features, per_task = sizes["features"], (np.shape(self.coef_) or (0,))[-1]
        return {"inputs": per_task if features and per_task % features == 0 else features}

    def _validate_parameters(self) -> None:
        as_generator(self.random_state)
        check_number("l2", self.l2, 0.0)
        check_number("shrinkage", self.shrinkage, 0.01, 1e6)
        check_threshold(self.threshold)
        check_integer("max_iter", self.max_iter, 1, MOST_ITERATIONS)
        check_number("tol", self.tol, 0.0)

    # -------------------------------------------------------------------------------------- fit

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        tasks: Any = None,
        gold: Any = None,
        valid: Any = None,
        resume: bool | None = False,
    ) -> Self:
        """Fit to features and sets.

        Parameters
        ----------
        X : (N, d) or (N, ...) array, sparse matrix, or frame of numbers
        y : CrowdSets, long frame, or (task, worker, label)
        tasks : (N,) ids, optional
            Task of each row of ``X``. Without it, tasks must be row numbers.
        gold : mapping from task to set, (task, label) frame, or (N,) list with None
            Known sets, which the result keeps and the regressions learn from.
        valid : optional
            Not used, with a finding: there are no epochs to choose among.
        resume : bool, optional
            Refused: there are no checkpoints.
        """
        self._validate_parameters()
        if resume:
            raise ParameterError("RaykarSets writes no checkpoints; fit without resume.")
        features = as_features(X)
        data = as_set_targets(y, len(features) if not is_sparse(features) else features.shape[0],
                              tasks)  # fmt: skip
        if data.n_annotations == 0:
            raise DataError("There are no annotations to fit; give sets for some rows of X.")
        prior = set_prior(None, gold, data)
        with exclusive_fit(self):
            fresh = type(self)(**self.get_params(deep=False))
            fresh._learn(X, features, data, prior)
            fresh._report((*_unlabelled(data), *(() if valid is None else (_unused(),))))
            self._forget()
            vars(self).update(vars(fresh))
        warn_of(self.findings_, stacklevel=3)
        return self

    def _learn(self, X: Any, features: Any, data: CrowdSets, prior: SetPrior) -> None:
        matrix = _as_matrix(features)
        standard = Standardised.of(matrix)
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
        self.coef_, self.intercept_ = standard.as_given(weights)
        self._publish(X, matrix, model, run.params)
        self.history_, self.n_iter_, self.converged_ = tuple(history), len(history), converged

    def _publish(self, X: Any, matrix: Any, model: SetMixture, params: SetParams) -> None:
        data = model.data
        found = data.attributes()
        (self.sensitivity_, self.false_alarm_), pooled = params.rates, params.pooled
        self.pooled_sensitivity_, self.pooled_false_alarm_ = pooled
        probas = model.careful(params)
        answers = SetAnswers(probas, chosen_classes(probas, self.threshold))
        worth = WorkerSets.of(data, probas)
        found |= answers.attributes(found)
        found |= {"worker_accuracy_": worth.accuracy, "worker_accuracy_error_": worth.error}
        found |= {f"{name}_": value for name, value in worth.published().items()}
        vars(self).update(found)
        self._frame_library = data.frame_library
        self.n_features_in_ = int(np.shape(X)[1]) if np.ndim(X) > 1 else int(matrix.shape[1])
        if hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns):
            self.feature_names_in_ = np.asarray(list(X.columns), dtype=object)

    def _report(self, findings: tuple[Finding, ...]) -> None:
        self.findings_ = findings
        self.warnings_ = tuple(map(str, findings))

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
        self._require_fitted()
        features = as_features(X, n_features=self.n_features_in_, owner=type(self).__name__)
        flat = _as_matrix(features)
        if flat.shape[1] != self.coef_.shape[1]:
            raise DataError(
                f"Each row of X has {flat.shape[1]} numbers and RaykarSets is expecting "
                f"{self.coef_.shape[1]}; give features of the shape that the fit had."
            )
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

    def save(self, path: Any) -> None:
        """Save the fitted method to a folder; ``wisecrowd.load`` reads it."""
        self._require_fitted()
        importlib.import_module("wisecrowd.storage.saved_methods").save(self, path)


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
    from scipy.optimize import minimize

    n_classes, penalty = targets.shape[1], np.full(X.shape[1], l2)
    penalty[-1] = 1e-6  # a class that is in all sets has no finite intercept otherwise

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(n_classes, -1)
        score = X @ weights.T
        value = (np.logaddexp(0, score) - targets * score).sum()
        value += 0.5 * (penalty * weights**2).sum()
        gradient = (_sigmoid(score) - targets).T @ X + penalty * weights
        return float(value) / len(X), np.asarray(gradient).ravel() / len(X)

    options = {"maxiter": 1000, "ftol": 0.0, "gtol": tol, "maxcor": 20}
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    better = np.isfinite(found.fun) and found.fun <= loss(start.ravel())[0]
    return np.asarray(found.x.reshape(n_classes, -1) if better else start)


def _sigmoid(score: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(score, -500, 500))))


def _as_matrix(X: Any) -> Any:
    if is_dataset(X):
        raise DataError(
            "RaykarSets needs all features at once and X is a dataset; give an array of its items."
        )
    if is_sparse(X):
        return X.astype(np.float64)
    return np.asarray(X, dtype=np.float64).reshape(len(X), -1)


def _unlabelled(data: CrowdSets) -> tuple[Finding, ...]:
    bare = data.labels_per_task == 0
    if not bare.any():
        return ()
    text = (
        f"{int(bare.sum())} of {data.n_tasks} rows of X have no labels; RaykarSets learns nothing "
        "from them, and they get the regressions' own answer."
    )
    ids = tuple(data.tasks[bare].tolist())
    return (Finding("tasks-without-labels", "medium", float(bare.mean()), ids, text, ""),)


def _unused() -> Finding:
    return Finding(
        "validation-set-not-used", "medium", 1.0, (),
        "RaykarSets has no epochs to choose among; the validation set was not used.", "",
    )  # fmt: skip
