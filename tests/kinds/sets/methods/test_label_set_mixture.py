"""LabelSetMixture: special cases, prototypes, rules, and its own simulator."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import LabelSetMixture, SetVote, SharedTwoCoin
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.sets.checks import example as small_sets
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.methods.label_rules import LabelRules
from wisecrowd.kinds.sets.methods.set_mixture import SetMixture
from wisecrowd.kinds.sets.truth import SetPrior


@pytest.fixture(scope="module")
def crowd():
    return simulate.sets(300, 15, simulate.PerTask(3), sensitivity=0.7, false_alarm=0.18)


def exact(fitted, crowd):
    return np.mean(fitted.labels_ == crowd.truth)


def test_one_prototype_is_shared_two_coin():
    data = small_sets(None)
    one, other = LabelSetMixture(n_prototypes=1).fit(data), SharedTwoCoin().fit(data)
    assert np.array_equal(one.probas_, other.probas_)
    assert one.history_ == other.history_


def test_sure_prototypes_without_noise_are_the_nearest_ones():
    rng = np.random.default_rng(0)
    prototypes = np.array([[1, 1, 0, 0, 1], [0, 1, 1, 0, 0], [0, 0, 0, 1, 1]])
    sets = [np.flatnonzero(prototypes[t] ^ (rng.random(5) < 0.15)).tolist()
            for t in rng.integers(0, 3, 60)]  # fmt: skip
    names = list("abcde")
    data = CrowdSets.from_arrays(range(60), ["ann"] * 60, [[names[k] for k in one] for one in sets],
                                 classes=names)  # fmt: skip
    model = SetMixture(data, SetPrior(), LabelRules.none(5), 5.0)
    rates = np.stack([np.full((1, 5), 0.8), np.full((1, 5), 0.2)])
    certain = np.clip(prototypes, 1e-12, 1 - 1e-12)
    found = model.posterior(np.log(rates), np.log1p(-rates), certain, np.full(3, 1 / 3)).probas
    far = np.abs(data.votes[:, None] - prototypes[None]).sum(axis=2)
    clear = np.sort(far, axis=1)[:, 0] < np.sort(far, axis=1)[:, 1]
    assert clear.sum() > 40
    assert np.array_equal(found[clear] > 0.5, prototypes[far.argmin(axis=1)][clear] > 0)


def test_it_recovers_prototypes_and_more_exact_sets(crowd):
    fitted = LabelSetMixture().fit(crowd.data)
    assert len(fitted.prototypes_) >= 4
    for prototype in crowd.prototypes:  # one of those that are found is near
        assert np.abs(fitted.prototypes_ - prototype).mean(axis=1).min() < 0.12
    votes, alone = (exact(make().fit(crowd.data), crowd) for make in (SetVote, SharedTwoCoin))
    assert exact(fitted, crowd) > max(votes, alone) + 0.1


def test_independent_classes_need_one_prototype():
    alone = simulate.sets(200, 10, n_prototypes=1, purity=0.5, density=1.0)
    assert len(LabelSetMixture().fit(alone.data).prototypes_) == 1


def test_the_answers_obey_the_rules():
    data = small_sets(None)
    rules = {"exclusive": [["class-000", "class-002"]], "implies": {"class-001": "class-000"}}
    for threshold in (0.5, 0.1, "cardinality"):
        fitted = LabelSetMixture(n_prototypes=2, threshold=threshold, **rules).fit(data)
        a, b, c, _ = fitted.members_.T
        assert not (a & c).any()
        assert not (b & ~a).any()
        assert (fitted.probas_[:, 1] <= fitted.probas_[:, 0] + 1e-12).all()
        assert (fitted.probas_[:, 0] + fitted.probas_[:, 2] <= 1 + 1e-9).all()
    history = np.array(fitted.history_)
    assert (np.diff(history) >= -1e-9 * abs(history[-1])).all()
    plain = SharedTwoCoin().fit(data).members_
    assert (plain[:, 1] & ~plain[:, 0]).any() or (plain[:, 0] & plain[:, 2]).any()


def test_integer_weights_are_repetitions_with_rules_and_prototypes():
    data = small_sets(None)
    task, worker, label = (data.to_dict()[name] for name in ("task", "worker", "label"))
    times = np.random.default_rng(0).integers(1, 4, len(task))
    classes = data.classes.tolist()
    weighted = CrowdSets.from_arrays(task, worker, label, weight=times, classes=classes)
    repeated = CrowdSets.from_arrays(
        *(np.repeat(one, times) for one in (task, worker, label)), duplicates="keep",
        classes=classes,
    )  # fmt: skip
    make = {"n_prototypes": 2, "exclusive": [classes[:2]], "max_iter": 8, "tol": 0.0}
    one, other = (LabelSetMixture(**make).fit(data).probas_ for data in (weighted, repeated))
    assert one == pytest.approx(other, abs=1e-9)


def test_gold_and_priors_that_do_not_fit_are_refused():
    data = small_sets(None)
    model = LabelSetMixture(exclusive=[["class-000", "class-001"]])
    with pytest.raises(DataError, match="which the rules"):
        model.fit(data, gold={data.tasks[0]: "class-000|class-001"})
    with pytest.raises(ParameterError, match="takes no task prior"):
        model.fit(data, task_prior=np.full(4, 0.5))
    for params in ({"exclusive": ["ab"]}, {"implies": [["a", "b"]]}, {"n_prototypes": 0}):
        with pytest.raises(ParameterError):
            LabelSetMixture(**params).fit(data)
