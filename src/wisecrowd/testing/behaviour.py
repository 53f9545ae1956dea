"""Checks of the statistics: posteriors, recovery, objective, predictions, starts, good crowds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.registry import kebab_case
from wisecrowd.core.result import choose_labels
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.label_law import NEW_TASK
from wisecrowd.simulate import (
    Assignment,
    Crowd,
    Dense,
    OneCoinWorkers,
    PerTask,
    SimulatedCrowd,
    crowd,
)
from wisecrowd.testing.crowds import (
    n_classes_for,
    named_columns,
    own_crowd,
    simulated,
    small_labels,
)
from wisecrowd.testing.foundation import (
    Make,
    assert_close,
    assert_same_labels,
    check,
    dense,
    fit_or_refusal,
    is_stochastic,
    require,
    short_run,
    tied,
    with_params,
)

GOOD, CAREFUL = OneCoinWorkers(17, 3), OneCoinWorkers(9, 1)  # 85% and 90% correct on average
PERFECT = OneCoinWorkers(1e6, 1e-3)


def assert_sound(fitted: Aggregator, labels: CrowdLabels, when: str) -> None:
    """Require finite, normalised results of the right shapes."""
    probas = dense(fitted.probas_)
    shape = (labels.n_tasks, labels.n_classes)
    require(probas.shape == shape, f"probas_ has shape {probas.shape}, not {shape}, {when}")
    require(np.isfinite(probas).all(), f"probas_ is not finite {when}")
    require((probas >= 0).all(), f"probas_ is negative {when}")
    total = probas.sum(axis=1)
    if hasattr(fitted.probas_, "toarray"):  # sparse: the rest belongs to other classes
        require((total <= 1 + 1e-9).all(), f"rows of probas_ sum to more than one {when}")
    else:
        require(np.allclose(total, 1, atol=1e-9), f"rows of probas_ do not sum to one {when}")
    accuracy, error = fitted.worker_accuracy_, fitted.worker_accuracy_error_
    require(accuracy.shape == (labels.n_workers,), f"worker_accuracy_ is {accuracy.shape} {when}")
    require(error.shape == accuracy.shape, f"worker_accuracy_error_ is {error.shape} {when}")
    require(np.isfinite(accuracy).all(), f"worker_accuracy_ is not finite {when}")
    inside = (accuracy >= -1e-9) & (accuracy <= 1 + 1e-9)
    require(inside.all(), f"worker_accuracy_ leaves [0, 1] {when}")
    require(np.isfinite(error).all() and (error >= 0).all(), f"worker_accuracy_error_ {when}")
    require(np.isfinite(fitted.history_).all(), f"history_ is not finite {when}")


@check
def check_probabilities(make: Make) -> None:
    """Require that posteriors are finite and normalised, and that their maximum is the label."""
    for seed in range(3):
        labels = small_labels(make, seed)
        fitted = make().fit(labels)
        assert_sound(fitted, labels, "on a small crowd")
        chosen, ties = choose_labels(fitted.probas_, labels.class_totals)
        require(np.array_equal(fitted.labels_, labels.classes[chosen]), "labels_ is not the argmax")
        require(np.array_equal(fitted.ties_, ties), "ties_ does not mark the ties")
        top = dense(fitted.probas_)[np.arange(labels.n_tasks), chosen]
        assert_close(fitted.confidence_, top, "confidence_", "from the label's probability")
        if fitted.tags().confusion:
            rows = fitted.confusion_.sum(axis=2)
            require(np.allclose(rows, 1, atol=1e-9), "rows of confusion_ do not sum to one")


def _accuracy(fitted: Aggregator, made: SimulatedCrowd) -> float:
    return float(np.mean(fitted.labels_ == made.truth))


def _vote_accuracy(made: SimulatedCrowd) -> float:
    votes = np.zeros((made.labels.n_tasks, made.labels.n_classes))
    np.add.at(votes, (made.labels.task, made.labels.label), 1.0)
    chosen, _ = choose_labels(votes, made.labels.class_totals)
    return float(np.mean(chosen == made.truth_codes))


@check
def check_recovers_truth(make: Make) -> None:
    """Require labels as accurate as the vote's, and worker accuracies near the true ones."""
    for seed in range(2):
        made = simulated(500, 10, n_classes_for(make), 7, seed)
        fitted = make().fit(made.labels)
        reached, vote = _accuracy(fitted, made), _vote_accuracy(made)
        require(reached >= vote - 0.02, f"accuracy {reached:.3f}, majority vote has {vote:.3f}")
        off = np.abs(fitted.worker_accuracy_ - made.worker_accuracy).mean()
        require(off <= 0.12, f"worker accuracies are {off:.3f} off on average")
        rank = np.corrcoef(fitted.worker_accuracy_, made.worker_accuracy)[0, 1]
        require(rank >= 0.7, f"worker accuracies correlate only {rank:.2f} with the true ones")


@check
def check_recovers_own_model(make: Make) -> None:
    """Require that the method recovers the parameters of a crowd drawn from its own model."""
    made = own_crowd(kebab_case(type(make()).__name__))
    if made is None:
        return
    fitted = make().fit(made.labels)
    reached = _accuracy(fitted, made)
    require(reached >= _vote_accuracy(made) - 0.005, f"accuracy {reached:.3f} is below the vote's")
    if made.difficulty is None:
        off = np.abs(fitted.worker_accuracy_ - made.worker_accuracy).mean()
        require(off <= 0.04, f"worker accuracies are {off:.3f} off on average")
        within = np.abs(fitted.worker_accuracy_ - made.worker_accuracy)
        covered = np.mean(within <= 3 * fitted.worker_accuracy_error_ + 0.01)
        require(covered >= 0.8, f"three standard errors cover {covered:.0%} of the workers only")
    if fitted.tags().confusion and made.difficulty is None:
        off = np.abs(fitted.confusion_ - made.confusion).mean()
        require(off <= 0.06, f"confusion matrices are {off:.3f} off on average")


@check
def check_objective_monotone(make: Make) -> None:
    """Require that the objective never decreases, for methods that declare this."""
    if not make().tags().monotone:
        return
    k = n_classes_for(make)
    accelerated = ({}, {"accelerate": True}) if "accelerate" in make().get_params() else ({},)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 40))
        labels = simulated(n, int(rng.integers(2, 9)), k, 2, seed).labels
        random = CrowdLabels(
            labels.task, labels.worker, rng.integers(0, k, labels.n_annotations).astype(np.int32),
            labels.tasks, labels.workers, labels.classes,
            weight=rng.uniform(0.1, 3, labels.n_annotations) if seed % 3 == 0 else None,
        )  # fmt: skip
        for options in accelerated:
            for data in (labels, random):
                fitted = with_params(make, max_iter=60, tol=0.0, n_init=1, **options).fit(data)
                _assert_climbs(fitted.history_, f"on data set {seed}, {options or 'plain'}")


def _assert_climbs(history: tuple[float, ...], where: str) -> None:
    require(len(history) > 0 and np.isfinite(history).all(), f"history_ is {history} {where}")
    values = np.asarray(history)
    fall = np.max(values[:-1] - values[1:], initial=0.0)
    scale = max(1.0, float(np.abs(values).max()))
    require(fall <= 1e-9 * scale, f"the objective falls by {fall:.3g} {where}")


@check
def check_predict_repeats_fit(make: Make) -> None:
    """Require that predicting the training labels repeats the fit, even after one iteration."""
    if not make().tags().inductive:
        return
    labels = small_labels(make)
    prior = np.random.default_rng(0).dirichlet(np.full(labels.n_classes, 5.0), labels.n_tasks)
    for n_iter in (1, 2, 30):
        fitted = short_run(make, n_iter).fit(labels)
        _assert_repeats(fitted, labels, f"at max_iter={n_iter}")
        fitted = short_run(make, n_iter).fit(labels, task_prior=prior)
        _assert_repeats(fitted, labels, f"at max_iter={n_iter} with a task prior", prior)
    fitted = make().fit(labels)
    _assert_repeats(fitted, labels, "at the defaults")
    again = CrowdLabels.from_arrays(*named_columns(labels))  # equal vocabularies, different objects
    _assert_repeats(fitted, again, "for equal labels in another object")
    _assert_repeats(with_params(make, class_prior="uniform").fit(labels), labels, "with uniform π")


def _assert_repeats(
    fitted: Aggregator, labels: CrowdLabels, when: str, prior: Floats | None = None
) -> None:
    probas = fitted.predict_proba(labels, task_prior=prior)
    assert_close(fitted.probas_, probas, "predict_proba", f"from the fit {when}")
    predicted = fitted.predict(labels, task_prior=prior)
    assert_same_labels(fitted.labels_, predicted, tied(fitted.probas_), f"from the fit {when}")


@check
def check_new_tasks(make: Make) -> None:
    """Require posteriors of new tasks, even by unknown workers, and refusal of unknown classes."""
    labels = small_labels(make)
    fitted = make().fit(labels)
    worker, answer = labels.workers[:4].tolist(), labels.classes[0]
    task = ["a", "a", "a", "b"]
    if not (fitted.tags().inductive or fitted.tags().predicts):
        _assert_refuses(lambda: fitted.predict_proba((task, worker, [answer] * 4)), "a new task")
        return
    known = dense(fitted.predict_proba((task, worker, [answer] * 4)))
    require(known.shape == (2, labels.n_classes), f"predict_proba has shape {known.shape}")
    require(np.allclose(known.sum(axis=1), 1, atol=1e-9), "predict_proba is not normalised")
    strangers = dense(fitted.predict_proba((["a"] * 3, ["x", "y", "z"], [answer] * 3)))
    require(np.isfinite(strangers).all(), "unknown workers give no finite posterior")
    require(fitted.predict((["a"], ["x"], [answer])).shape == (1,), "predict has a wrong shape")
    _assert_refuses(lambda: fitted.predict_proba((["a"], worker[:1], ["no-class"])), "a new class")


def _assert_refuses(attempt: Callable[[], object], what: str) -> None:
    try:
        attempt()
    except DataError:
        return
    raise AssertionError(f"{what} is not refused with a DataError")


@check
def check_score(make: Make) -> None:
    """Require that the score is the accuracy or, where declared, the mean log-likelihood."""
    labels = small_labels(make)
    fitted = make().fit(labels)
    half = dict(zip(labels.tasks[::2].tolist(), fitted.labels_[::2].tolist(), strict=True))
    require(fitted.score(labels, half) == 1.0, "the score on its own labels is not one")
    other = np.roll(labels.classes, 1)[np.searchsorted(labels.classes, fitted.labels_)]
    require(fitted.score(labels, other) == 0.0, "the score on wrong labels is not zero")
    if fitted.tags().likelihood:
        value = fitted.score(labels)
        require(math.isfinite(value) and value <= 1e-12, f"the log-likelihood is {value}")


@check
def check_label_law(make: Make) -> None:
    """Require that the label law is normalised and agrees with ``confusion_`` and ``score``."""
    labels = small_labels(make)
    fitted = make().fit(labels)
    J, K = labels.n_workers, labels.n_classes
    if fitted._label_law() is None:
        promised = fitted.tags().confusion or fitted.tags().likelihood
        require(not promised, "confusion matrices or a likelihood, but no label law")
        _assert_refuses(fitted.label_law, "the label law of a method without one")
        return
    law = fitted.label_law()
    assert_close(law.class_prior, fitted.class_prior_, "the class prior", "from class_prior_")
    worker, truth = np.divmod(np.arange(J * K), K)
    for task in (NEW_TASK, worker % labels.n_tasks):
        probas = law.probas(np.eye(K)[truth], worker, task)
        require(np.allclose(probas.sum(axis=1), 1, atol=1e-9), "its rows do not sum to one")
        each = law.prob(np.arange(K), truth[:, None], worker[:, None], np.reshape(task, (-1, 1)))
        assert_close(each, probas, "prob", "from probas")
    confusion = law.confusion(np.arange(J))
    if fitted.tags().confusion:
        assert_close(fitted.confusion_, confusion, "the label law", "from confusion_")
    if fitted.tags().likelihood:  # tasks with one label: each label of each worker once
        one_each = (np.arange(J * K), labels.workers[worker], labels.classes[truth])
        expected = np.log(np.einsum("k,jkl->jl", law.class_prior, confusion)).mean()
        score = fitted.score(CrowdLabels.from_arrays(*one_each, classes=labels.classes))
        require(abs(score - expected) <= 1e-9, f"score is {score}, by the label law {expected}")


@check
def check_warm_start(make: Make) -> None:
    """Require that probabilities, a previous fit and another method are accepted as a start."""
    labels = small_labels(make)
    former = make().fit(labels)
    for start in (former, dense(former.probas_), with_params(make, max_iter=2)):
        assert_sound(make().fit(labels, init=start), labels, "from a given start")
    if former.tags().monotone and not is_stochastic(make):  # the objective increases from the start
        warm = short_run(make, 1).fit(labels, init=former)
        agreement = float(np.mean(warm.labels_ == former.labels_))
        require(agreement >= 0.9, f"one step from a former fit agrees on {agreement:.0%} only")
        elsewhere = short_run(make, 1).fit(labels, init=np.roll(dense(former.probas_), 1, axis=1))
        moved = np.abs(dense(elsewhere.probas_) - dense(warm.probas_)).max()
        require(moved > 1e-6, "the start changes nothing")
        warm = with_params(make, n_init=1).fit(labels, init=former)
        fall = former.history_[-1] - warm.history_[-1]
        scale = max(1.0, abs(former.history_[-1]))
        require(fall <= 1e-4 * scale, f"a warm start ends {fall:.3g} below the former fit")
    bad = np.full((labels.n_tasks, labels.n_classes + 1), 0.5)
    _assert_refuses(lambda: make().fit(labels, init=bad), "a start of a wrong shape")
    _assert_refuses(lambda: make().fit(labels, init=-bad[:, :-1]), "a negative start")


@check
def check_one_label_per_task(make: Make) -> None:
    """Require that a fit to one label per task succeeds."""
    made = simulated(60, 4, n_classes_for(make), 1)
    fitted = fit_or_refusal(make(), made.labels)
    if fitted is not None:
        assert_sound(fitted, made.labels, "with one label per task")


def good_crowds(n_classes: int) -> Iterator[tuple[str, SimulatedCrowd]]:
    """Yield crowds of good workers, each with a description.

    In the last two, pairs of workers share one or two tasks, which is too few for some methods.
    """
    kinds: dict[str, tuple[int, Crowd, Assignment, int]] = {
        "six workers label everything": (150, 6 * GOOD, Dense(), n_classes),
        "nobody errs": (60, 6 * PERFECT, PerTask(5), 60),
    }
    if n_classes < 10:  # the slowest methods take one or two seconds per fit
        kinds["workers give fifteen labels each"] = (100, 20 * CAREFUL, PerTask(3), 104)
        kinds["workers give fifteen right labels each"] = (100, 20 * PERFECT, PerTask(3), 104)
    for name, (n_tasks, workers, assignment, seed) in kinds.items():
        yield name, crowd(n_tasks, workers, assignment, n_classes=n_classes, random_state=seed)


@check
def check_good_crowds(make: Make) -> None:
    """Require that fits to good crowds converge, and that methods do not warn about themselves.

    The common checks are off, because they have their own thresholds. Warnings about workers who
    share too few tasks count only if they share many.
    """
    for n_classes in (2,) if make().tags().binary else (2, 4, 10):
        for what, made in good_crowds(n_classes):
            where = f"on a good crowd with {n_classes} classes, where {what}"
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fitted = make()._fit_without_checks(made.labels)
            require(fitted.converged_, f"no convergence in {fitted.n_iter_} iterations {where}")
            own = [str(warning.message) for warning in caught]
            sparse = made.labels.n_annotations < 25 * made.labels.n_workers
            require(sparse or not own, f"a warning {where}: {own[:1]}")
