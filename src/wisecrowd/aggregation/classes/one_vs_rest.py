"""OneVsRest: two-class methods for more classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.parameter_checks import as_generator
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedValue
from wisecrowd.core.task_prior import TaskPrior
from wisecrowd.inference.class_prior import check_fixed_class_prior, with_class_prior

Floats = NDArray[np.float64]
DEFAULT = "dawid-skene"


@dataclass(eq=False, repr=False, kw_only=True)
class OneVsRest(Aggregator):
    r"""One two-class problem per class, this class against the rest, by any method.

    .. math::
        p(z_i = k) = \frac{p_k(z_i = k)}{\sum_{k'} p_{k'}(z_i = k')}

    with :math:`p_k` the method's posterior when every label other than ``k`` counts as "rest".

    Use it when a method handles two classes only, or when different workers are good at different
    classes. Cost: that of the method, times the number of classes.

    Parameters
    ----------
    method : method or its name
        The two-class method; by default Dawid-Skene, with two error rates per worker and class. Set
        its own parameters as ``method__tol`` and so on.
    class_prior : "auto", "uniform" or (n_classes,) probabilities
        Prior of all classes, not of one against the rest; "auto" leaves it to the method, which
        estimates the share of one class at a time.

    Attributes
    ----------
    methods_ : list of fitted methods, one per class
        A single one, fitted to the unchanged labels, if there are at most two classes.
    class_prior_ : (n_classes,)
        Computed from the methods' shares of each class against the rest, if they have them.
    worker_accuracy_ : (n_workers,)
        Expected share of correct labels under the posterior, 1 / n_classes for workers without
        labels; with two classes, the method's own estimate.

    Notes
    -----
    With two classes this is the method itself. Gold, task priors and starts are passed on; the
    probabilities of all other classes are summed to that of the rest.

    References
    ----------
    D. R. Karger, S. Oh and D. Shah (2013). Efficient crowdsourcing for multi-class labeling.
    SIGMETRICS, 81-92.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [2, 2, 2], [2, 2, 1], [0, 0, 0]])
    >>> OneVsRest("dawid-skene").fit(labels).labels_
    array([0, 1, 2, 2, 0])
    >>> OneVsRest().set_params(method__max_iter=7)
    OneVsRest(method=DawidSkene(max_iter=7))
    """

    method: Any = field(default=DEFAULT, kw_only=False)
    class_prior: Any = "auto"

    saves: ClassVar[dict[str, Saved]] = {
        "methods_": SavedValue(
            lambda value: isinstance(value, list) and all(isinstance(m, Aggregator) for m in value),
            "a list of methods",
        ),
    }
    promises: ClassVar[Tags] = Tags()
    footprint = Footprint(cell=63.4)

    def __post_init__(self) -> None:
        if isinstance(self.method, str):
            self.method = get_method(self.method)()

    def tags(self) -> Tags:
        """Return the method's tags, without those that one against the rest does not preserve."""
        inside = self.method.tags() if isinstance(self.method, Aggregator) else self.promises
        return replace(inside, monotone=False, likelihood=False, confusion=False, binary=False)

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; a method may also be given by its name."""
        if "method" in params:
            self.method = params.pop("method")
            self.__post_init__()
        return super().set_params(**params)

    def _saved_attributes(self) -> dict[str, Saved]:
        # With two classes there is one method, and its attributes are also those of the whole.
        inside = self.method._saved_attributes()
        return {name: replace(one, optional=True) for name, one in inside.items()} | (
            super()._saved_attributes()
        )

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return self.methods_[0]._axis_sizes(sizes) if len(self.methods_) == 1 else {}

    def _saved_fault(self) -> str:
        n_classes, n_workers = len(self.classes_), len(self.workers_)
        n_methods = n_classes if n_classes > 2 else 1
        if len(self.methods_) != n_methods:
            return f"methods_ are {len(self.methods_)} where {n_methods} are needed"
        for fitted in self.methods_:
            if type(fitted) is not type(self.method) or not fitted.__sklearn_is_fitted__():
                return "methods_ are not those of the parameter method"
            if (len(fitted.workers_), len(fitted.classes_)) != (n_workers, min(n_classes, 2)):
                return "methods_ do not fit workers_ and classes_"
        return ""

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        if not isinstance(self.method, Aggregator):
            raise ParameterError(
                f"method is {self.method!r}; give a method such as {get_method(DEFAULT)()!r}, or "
                f"its name."
            )
        self._fresh_method()._validate_parameters()
        check_fixed_class_prior(self.class_prior)

    def _fresh_method(self) -> Aggregator:
        """Return an unfitted copy; the given method itself never changes."""
        copy: Aggregator = type(self.method)(**self.method.get_params(deep=False))
        return copy

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        problem = with_class_prior(problem, self.class_prior)
        labels, prior = problem.data, problem.prior
        if labels.n_classes <= 2:
            fitted, result = self._fit_one(problem)
            return replace(result, extra={**result.extra, "methods": [fitted]})
        parts = [self._fit_one(_against_rest(problem, k)) for k in range(labels.n_classes)]
        probas = _normalised([result.probas for _, result in parts], prior)
        accuracy, error = _expected_accuracy(labels, probas)
        return Fit(
            probas,
            accuracy,
            error,
            class_prior=_class_shares([result.class_prior for _, result in parts]),
            n_iter=max(result.n_iter for _, result in parts),
            converged=all(result.converged for _, result in parts),
            findings=tuple(
                replace(one, explanation=f"Class {label!r} against the rest: {one.explanation}")
                for label, (_, result) in zip(labels.classes.tolist(), parts, strict=True)
                for one in result.findings
            ),
            extra={"methods": [fitted for fitted, _ in parts]},
        )

    def _fit_one(self, problem: Problem) -> tuple[Aggregator, Fit]:
        """Fit a fresh copy of the method, as its own ``fit`` would after checking the data."""
        fitted = self._fresh_method()
        fitted._validate_parameters()
        rng = as_generator(getattr(fitted, "random_state", None))
        result = fitted._fit(replace(problem, rng=rng))
        fitted._publish(problem.data, replace(result, findings=()))  # the whole reports them
        return fitted, result

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Any:
        problem = with_class_prior(problem, self.class_prior)
        if problem.data.n_classes <= 2:
            return self.methods_[0]._predict(problem)
        parts = [
            fitted._predict(_against_rest(problem, k)) for k, fitted in enumerate(self.methods_)
        ]
        return _normalised(parts, problem.prior)


def _against_rest(problem: Problem, k: int) -> Problem:
    """Return the problem with class ``k`` as 1 and all others as 0."""
    labels, start = problem.data, problem.start
    binary = replace(
        labels,
        label=(labels.label == k).astype(np.int32),
        classes=np.array(["rest", "class"], dtype=object),
    )
    if start is not None:
        start = np.stack([1 - start[:, k], start[:, k]], axis=1)
    prior = _prior_against_rest(problem.prior, k)
    return replace(problem, data=binary, prior=prior, start=start)


def _prior_against_rest(prior: TaskPrior, k: int) -> TaskPrior:
    """Return the log prior of (rest, class ``k``), with the rest summed."""
    others = np.delete(prior.rows, k, axis=1)
    rows = np.stack([np.logaddexp.reduce(others, axis=1), prior.rows[:, k]], axis=1)
    if not prior.given:  # uninformative rows stay uninformative; gold rows do not
        rows[np.isfinite(prior.rows).all(axis=1)] = 0.0
    return TaskPrior(rows, prior.index, prior.given)


def _normalised(parts: list[Any], prior: TaskPrior) -> Floats:
    """Return the posterior (N, K) from the K posteriors (N, 2) of class against rest."""
    scores = np.stack([_dense(part)[:, 1] for part in parts], axis=1)
    total = scores.sum(axis=1)
    if (total > 0).all():
        return np.asarray(scores / total[:, None])
    # Every class was certainly "rest": use the prior.
    log_prior = prior.dense(len(scores))
    fallback = np.exp(log_prior - log_prior.max(axis=1, keepdims=True))
    scores = np.where(total[:, None] > 0, scores, fallback)
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


def _dense(probas: Any) -> Floats:
    return np.asarray(probas.toarray() if hasattr(probas, "toarray") else probas)


def _class_shares(parts: list[Floats | None]) -> Floats | None:
    shares = np.array([0.0 if part is None else part[1] for part in parts])
    if any(part is None for part in parts) or not shares.sum() > 0:
        return None
    return np.asarray(shares / shares.sum())


def _expected_accuracy(labels: CrowdLabels, probas: Floats) -> tuple[Floats, Floats]:
    """Return each worker's expected share of correct labels and its standard error."""
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    right = np.bincount(
        labels.worker, weight * probas[labels.task, labels.label], minlength=labels.n_workers
    )
    total = np.bincount(labels.worker, weight, minlength=labels.n_workers)
    accuracy = np.where(total > 0, right / np.where(total > 0, total, 1), 1 / labels.n_classes)
    spread = np.maximum(accuracy * (1 - accuracy), 1 / (total + 4))  # never claim certainty
    return accuracy, np.sqrt(np.minimum(spread / (total + 1), 0.25))
