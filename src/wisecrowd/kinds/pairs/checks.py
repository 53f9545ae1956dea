"""Checks of methods that take pairs: symmetric, finite and humble on any votes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.simulate import VoteWorkers, votes
from wisecrowd.testing.foundation import (
    Check,
    Make,
    assert_close,
    check,
    fit_or_refusal,
    require,
    text_ids,
    with_params,
)
from wisecrowd.testing.kind_checks import check_objective_monotone

CLOSE = 1e-6  # of fits that converged, from different ways there


# ----------------------------------------------------------------------------------------- example


def example(make: Make, seed: int = 0) -> CrowdPairs:
    """Return 240 votes with ties on 9 items by 7 workers, with text ids."""
    rng = np.random.default_rng(seed)
    score = rng.normal(0, 1, 9)
    left = rng.integers(0, 9, 240)
    right = (left + rng.integers(1, 9, 240)) % 9
    worker = rng.integers(0, 7, 240)
    gap = score[left] - score[right] + rng.logistic(size=240)
    gap = np.where(worker == 6, rng.logistic(size=240), gap)
    outcome = np.where(np.abs(gap) < 0.3, 2, np.where(gap > 0, 0, 1))
    items = np.array([f"item-{a:03d}" for a in range(9)], dtype=object)
    task, workers = text_ids(np.arange(240) % 60, worker)
    timed = getattr(make(), "needs_timestamps", False)
    options = {"timestamp": rng.permutation(240).astype(np.float64)} if timed else {}
    return CrowdPairs.from_arrays(task, workers, items[left], items[right], outcome, **options)


def _same_scores(learned: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("scores_", "low_", "high_", "rank_", "component_", "worker_accuracy_")
    return {name: learned[name] for name in kept if name in learned}


def reverse_items(data: CrowdPairs) -> CrowdPairs:
    """Return the votes with the items in reverse order."""
    last = np.int32(data.n_items - 1)
    return replace(data, left=last - data.left, right=last - data.right)


def items_reversed(learned: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is expected then."""
    names = ("scores_", "low_", "high_", "rank_low_", "rank_high_", "p_best_")
    found = {name: learned[name][::-1] for name in names}
    kept = ("worker_accuracy_", "discrimination_")
    return found | {name: learned[name] for name in kept if name in learned}


SYMMETRIES = (
    Symmetry(name="swapping sides", change=CrowdPairs.mirrored, expected=_same_scores),
    Symmetry(name="reversing the items", change=reverse_items, expected=items_reversed),
)


# ------------------------------------------------------------------------------------------ checks


def _pairs(left: Any, right: Any, outcome: Any, worker: Any = None, **options: Any) -> CrowdPairs:
    if options.pop("timed", True):
        options["timestamp"] = np.arange(len(left)).astype(float)
    return CrowdPairs.from_arrays(None, worker, left, right, outcome, **options)


def assert_sound_items(fitted: Aggregator, data: CrowdPairs, when: str) -> None:
    """Require finite scores, ordered intervals and ranges of ranks, and probabilities."""
    n = data.n_items
    for name in ("scores_", "low_", "high_", "p_best_"):
        values = getattr(fitted, name)
        require(values.shape == (n,) and np.isfinite(values).all(), f"{name} is {values} {when}")
    require((fitted.low_ <= fitted.scores_ + 1e-9).all(), f"low_ is above the score {when}")
    require((fitted.scores_ <= fitted.high_ + 1e-9).all(), f"high_ is below the score {when}")
    inside = (fitted.rank_low_ <= fitted.rank_) & (fitted.rank_ <= fitted.rank_high_)
    require(inside.all(), f"rank_ is outside of its range {when}")
    require((fitted.rank_low_ >= 1).all() and (fitted.rank_high_ <= n).all(), f"ranks {when}")
    require(abs(float(fitted.p_best_.sum()) - 1) <= 1e-9, f"p_best_ does not sum to one {when}")
    require(bool(fitted.tied_with_best_[np.argmax(fitted.scores_)]), f"the best item {when}")
    compared = data.comparisons_per_item > 0
    if data.weight is None:
        mean = float(fitted.scores_[compared].mean())
        require(abs(mean) <= 1e-8, f"the mean score is {mean} {when}")
    probas = fitted.predict_proba(data)
    require(probas.shape == (data.n_annotations, 3), f"predict_proba is {probas.shape} {when}")
    require(np.isfinite(probas).all() and (probas >= 0).all(), f"predict_proba {when}")
    require(np.allclose(probas.sum(axis=1), 1, atol=1e-9), f"predict_proba's rows {when}")


@check
def check_items_sound(make: Make) -> None:
    """Require sound results on small crowds."""
    for seed in range(3):
        data = example(make, seed)
        assert_sound_items(make().fit(data), data, "on a small crowd")


@check
def check_unanimous_votes(make: Make) -> None:
    """Require finite scores in the right order if the same item wins every time."""
    data = _pairs(["x"] * 6 + ["y"] * 3, ["y"] * 3 + ["z"] * 6, ["left"] * 9, list("abcabcabc"))
    fitted = make().fit(data)
    assert_sound_items(fitted, data, "when votes are unanimous")
    require(fitted.rank_.tolist() == [1, 2, 3], f"the ranks are {fitted.rank_}")


@check
def check_one_vote(make: Make) -> None:
    """Require a humble answer to a single vote, and to a single tie."""
    for outcome in ("left", "right", "tie"):
        data = _pairs(["x"], ["y"], [outcome])
        fitted = make().fit(data)
        assert_sound_items(fitted, data, f"on a single {outcome}")
        gap = float(fitted.scores_[0] - fitted.scores_[1])
        expected = {"left": 1, "right": -1, "tie": 0}[outcome]
        require(np.sign(round(gap, 6)) == expected, f"the gap after one {outcome} is {gap}")
        require((fitted.low_ < 0).all() and (fitted.high_ > 0).all(), "one vote looks certain")


@check
def check_all_ties(make: Make) -> None:
    """Require equal scores if every vote is a tie."""
    data = _pairs(["x", "x", "y"] * 3, ["y", "z", "z"] * 3, ["tie"] * 9, list("aaabbbccc"))
    fitted = make().fit(data)
    assert_sound_items(fitted, data, "when all votes are ties")
    require(np.abs(fitted.scores_).max() <= 1e-6, f"scores are {fitted.scores_}")
    require(fitted.rank_.tolist() == [1, 1, 1], f"the ranks are {fitted.rank_}")


@check
def check_uncompared_item(make: Make) -> None:
    """Require that an item without votes changes no other score and has a wide interval."""
    data = example(make)
    wider = replace(data, items=np.append(data.items, ["unseen"]).astype(object))
    plain, fitted = make().fit(data), make().fit(wider)
    assert_sound_items(fitted, wider, "with an item without votes")
    assert_close(plain.scores_, fitted.scores_[:-1], "scores_", "with another item", CLOSE)
    require(abs(float(fitted.scores_[-1])) <= 1e-9, "an item without votes has a score")
    width = fitted.high_ - fitted.low_
    require(width[-1] >= width[:-1].max() - 1e-9, "an item without votes looks certain")
    require(fitted.component_[-1] == fitted.component_.max() > 0, "its component is not its own")


@check
def check_unused_worker(make: Make) -> None:
    """Require that a worker without votes changes no score."""
    data = example(make)
    wider = replace(data, workers=np.append(data.workers, ["nobody-else"]).astype(object))
    plain, fitted = make().fit(data), make().fit(wider)
    assert_close(plain.scores_, fitted.scores_, "scores_", "with another worker", CLOSE)


@check
def check_separate_parts(make: Make) -> None:
    """Require that items which nobody compared with each other are flagged."""
    data = _pairs(list("aabb") + ["p"] * 3, list("bccc") + ["q"] * 3, ["left"] * 7, list("uvwuvwu"))
    fitted = make().fit(data)
    assert_sound_items(fitted, data, "on separate parts")
    require(fitted.component_.tolist() == [0, 0, 0, 1, 1], f"components {fitted.component_}")
    found = [finding.id for finding in fitted.findings_]
    require("separate-parts" in found, f"separate parts are not reported, only {found}")


@check
def check_lonely_item(make: Make) -> None:
    """Require an item that a single worker compared twice to have a wide interval."""
    rng = np.random.default_rng(0)
    left = rng.integers(0, 4, 300)
    right = (left + rng.integers(1, 4, 300)) % 4
    score = np.array([1.0, 0.3, -0.3, -1.0])
    better = rng.random(300) < 1 / (1 + np.exp(score[right] - score[left]))
    outcome = np.where(better, "left", "right")
    left, right = np.append(left, [4, 4]), np.append(right, [0, 1])
    worker = np.append(rng.integers(0, 20, 300), [3, 3])
    data = _pairs(left, right, np.append(outcome, ["left", "left"]), worker)
    fitted = make().fit(data)
    assert_sound_items(fitted, data, "with an item of one worker")
    width = fitted.high_ - fitted.low_
    # The median, because models of workers are unsure of the scale, which widens extreme items.
    usual = float(np.median(width[:4]))
    require(width[4] >= 1.5 * usual, f"two votes look certain: widths {width}")


@check
def check_zero_weight_votes(make: Make) -> None:
    """Require that votes of weight zero do not count, and that some weight is needed."""
    data = example(make)
    weight = np.ones(data.n_annotations)
    weight[::3] = 0
    ignored = make().fit(replace(data, weight=weight))
    dropped = make().fit(data.select_annotations(weight > 0))
    assert_close(ignored.scores_, dropped.scores_, "scores_", "between weight 0 and no vote", CLOSE)
    empty = fit_or_refusal(make(), replace(data, weight=np.zeros(data.n_annotations)))
    require(empty is None, "votes without weight are not refused")


@check
def check_recovers_scores(make: Make) -> None:
    """Require the order of the true scores from many votes, and intervals that mostly cover."""
    workers = VoteWorkers(tie_level=-0.5)
    made = votes(12, 40, 6000, workers, random_state=1)
    times = np.random.default_rng(0).permutation(made.pairs.n_annotations).astype(float)
    data = replace(made.pairs, columns={"timestamp": times})
    fitted = make().fit(data)
    tau = fitted.score(data, made.truth)
    # The last votes weigh most in an online method, so that it orders close items by chance.
    least = 0.7 if getattr(fitted, "needs_timestamps", False) else 0.85
    require(tau >= least, f"Kendall's tau with the true scores is {tau:.2f}")
    require(np.isfinite(fitted.score(data)), "the log-likelihood is not finite")
    require(fitted.score(data) > np.log(1 / 3), "votes are predicted worse than by chance")


@check
def check_predict_votes(make: Make) -> None:
    """Require predictions for new votes, also by unknown workers, and refusal of unknown items."""
    data = example(make)
    fitted = make().fit(data)
    a, b = data.items[:2].tolist()
    new = (["someone-new"] * 2, [a, b], [b, a], ["left", "left"])
    probas = fitted.predict_proba(new)
    require(probas.shape == (2, 3) and np.isfinite(probas).all(), "unknown workers")
    words = set(fitted.predict(new).tolist())
    require(words <= {"left", "right", "tie"}, f"predict returns {words}")
    try:
        fitted.predict_proba((["w"], [a], ["no-such-item"], ["left"]))
    except DataError:
        pass
    else:
        raise AssertionError("an unknown item is not refused")
    for options in ({"gold": {a: 1.0}}, {"task_prior": (0.0, 1.0)}):
        try:
            make().fit(data, **options)
        except ParameterError:
            continue
        raise AssertionError(f"{next(iter(options))} is not refused")


@check
def check_item_table(make: Make) -> None:
    """Require the wide table of items: one row per item, with Elo points and P(best)."""
    data = example(make)
    fitted = make().fit(data)
    table = fitted.item_table("pyarrow")
    require(table["item"].to_pylist() == data.items.tolist(), "the items of item_table")
    elo = np.array(table["elo"].to_pylist())
    slope = np.polyfit(fitted.scores_, elo, 1)[0]
    require(abs(slope - 400 / np.log(10)) <= 1e-6, f"a unit is {slope} Elo points")
    names = {"score", "low", "high", "rank", "rank_low", "rank_high", "p_best", "component"}
    require(names <= set(table.column_names), f"item_table has {table.column_names}")


@check
def check_cluster_choice(make: Make) -> None:
    """Require all clusters to work where a method has them, and few workers to be reported."""
    if "cluster" not in make().get_params():
        return
    data = example(make)
    widths = {}
    for cluster in ("votes", "workers", "tasks"):
        fitted = with_params(make, cluster=cluster).fit(data)
        assert_sound_items(fitted, data, f"with clusters of {cluster}")
        widths[cluster] = float((fitted.high_ - fitted.low_).mean())
    require(widths["workers"] >= widths["votes"] - 1e-9, f"widths are {widths}")
    found = [finding.id for finding in make().fit(data).findings_]
    require("few-workers" in found, "seven workers are not reported as few")


CHECKS: tuple[Check, ...] = (
    check_items_sound,
    check_objective_monotone,
    check_unanimous_votes,
    check_one_vote,
    check_all_ties,
    check_uncompared_item,
    check_unused_worker,
    check_separate_parts,
    check_lonely_item,
    check_zero_weight_votes,
    check_recovers_scores,
    check_predict_votes,
    check_item_table,
    check_cluster_choice,
)
