"""RankOne: exact recovery, sparse crowds, sign, class prior, real crowds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from wisecrowd.core.exceptions import ParameterError, WisecrowdWarning
from wisecrowd.inference.engine import in_memory
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import naive_bayes
from wisecrowd.kinds.classes.families.moments.pair_moments import PairMoments, population_moments
from wisecrowd.kinds.classes.methods.majority_vote import MajorityVote
from wisecrowd.kinds.classes.methods.one_coin import coin_confusion
from wisecrowd.kinds.classes.methods.rank_one import (
    RankOne,
    beyond_chance,
    beyond_own,
    coin_class_prior,
    rank_one_fit,
)
from wisecrowd.kinds.classes.prior import TaskPrior
from wisecrowd.simulate import (
    Bernoulli,
    FixedConfusion,
    HammerSpammers,
    OneCoinWorkers,
    PerTask,
    Regular,
    crowd,
)

ACCURACY = np.array([0.9, 0.75, 0.6, 0.5, 0.85, 0.4, 0.55])


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_exact_agreement_gives_exact_skills_and_class_prior(n_classes):
    prior = np.arange(1.0, n_classes + 1)
    prior /= prior.sum()
    pairs = population_moments(coin_confusion(ACCURACY, n_classes), prior)
    skill = (n_classes * ACCURACY - 1) / (n_classes - 1)
    products = skill[pairs.first] * skill[pairs.second]
    np.testing.assert_allclose(beyond_chance(pairs), products, atol=1e-12)
    low = -1 / (n_classes - 1)
    start = np.full(len(skill), 0.5)
    fit = rank_one_fit(pairs, beyond_chance(pairs), start, (low, 1), max_iter=2000, tol=1e-12)
    np.testing.assert_allclose(fit.factor, skill, atol=1e-6)
    labels = CrowdLabels.from_matrix([[0, 1], [1, 1]])
    weight = np.full(len(skill), 30.0)
    found, scale = coin_class_prior(labels, pairs.marginals, skill, weight, "agreement")
    np.testing.assert_allclose(found, prior, atol=1e-12)
    assert scale == 1.0
    size = np.sqrt(1 - prior @ prior)
    fit = rank_one_fit(pairs, beyond_own(pairs), start, (low, 1), max_iter=2000, tol=1e-12)
    np.testing.assert_allclose(fit.factor, size * skill, atol=1e-6)
    found, scale = coin_class_prior(labels, pairs.marginals, size * skill, weight, "covariance")
    np.testing.assert_allclose(found, prior, atol=1e-12)
    assert scale == pytest.approx(size)


@pytest.mark.parametrize("statistic", ["covariance", "agreement"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_skills_of_a_sparse_crowd_are_found(n_classes, statistic):
    prior = np.linspace(1, 2, n_classes)
    made = crowd(6000, 30 * OneCoinWorkers(4, 2), PerTask(4), class_prior=prior / prior.sum(),
                 random_state=0)  # fmt: skip
    model = RankOne(statistic=statistic).fit(made.labels)
    assert model.converged_
    assert np.abs(model.worker_accuracy_ - made.worker_accuracy).mean() < 0.03
    np.testing.assert_allclose(model.class_prior_, prior / prior.sum(), atol=0.04)
    rows = model.confusion_[:, 0, 1:]
    np.testing.assert_allclose(rows, rows[:, :1] @ np.ones((1, n_classes - 1)), atol=1e-12)
    assert np.diff(model.history_).max() <= 0


def test_no_worse_than_the_vote_on_regular_graphs_of_hammers_and_spammers():
    for seed in range(3):
        made = crowd(500, 100 * HammerSpammers(0.4), Regular(5, 25), class_prior=[0.5, 0.5],
                     random_state=seed)  # fmt: skip
        ours = np.mean(RankOne().fit(made.labels).labels_ == made.truth)
        vote = np.mean(MajorityVote().fit(made.labels).labels_ == made.truth)
        assert ours >= vote


def test_spammers_who_favour_one_label_do_not_pass_for_skilled():
    confusion = np.empty((15, 3, 3))
    confusion[:6] = coin_confusion(np.full(6, 0.7), 3)
    confusion[6:] = [0.05, 0.05, 0.9]
    made = crowd(2000, 15 * FixedConfusion(confusion), Bernoulli(0.5), class_prior=[0.4, 0.3, 0.3],
                 random_state=0)  # fmt: skip
    model = RankOne().fit(made.labels)
    assert model.skill_[:6].min() > model.skill_[6:].max() + 0.3
    nothing = TaskPrior(np.zeros((1, 3)))
    best = naive_bayes(in_memory(made.labels, nothing), made.confusion, np.array([0.4, 0.3, 0.3]))
    reachable = np.mean(best.argmax(axis=1) == made.truth_codes)
    assert model.score(made.labels, made.truth) > reachable - 0.02
    paper = RankOne(statistic="agreement").fit(made.labels)
    assert paper.score(made.labels, made.truth) < 0.5


def test_of_two_mirror_images_the_one_that_agrees_with_the_vote_is_taken():
    made = crowd(500, 9 * OneCoinWorkers(6, 2), class_prior=[0.5, 0.5], random_state=2)
    start = np.eye(2)[1 - made.truth_codes]  # everything is the other way round
    model = RankOne().fit(made.labels, init=start)
    assert model.score(made.labels, made.truth) > 0.9
    assert (model.skill_ > 0).mean() > 0.5


def test_a_worker_who_meets_nobody_has_the_mean_skill():
    made = crowd(200, 5 * OneCoinWorkers(6, 2), class_prior=[0.5, 0.5], random_state=1)
    labels = made.labels
    more = CrowdLabels.from_arrays(
        np.append(labels.task, [1000, 1001]),
        np.append(labels.worker, [9, 9]),
        np.append(labels.label, [0, 1]),
    )
    with pytest.warns(WisecrowdWarning, match="1 of 6 workers"):
        model = RankOne().fit(more)
    assert model.identified_.tolist() == [True] * 5 + [False]
    mean = float(np.average(model.skill_[:5], weights=labels.labels_per_worker))
    assert model.skill_[5] == pytest.approx(mean)
    assert model.labels_[-2:].tolist() == [0, 1]


def test_gold_counts_as_a_worker_but_is_none():
    made = crowd(300, 6 * OneCoinWorkers(4, 2), class_prior=[0.6, 0.4], random_state=4)
    gold = dict(zip(range(200), made.truth[:200].tolist(), strict=True))
    model = RankOne().fit(made.labels, gold=gold)
    assert model.skill_.shape == model.identified_.shape == (6,)
    assert np.abs(model.worker_accuracy_ - made.worker_accuracy).mean() < 0.05


def test_refuses_what_is_not_there():
    with pytest.raises(ParameterError, match="statistic"):
        RankOne(statistic="kappa").fit(CrowdLabels.from_matrix([[0, 1], [1, 1]]))

    with pytest.raises(ParameterError, match="min_shared"):
        RankOne(min_shared=-1).fit(CrowdLabels.from_matrix([[0, 1], [1, 1]]))


@pytest.mark.parametrize(("name", "bar"), [("bluebird", 0.1389), ("rte", 0.08)])
def test_real_crowds(real_crowd, name, bar):
    labels, truth = real_crowd(name)
    assert 1 - RankOne().fit(labels).score(labels, truth) <= bar


def one_worker_per_label(matrix) -> CrowdLabels:
    labels = CrowdLabels.from_matrix(matrix)
    return CrowdLabels.from_arrays(labels.task, np.arange(labels.n_annotations), labels.label)


@pytest.mark.parametrize("statistic", ["covariance", "agreement"])
def test_workers_with_a_task_each_vote_alike(statistic):
    labels = one_worker_per_label([[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 1]])
    with pytest.warns(WisecrowdWarning, match="12 of 12 workers share too little"):
        model = RankOne(statistic=statistic).fit(labels)
    assert model.labels_.tolist() == [0, 1, 0, 1]
    assert not model.identified_.any()
    np.testing.assert_allclose(model.skill_, 0.5)


def test_workers_with_a_task_each_have_the_mean_skill():
    made = crowd(200, 6 * OneCoinWorkers(6, 2), PerTask(3), n_classes=2, random_state=0)
    own = made.labels
    task = np.concatenate([own.task, np.repeat(np.arange(200), 4)])
    worker = np.concatenate([own.worker, 6 + np.arange(800)])
    label = np.concatenate([own.label, np.repeat(made.truth, 4)])
    with pytest.warns(WisecrowdWarning, match="800 of 806 workers share too little"):
        both = RankOne(tol=1e-12).fit(CrowdLabels.from_arrays(task, worker, label))
    alone = RankOne(tol=1e-12).fit(own)
    np.testing.assert_allclose(both.skill_[:6], alone.skill_, atol=1e-9)
    # The newcomers are all right, and with the mean skill each they outvote the others' errors.
    assert (both.labels_ == made.truth).mean() > 0.95 > (alone.labels_ == made.truth).mean()


def test_where_nobody_ever_varies_the_vote_decides():
    labels = CrowdLabels.from_matrix([[0, 0, 1, -1], [-1, 0, 1, 1], [0, 0, -1, 1], [0, -1, 1, 1]],
                                     missing=-1)  # fmt: skip
    with pytest.warns(WisecrowdWarning, match="4 of 4 workers share too little"):
        model = RankOne().fit(labels)
    assert model.labels_.tolist() == [0, 1, 0, 1]


SKILL = np.array([0.9, 0.7, 0.5, 0.3, 0.8, 0.6, 0.4, 0.55, 0.65, 0.2, -0.5])


def pairs_of(n, meets, weight=None):
    first, second = np.nonzero(np.triu(meets, 1))
    weight = np.full(len(first), 20.0) if weight is None else weight
    counts = np.tile(weight[:, None, None] / 4, (1, 2, 2))
    return PairMoments(
        first.astype(np.int32), second.astype(np.int32), counts, weight, n, 2, np.full((n, 2), 0.5)
    )


def ring(n, reach):
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return (apart <= reach) | (apart >= n - reach)


@pytest.mark.parametrize("reach", [2, 3, 11])
def test_exact_products_give_the_vector(reach):
    n = len(SKILL)
    pairs = pairs_of(n, ring(n, reach))
    values = SKILL[pairs.first] * SKILL[pairs.second]
    fit = rank_one_fit(pairs, values, np.full(n, 0.5), (-1, 1), max_iter=2000, tol=1e-12)
    assert fit.converged
    np.testing.assert_allclose(fit.factor, SKILL, atol=1e-8)


def test_noisy_products_give_the_least_squares_solution():
    rng = np.random.default_rng(0)
    n = len(SKILL)
    meets = ring(n, 3)
    pairs = pairs_of(n, meets, rng.uniform(1, 40, len(np.nonzero(np.triu(meets, 1))[0])))
    values = SKILL[pairs.first] * SKILL[pairs.second] + rng.normal(0, 0.15, pairs.n_pairs)
    fit = rank_one_fit(pairs, values, np.full(n, 0.5), (-0.4, 0.8), max_iter=3000, tol=1e-11)

    def misfit(x):
        off = x[pairs.first] * x[pairs.second] - values
        return float(pairs.n_shared @ off**2)

    box = [(-0.4, 0.8)] * n
    best = minimize(misfit, np.full(n, 0.5), bounds=box, options={"ftol": 1e-15, "gtol": 1e-10})
    assert misfit(fit.factor) <= best.fun * (1 + 1e-9)
    np.testing.assert_allclose(fit.factor, best.x, atol=1e-4)
    assert fit.factor.max() <= 0.8
    assert np.diff(fit.history).max() <= 0
    assert fit.history[-1] == pytest.approx(0.5 * misfit(fit.factor) / pairs.n_shared.sum())


def test_who_meets_nobody_has_zero_and_harms_nobody():
    meets = np.zeros((5, 5), dtype=bool)
    meets[:3, :3] = True
    pairs = pairs_of(5, meets)
    values = SKILL[pairs.first] * SKILL[pairs.second]
    fit = rank_one_fit(pairs, values, np.full(5, 0.5), (-1, 1), max_iter=500, tol=1e-12)
    np.testing.assert_allclose(fit.factor, [*SKILL[:3], 0, 0], atol=1e-8)
    nobody = pairs_of(3, np.zeros((3, 3), dtype=bool))
    fit = rank_one_fit(nobody, np.empty(0), np.full(3, 0.5), (-1, 1), max_iter=5, tol=1e-6)
    assert fit.factor.tolist() == [0, 0, 0]
    assert fit.converged
