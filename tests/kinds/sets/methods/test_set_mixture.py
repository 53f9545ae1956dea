"""Probabilities of sets: three quarters model and one quarter votes, one task at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import betaln, gamma

from wisecrowd import simulate
from wisecrowd.aggregation import LabelSetMixture, SharedTwoCoin
from wisecrowd.kinds.sets.checks import example as small_sets
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.methods.label_rules import LabelRules
from wisecrowd.kinds.sets.methods.set_mixture import SetMixture, humbled
from wisecrowd.kinds.sets.truth import SetPrior

NOBODY = "ghost"  # a task with a set of weight zero


def mixed(p, v, n, usual=0.5):
    """The formula for one task and class."""
    if n == 0:
        return p
    odds = np.log(p / (1 - p)) / (1 + 0.3 * (n - 1))
    model = 1 / (1 + np.exp(-odds))
    share = 0.5 if n == 1 else 0.25
    found = (1 - share) * model + share * (v + 2 * usual) / (n + 2)
    return max(found, 0.5) if p >= 0.5 else min(found, 0.5)


@pytest.fixture
def data():
    rows = [("s", "a", ["x"]), ("t", "a", ["x"]), ("t", "b", ["x", "y"]), ("t", "c", []),
            ("u", "a", ["y"]), ("u", "b", ["y"]), ("u", "c", ["y"]), ("u", "d", ["y"]),
            (NOBODY, "a", ["x"])]  # fmt: skip
    weight = [float(task != NOBODY) for task, *_ in rows]
    return CrowdSets.from_arrays(*zip(*rows, strict=True), weight=weight)


@pytest.mark.parametrize("usual", [0.5, 0.1])
def test_the_mixture_of_model_and_votes_by_hand(data, usual):
    probas = np.random.default_rng(0).uniform(0.02, 0.98, (data.n_tasks, 2))
    found = humbled(probas, data, LabelRules.none(2), usual=usual)
    votes = {"s": (1, 0), "t": (2, 1), "u": (0, 4), NOBODY: (0, 0)}
    number = {"s": 1, "t": 3, "u": 4, NOBODY: 0}
    for i, task in enumerate(data.tasks.tolist()):
        expected = [mixed(probas[i, k], votes[task][k], number[task], usual) for k in (0, 1)]
        assert found[i] == pytest.approx(expected, abs=2e-6)


def test_votes_never_change_an_answer_and_known_tasks_stay(data):
    assert data.tasks.tolist() == [NOBODY, "s", "t", "u"]
    probas = np.array([[0.2, 0.8], [0.51, 0.49], [0.49, 0.51], [0.51, 0.49]])
    known = np.array([True, False, False, False])
    found = humbled(probas, data, LabelRules.none(2), known)
    assert np.array_equal(found >= 0.5, probas >= 0.5)
    assert found[0].tolist() == [0.2, 0.8]
    assert found[3] == pytest.approx([0.5, 0.5], abs=2e-6)  # no vote for x and four for y


def test_the_mixture_obeys_the_rules():
    """Workers who leave out an implied class do not lower the class that implies it."""
    rows = [("t", w, ["cat"]) for w in "abcd"] + [("u", w, ["car", "bus"]) for w in "abc"]
    data = CrowdSets.from_arrays(*zip(*rows, strict=True), classes=["cat", "pet", "car", "bus"])
    rules = LabelRules.of(data.classes, [["car", "bus"]], {"cat": "pet"})
    found = humbled(np.full((2, 4), 0.5), data, rules)
    assert (found[:, 0] <= found[:, 1]).all()
    assert found[0, 0] > 0.55
    assert (found[:, 2] + found[:, 3] <= 1 + 1e-12).all()


def test_an_integer_weight_is_a_repetition_of_the_set():
    rows = [("t", "a", ["x"]), ("t", "b", [])]
    once = CrowdSets.from_arrays(*zip(*rows, strict=True), weight=[2, 1], classes=["x"])
    twice = CrowdSets.from_arrays(
        *zip(*rows, rows[0], strict=True), classes=["x"], duplicates="keep"
    )
    one, other = (humbled(np.array([[0.7]]), data, LabelRules.none(1)) for data in (once, twice))
    assert one == pytest.approx(other)


@pytest.mark.parametrize("make", [SharedTwoCoin, LabelSetMixture])
def test_a_single_set_of_a_task_gives_no_certainty(make):
    rows = [(i, "xyz"[i % 3], ["a"] if i % 2 else ["a", "b"]) for i in range(30)]
    probas = make().fit(CrowdSets.from_arrays(*zip(*rows, strict=True))).probas_
    assert probas.max() <= 0.5 + 0.5 * 2 / 3
    assert probas.min() >= 0.5 * 1 / 3


def test_the_number_of_prototypes_is_the_first_top_of_the_bound():
    data = simulate.sets(60, 12, simulate.PerTask(4), random_state=1).data
    fitted = LabelSetMixture().fit(data)
    model = SetMixture(data, SetPrior(), LabelRules.none(data.n_classes), 5.0)
    numbers = (1, 2, 4, 8)
    bounds = [model.integrated_bound(model.run(n, 200, 1e-4)) for n in numbers]
    top = next(k for k in range(3) if bounds[k + 1] <= bounds[k])
    assert len(fitted.prototypes_) == numbers[top] > 1


def test_the_bound_with_one_prototype_has_beta_evidence_of_each_class():
    """One prototype: the weight is certain, and each class has n of N tasks."""
    data = small_sets(None)
    model = SetMixture(data, SetPrior(), LabelRules.none(data.n_classes), 5.0)
    run = model.run(1, 300, 1e-12)
    n, size, best = run.probas.sum(axis=0), len(run.probas), run.params.prototypes[0]
    yes, no = 0.5 * model.pseudo, 0.5 * (1 - model.pseudo)
    expected = run.history[-1]
    for k in range(data.n_classes):
        expected += betaln(n[k] + yes[k], size - n[k] + no[k]) - betaln(yes[k], no[k])
        expected -= (n[k] + yes[k]) * np.log(best[k])
        expected -= (size - n[k] + no[k]) * np.log1p(-best[k])
    assert model.integrated_bound(run) == pytest.approx(expected, abs=1e-6)


def test_the_bound_of_a_group_and_a_child_is_an_integral():
    """Two exclusive classes by quadrature on the triangle, and one that implies the first."""
    rules = LabelRules.of(np.array(["a", "b", "c"]), [["a", "b"]], {"c": "a"})
    counts, total, strength = np.array([3.0, 2.0, 1.5]), 7.0, 6.0
    pseudo, chance = np.array([0.3, 0.25, 0.4]), np.array([0.4, 0.3, 0.5])

    def density(b, a):
        near = strength * np.array([0.3, 0.25, 0.45])
        prior = gamma(strength) / gamma(near).prod()
        return prior * np.prod(np.array([a, b, 1 - a - b]) ** (near - 1 + [3, 2, 2]))

    group = np.log(dblquad(density, 0, 1, 0, lambda a: 1 - a)[0])
    yes, no = strength * 0.4, strength * 0.6
    child = betaln(1.5 + yes, 1.5 + no) - betaln(yes, no)
    point = 3 * np.log(0.4) + 2 * np.log(0.3) + 2 * np.log(0.3) + 3 * np.log(0.5)
    point += strength * (0.3 * np.log(0.4) + 0.25 * np.log(0.3) + 0.45 * np.log(0.3) + np.log(0.5))
    found = rules.integration_gain(counts, total, chance, pseudo, strength)
    assert found == pytest.approx(group + child - point, abs=1e-6)
