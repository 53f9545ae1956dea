"""WorkerClusters: limits, the bound, clusters of planted types, gains over a matrix each."""

from dataclasses import dataclass

import numpy as np
import pytest

from wisecrowd.aggregation import MeanField, WorkerClusters
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference.dirichlet import expected_log
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods.worker_clusters import ClusterModel

PRIOR = 0.5 + 0.5 * np.eye(3)


def crowd_of_types(seed, per_worker=25, n_tasks=1000, per_task=6):
    """Return labels by good, random, shifting and one-class workers, the truth and the types."""
    rng = np.random.default_rng(seed)
    n_workers = n_tasks * per_task // per_worker
    truth = rng.integers(3, size=n_tasks)
    types = rng.choice(4, size=n_workers, p=(0.4, 0.2, 0.2, 0.2))
    flat = np.full((3, 3), 0.1)
    law = np.array([
        flat + 0.7 * np.eye(3),
        np.full((3, 3), 1 / 3),
        flat + 0.7 * np.roll(np.eye(3), 1, axis=1),
        np.tile([0.9, 0.05, 0.05], (3, 1)),
    ])  # fmt: skip
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = np.argsort(rng.random((n_tasks, n_workers)), axis=1)[:, :per_task].ravel()
    cut = law[types[worker], truth[task]].cumsum(axis=1)
    label = (rng.random(len(task))[:, None] > cut).sum(axis=1)
    return CrowdLabels.from_arrays(task, worker, label, workers=range(n_workers)), truth, types


def test_gains_over_a_matrix_each_with_few_labels():
    gains = []
    for seed in range(2):
        labels, truth, types = crowd_of_types(seed)
        model = WorkerClusters().fit(labels)
        alone = MeanField().fit(labels)
        gains.append(model.score(labels, truth) - alone.score(labels, truth))
        pairs = (model.cluster_[:, None] == model.cluster_) == (types[:, None] == types)
        assert pairs.mean() > 0.9
        assert len(np.unique(model.cluster_)) <= 6
    assert np.mean(gains) > 0.08


def test_one_cluster_pools_everybody():
    labels, _, _ = crowd_of_types(0, n_tasks=60)
    settings = {"class_prior": "uniform", "max_iter": 25, "tol": 0.0}
    model = WorkerClusters(n_clusters=1, n_init=1, **settings).fit(labels)
    one = CrowdLabels.from_arrays(
        labels.task, np.zeros_like(labels.task), labels.label, duplicates="keep"
    )
    pooled = MeanField(prior=PRIOR, accelerate=False, **settings)._fit_without_checks(one)
    np.testing.assert_allclose(model.probas_, pooled.probas_, atol=1e-9)


def test_a_cluster_per_worker_is_mean_field():
    labels, _, _ = crowd_of_types(1, n_tasks=60)

    @dataclass(frozen=True, eq=False, kw_only=True)
    class OwnCluster(ClusterModel):
        def first_memberships(self, counts, active):
            return np.eye(len(counts))

        def memberships(self, scores):
            return np.eye(len(scores)), np.zeros(len(scores))

    @dataclass(eq=False, repr=False, kw_only=True)
    class Each(WorkerClusters):
        def _model(self, problem):
            return OwnCluster(**vars(super()._model(problem)))

    settings = {"class_prior": "uniform", "max_iter": 25, "tol": 0.0}
    model = Each(n_clusters=labels.n_workers, n_init=1, **settings).fit(labels)
    own = MeanField(prior=PRIOR, accelerate=False, **settings).fit(labels)
    np.testing.assert_allclose(model.probas_, own.probas_, atol=1e-9)


def test_the_bound_never_falls():
    labels, _, _ = crowd_of_types(2, n_tasks=200)
    for n_clusters in ("auto", 3):
        history = WorkerClusters(n_clusters=n_clusters, tol=0.0, max_iter=40).fit(labels).history_
        assert np.diff(history).min() > -1e-9 * abs(history[-1])


def test_sticks_have_the_moments_of_their_betas():
    model = ClusterModel(
        n_workers=3, n_classes=2, fixed_class=None, class_alpha=1.0, n_types=3,
        beta=np.ones((2, 2)), concentration=2.0, sticks=True,
    )  # fmt: skip
    log_share, loss, share = model.share_terms(np.array([4.0, 2.0, 1.0]))
    first, second = expected_log(np.array([5.0, 5.0])), expected_log(np.array([3.0, 3.0]))
    np.testing.assert_allclose(log_share, [first[0], first[1] + second[0], first[1] + second[1]])
    np.testing.assert_allclose(share, [0.5, 0.25, 0.25])
    assert loss > 0
    assert abs(model.share_terms(np.zeros(3))[1]) < 1e-12


def test_a_number_or_auto():
    with pytest.raises(ParameterError, match="n_clusters"):
        WorkerClusters(n_clusters="many").fit([[0, 1], [1, 1]])
