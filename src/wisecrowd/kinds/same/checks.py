"""Checks of methods that take votes on sameness: symmetric, finite and humble on any votes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.pairs.checks import reverse_items
from wisecrowd.kinds.same.container import CrowdSame
from wisecrowd.testing.foundation import (
    Check,
    Make,
    assert_close,
    check,
    fit_or_refusal,
    require,
    text_ids,
    with_both_kernels,
)
from wisecrowd.testing.kind_checks import check_objective_monotone

CLOSE = 1e-5  # of fits that converged, from different ways there
MOST_CERTAIN = 0.97  # of one vote


# ----------------------------------------------------------------------------------------- example


def example(make: Make, seed: int = 0) -> CrowdSame:
    """Return 150 votes on the sameness of 11 items in 3 clusters by 7 workers, with text ids."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat([0, 1, 2], [5, 4, 2])
    left = rng.integers(0, 11, 150)
    right = (left + rng.integers(1, 11, 150)) % 11
    worker = rng.integers(0, 7, 150)
    right_answer = rng.random(150) < np.linspace(0.75, 0.97, 7)[worker]
    same = (cluster[left] == cluster[right]) == right_answer
    items = np.array([f"item-{a:03d}" for a in range(11)], dtype=object)
    answers = np.array(["different", "same"], dtype=object)
    task, workers = text_ids(np.arange(150) % 60, worker)
    return CrowdSame.from_arrays(
        task, workers, items[left], items[right], answers[same.astype(np.int64)]
    )


def _same_clusters(learned: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("item_probas_", "same_rate_", "different_rate_", "p_same_", "worker_accuracy_")
    return {name: learned[name] for name in kept}


def _clusters_reversed(learned: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("same_rate_", "different_rate_", "p_same_", "worker_accuracy_")
    found = {name: learned[name] for name in kept}
    return found | {"item_probas_": learned["item_probas_"][::-1]}


SYMMETRIES = (
    Symmetry(name="swapping sides", change=CrowdSame.mirrored, expected=_same_clusters),
    Symmetry(name="reversing the items", change=reverse_items, expected=_clusters_reversed),
)


# ------------------------------------------------------------------------------------------ checks


def _votes(left: Any, right: Any, answer: Any, worker: Any = None, **options: Any) -> CrowdSame:
    return CrowdSame.from_arrays(None, worker, left, right, answer, **options)


def assert_sound_clusters(fitted: Aggregator, data: CrowdSame, when: str) -> None:
    """Require clusters with probabilities for all items, and probabilities of votes."""
    q = fitted.item_probas_
    require(len(q) == data.n_items and np.isfinite(q).all(), f"item_probas_ is {q} {when}")
    require(np.allclose(q.sum(axis=1), 1, atol=1e-9), f"item_probas_ does not sum to one {when}")
    require(bool((fitted.probability_ >= q.max(axis=1) - 1e-9).all()), f"probability_ {when}")
    for name in ("same_rate_", "different_rate_", "worker_accuracy_", "p_same_"):
        values = getattr(fitted, name)
        require(bool(((values >= 0) & (values <= 1)).all()), f"{name} is {values} {when}")
    probas = fitted.predict_proba(data)
    require(probas.shape == (data.n_annotations, 2), f"predict_proba is {probas.shape} {when}")
    require(np.allclose(probas.sum(axis=1), 1, atol=1e-9), f"predict_proba's rows {when}")


@check
def check_clusters_sound(make: Make) -> None:
    """Require sound results on small crowds, and the largest cluster first."""
    for seed in range(3):
        data = example(make, seed)
        fitted = make().fit(data)
        assert_sound_clusters(fitted, data, "on a small crowd")
        share = fitted.cluster_share_
        require(bool((np.diff(share) <= 1e-9).all()), f"cluster_share_ is {share}")


@check
def check_recovers_clusters(make: Make) -> None:
    """Require the true clusters from many good votes."""
    rng = np.random.default_rng(0)
    truth = np.arange(12) % 3
    left = rng.integers(0, 12, 400)
    right = (left + rng.integers(1, 12, 400)) % 12
    same = (truth[left] == truth[right]) == (rng.random(400) < 0.9)
    data = _votes(left, right, same.astype(int), rng.integers(0, 5, 400))
    fitted = make().fit(data)
    score = fitted.score(data, dict(enumerate(truth.tolist())))
    require(score == 1.0, f"{score:.2f} of the items are in the right cluster")
    require(fitted.score(data) > np.log(0.5), "votes are predicted worse than by chance")


@check
def check_few_votes(make: Make) -> None:
    """Require finite, humble answers to one vote, and to votes that all agree."""
    for answer in ("same", "different"):
        data = _votes(["x"], ["y"], [answer])
        fitted = make().fit(data)
        assert_sound_clusters(fitted, data, f"on a single {answer}")
        together = float(fitted.p_same_[0])
        require(1 - MOST_CERTAIN <= together <= MOST_CERTAIN, f"one {answer} gives {together}")
        many = _votes(list("aabc"), list("bccd"), [answer] * 4, list("uvuv"))
        assert_sound_clusters(make().fit(many), many, f"if all votes are {answer}")


@check
def check_unused_item(make: Make) -> None:
    """Require that an item or a worker without votes changes nothing."""
    data = example(make)
    wider = replace(
        data,
        items=np.append(data.items, ["unseen"]).astype(object),
        workers=np.append(data.workers, ["nobody-else"]).astype(object),
    )
    plain, fitted = make().fit(data), make().fit(wider)
    assert_close(plain.item_probas_, fitted.item_probas_[:-1], "item_probas_", "unused item", CLOSE)
    require(np.allclose(fitted.item_probas_[-1], fitted.cluster_share_), "an item without votes")
    assert_close(plain.same_rate_, fitted.same_rate_[:-1], "same_rate_", "unused worker", CLOSE)


@check
def check_zero_weight_votes(make: Make) -> None:
    """Require that votes of weight zero do not count, and that some weight is needed."""
    data = example(make)
    weight = np.ones(data.n_annotations)
    weight[::3] = 0
    ignored = make().fit(replace(data, weight=weight))
    dropped = make().fit(data.select_annotations(weight > 0))
    assert_close(ignored.item_probas_, dropped.item_probas_, "item_probas_", "weight 0", CLOSE)
    empty = fit_or_refusal(make(), replace(data, weight=np.zeros(data.n_annotations)))
    require(empty is None, "votes without weight are not refused")


@check
def check_separate_parts(make: Make) -> None:
    """Require that items which nobody compared with each other are reported."""
    data = _votes(list("aab") * 3 + ["p"] * 3, list("bcc") * 3 + ["q"] * 3, ["same"] * 12)
    fitted = make().fit(data)
    assert_sound_clusters(fitted, data, "on separate parts")
    found = [finding.id for finding in fitted.findings_]
    require("separate-parts" in found, f"separate parts are not reported, only {found}")


@check
def check_predict_votes(make: Make) -> None:
    """Require predictions for new votes, also by unknown workers, and refusal of unknown items."""
    data = example(make)
    fitted = make().fit(data)
    a, b = data.items[:2].tolist()
    new = (["someone-new"], [a], [b], ["same"])
    require(set(fitted.predict(new).tolist()) <= {"same", "different"}, "predict")
    require(np.isfinite(fitted.predict_proba(new)).all(), "unknown workers")
    try:
        fitted.predict_proba((["w"], [a], ["no-such-item"], ["same"]))
    except DataError:
        pass
    else:
        raise AssertionError("an unknown item is not refused")
    for options in ({"gold": {a: 1}}, {"task_prior": (0.0, 1.0)}):
        refused = fit_or_refusal(make(), data, **options) is None
        require(refused, f"{next(iter(options))} is not refused")


@check
def check_kernels_agree(make: Make) -> None:
    """Require that compiled and reference kernels give the same results."""
    data = example(make)
    plain, fast = with_both_kernels(make, data)
    assert_close(plain.item_probas_, fast.item_probas_, "item_probas_", "between kernels", CLOSE)


CHECKS: tuple[Check, ...] = (
    check_clusters_sound,
    check_objective_monotone,
    check_recovers_clusters,
    check_few_votes,
    check_unused_item,
    check_zero_weight_votes,
    check_separate_parts,
    check_predict_votes,
    check_kernels_agree,
)
