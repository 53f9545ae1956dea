"""Checks of gold labels and task priors, which all methods accept."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from wisecrowd.core.exceptions import WisecrowdError
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.testing.crowds import n_classes_for, simulated, small_labels
from wisecrowd.testing.foundation import (
    Make,
    assert_close,
    check,
    dense,
    require,
    short_run,
    with_params,
)


def _random_prior(labels: CrowdLabels) -> Floats:
    return np.random.default_rng(4).dirichlet(np.full(labels.n_classes, 5.0), labels.n_tasks)


@check
def check_gold(make: Make) -> None:
    """Require that gold tasks keep their class, for gold given as a mapping or as an array."""
    labels = small_labels(make)
    codes = np.resize(np.arange(labels.n_classes), 6)  # mostly wrong, but kept
    gold = dict(zip(labels.tasks[:6].tolist(), labels.classes[codes].tolist(), strict=True))
    fitted = short_run(make).fit(labels, gold=gold)
    require(fitted.labels_[:6].tolist() == list(gold.values()), "gold tasks have other labels")
    certain = np.eye(labels.n_classes)[codes]
    assert_close(fitted.probas_[:6], certain, "probas_", "from certainty for gold tasks")
    aligned = np.full(labels.n_tasks, None, dtype=object)
    aligned[:6] = list(gold.values())
    same = short_run(make).fit(labels, gold=aligned)
    assert_close(fitted.probas_, same.probas_, "probas_", "between a mapping and an array of gold")
    without = short_run(make).fit(labels, gold={})
    plain = short_run(make).fit(labels)
    assert_close(plain.probas_, without.probas_, "probas_", "between no gold and empty gold")
    if fitted.tags().inductive:
        probas = dense(fitted.predict_proba(labels, gold=gold))
        assert_close(fitted.probas_, probas, "predict_proba", "from the fit with gold")


@check
def check_all_gold(make: Make) -> None:
    """Require that the labels equal the gold if every task is known."""
    labels = small_labels(make)
    gold = labels.classes[np.resize(np.arange(labels.n_classes), labels.n_tasks)]
    fitted = make().fit(labels, gold=gold)
    require(np.array_equal(fitted.labels_, gold), "not all gold tasks keep their class")
    require(np.isfinite(fitted.worker_accuracy_).all(), "worker accuracies are not finite")


@check
def check_task_prior_forms(make: Make) -> None:
    """Require equal results from probabilities, logarithms, multiples, sparse and repeated rows."""
    labels = small_labels(make)
    prior = _random_prior(labels)
    expected = dense(short_run(make).fit(labels, task_prior=prior).probas_)
    forms: dict[str, Any] = {"logarithms": np.log(prior), "lists": prior.tolist()}
    forms["multiples"] = 7.0 * prior
    forms["sparse"] = _sparse(prior)
    for name, form in forms.items():
        fitted = short_run(make).fit(labels, task_prior=form)
        assert_close(expected, fitted.probas_, "probas_", f"between probabilities and {name}")
    row = prior[0]
    one = short_run(make).fit(labels, task_prior=row)
    tiled = short_run(make).fit(labels, task_prior=np.tile(row, (labels.n_tasks, 1)))
    assert_close(one.probas_, tiled.probas_, "probas_", "between one row and equal rows")
    logs = short_run(make).fit(labels, task_prior=np.log(row))
    assert_close(one.probas_, logs.probas_, "probas_", "between a row and its logarithms")


def _sparse(prior: Floats) -> Any:
    from scipy.sparse import csr_array

    return csr_array(prior)


@check
def check_task_prior_counts(make: Make) -> None:
    """Require that a task prior shifts posteriors; a certain prior acts like gold."""
    labels = small_labels(make)
    plain = dense(short_run(make).fit(labels).probas_)
    favoured = np.full(labels.n_classes, 0.1)
    favoured[-1] = 0.9
    prior = np.full((labels.n_tasks, labels.n_classes), 1.0)
    prior[: len(prior) // 2] = favoured  # some of these are disputed
    moved = dense(short_run(make).fit(labels, task_prior=prior).probas_)
    neutral = dense(short_run(make).fit(labels, task_prior=np.ones_like(prior)).probas_)
    gain = (moved - neutral)[: len(prior) // 2, -1].mean()
    require(gain >= 0, f"a task prior moves the favoured class by {gain:.3g}")
    require(np.abs(moved - neutral).max() > 1e-6, "a task prior changes nothing")
    require(plain.shape == moved.shape, "a task prior changes the shape")
    certain = np.ones((labels.n_tasks, labels.n_classes))
    certain[0] = np.eye(labels.n_classes)[-1]
    fitted = short_run(make).fit(labels, task_prior=certain)
    require(dense(fitted.probas_)[0, -1] > 1 - 1e-9, "an impossible class has probability")


@check
def check_uniform_task_prior(make: Make) -> None:
    """Require that a uniform task prior is the same as a uniform class prior."""
    labels = small_labels(make)
    uniform = np.full(labels.n_classes, 1 / labels.n_classes)
    given = short_run(make).fit(labels, task_prior=uniform)
    if "class_prior" in given.get_params():
        method = short_run(make).set_params(class_prior="uniform")
    else:
        method = short_run(make)  # the method has no class prior, so a uniform one has no effect
    expected = method.fit(labels)
    assert_close(expected.probas_, given.probas_, "probas_", "under a uniform task prior")


@check
def check_bad_gold_and_priors(make: Make) -> None:
    """Require that gold for unknown tasks or classes and unusable task priors are refused."""
    labels = small_labels(make)
    n, k = labels.n_tasks, labels.n_classes
    hole = np.ones((n, k))
    hole[3, 0] = np.nan
    nothing = np.ones((n, k))
    nothing[2] = 0.0
    mixed = np.ones((n, k))
    mixed[1, 0] = -1.0
    cases: dict[str, dict[str, Any]] = {
        "gold for an unknown task": {"gold": {"no-such-task": labels.classes[0]}},
        "gold of an unknown class": {"gold": {labels.tasks[0]: "no-such-class"}},
        "a gold array of a wrong length": {"gold": [labels.classes[0]] * (n - 1)},
        "a task prior with too many classes": {"task_prior": np.ones(k + 1)},
        "a task prior with too few tasks": {"task_prior": np.ones((n - 1, k))},
        "a task prior with NaN": {"task_prior": hole},
        "a task prior with nothing possible": {"task_prior": nothing},
        "a task prior of mixed signs": {"task_prior": mixed},
        "an infinite task prior": {"task_prior": np.full(k, np.inf)},
    }
    for what, options in cases.items():
        _assert_refused(partial(make().fit, labels, **options), what)


def _assert_refused(attempt: Callable[[], object], what: str) -> None:
    try:
        attempt()
    except WisecrowdError as error:
        require(len(str(error)) >= 20, f"the refusal of {what} explains nothing")
        return
    raise AssertionError(f"{what} is accepted")


@check
def check_gold_teaches(make: Make) -> None:
    """Require that gold on most tasks does not make the other labels worse."""
    made = simulated(200, 6, n_classes_for(make), 4)
    known = dict(zip(range(150), made.truth[:150].tolist(), strict=True))
    rest = made.truth[150:]
    with_gold = np.mean(with_params(make).fit(made.labels, gold=known).labels_[150:] == rest)
    without = np.mean(with_params(make).fit(made.labels).labels_[150:] == rest)
    require(with_gold >= without - 0.04, f"gold lowers accuracy from {without} to {with_gold}")
