"""SymmetricNMF on labels."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import DawidSkene, SymmetricNMF
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.simulate import Dense, FixedConfusion, crowd


def two_shifts(n_tasks, seed=0):
    """Return workers of two shifts who share tasks only with four who work in both."""
    rng = np.random.default_rng(seed)
    confusion = rng.dirichlet(np.full(3, 0.5), (14, 3)) * 0.3 + 0.7 * np.eye(3)
    made = crowd(
        n_tasks, 14 * FixedConfusion(confusion), Dense(), class_prior=[0.4, 0.35, 0.25],
        random_state=seed,
    )  # fmt: skip
    first_shift = made.labels.task % 2 == 0
    worker = made.labels.worker
    seen = np.where(first_shift, worker < 9, (worker < 4) | (worker >= 9))
    return made.labels.select_annotations(seen), made.truth, confusion


@pytest.mark.parametrize("impute", [False, True])
def test_workers_who_never_meet_are_put_together(impute):
    labels, truth, confusion = two_shifts(4000)
    model = SymmetricNMF(impute=impute).fit(labels)
    assert model.identified_.all()
    assert np.sqrt(((model.confusion_ - confusion) ** 2).mean()) < 0.05
    best = DawidSkene().fit(labels).score(labels, truth)
    assert model.score(labels, truth) >= best - 0.01


def test_wrong_parameters_are_refused():
    labels, _, _ = two_shifts(20)
    with pytest.raises(ParameterError, match="impute"):
        SymmetricNMF(impute="yes").fit(labels)


@pytest.mark.parametrize("impute", [False, True])
@pytest.mark.parametrize(
    ("name", "alone", "then_em"),
    [("bluebird", 0.1204, 0.1205), ("dog", 0.1648, 0.1686), ("rte", 0.0788, 0.0813)],
)
def test_published_errors(real_crowd, name, alone, then_em, impute):
    labels, truth = real_crowd(name)
    model = SymmetricNMF(impute=impute).fit(labels)
    assert 1 - model.score(labels, truth) <= alone + 0.005 * impute
    after = DawidSkene().fit(labels, init=model)
    assert 1 - after.score(labels, truth) <= then_em
