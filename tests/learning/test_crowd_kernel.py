from __future__ import annotations

import sys

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import (
    DataError,
    FindingWarning,
    MissingDependencyError,
    ParameterError,
)
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning.training.kernel_rounds import (
    Kernel,
    KernelRidge,
    best_temperature,
    find_mismatches,
    label_probas_without_own_task,
    odd_rows,
)
from wisecrowd.learning.training.label_model import aligned, expected_counts


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def crowd(rng, n=120, n_workers=6, n_classes=3, accuracy=0.7):
    """Return features, labels by four of the workers each, and the true classes."""
    truth = rng.integers(0, n_classes, n)
    X = 2.0 * np.eye(n_classes)[truth] + 0.7 * rng.normal(size=(n, n_classes))
    task = np.repeat(np.arange(n), 4)
    worker = np.concatenate([rng.choice(n_workers, 4, replace=False) for _ in range(n)])
    wrong = (truth[task] + rng.integers(1, n_classes, len(task))) % n_classes
    label = np.where(rng.random(len(task)) < accuracy, truth[task], wrong)
    return X, CrowdLabels.from_arrays(task, worker, label), truth


def test_scores_without_a_row_are_those_of_a_regression_without_it(rng):
    features, targets = rng.normal(size=(25, 6)), rng.dirichlet(np.ones(3), 25)
    regression = KernelRidge.of(features)
    left_out = regression.leave_one_out(targets, 1.7)
    for row in (0, 7, 24):
        others = np.arange(25) != row
        # The same ridge and an intercept that is not penalised, solved from the normal equations.
        design = np.column_stack([features[others], np.ones(24)])
        penalty = np.diag([1.7] * 6 + [0.0])
        weights = np.linalg.solve(design.T @ design + penalty, design.T @ targets[others])
        expected = np.append(features[row], 1.0) @ weights
        np.testing.assert_allclose(left_out[row], expected, atol=1e-10)


def test_the_regression_solves_the_normal_equations(rng):
    features, targets = rng.normal(size=(30, 5)), rng.dirichlet(np.ones(2), 30)
    weights, intercept = KernelRidge.of(features).solve(targets, 0.9)
    design = np.column_stack([features, np.ones(30)])
    penalty = np.diag([0.9] * 5 + [0.0])
    expected = np.linalg.solve(design.T @ design + penalty, design.T @ targets)
    np.testing.assert_allclose(np.vstack([weights, intercept]), expected, atol=1e-10)


def test_products_of_features_are_the_kernel(rng):
    X = rng.normal(size=(20, 4))
    kernel = Kernel.of(X, 1000, rng)
    features = kernel.features(X)
    np.testing.assert_allclose(features @ features.T, kernel.matrix(X), atol=1e-8)
    np.testing.assert_allclose(np.diag(kernel.matrix(X)), 1.0)


def test_a_worker_is_judged_by_other_tasks(rng):
    _, labels, _ = crowd(rng, n=15)
    posterior = rng.dirichlet(np.ones(3), 15)
    theta = label_probas_without_own_task(posterior, labels)
    usual = expected_counts(posterior, labels).sum(axis=0) + 0.05
    usual /= usual.sum(axis=1, keepdims=True)
    for e in (0, 17, 59):
        i, j, given = labels.task[e], labels.worker[e], labels.label[e]
        others = (labels.worker == j) & (labels.task != i)
        for k in range(3):
            cell = posterior[labels.task[others & (labels.label == given)], k].sum()
            row = posterior[labels.task[others], k].sum()
            expected = (cell + 0.05 + 2 * usual[k, given]) / (row + 0.15 + 2)
            assert theta[e, k] == pytest.approx(expected, abs=1e-12)


def test_one_worker_who_is_always_right_is_kernel_ridge_on_the_truth(rng):
    X, _, truth = crowd(rng, n=90)
    labels = CrowdLabels.from_arrays(np.arange(90), np.zeros(90, int), truth)
    fitted = wc.learning.CrowdKernel(balance=0.0).fit(X, labels)
    assert (fitted.labels_ == truth).mean() >= 0.95
    kernel = Kernel.of(X, 1000, rng)
    regression = KernelRidge.of(kernel.features(X))
    weights, intercept = regression.solve(np.eye(3)[truth], fitted.ridge_ * regression.unit)
    plain = kernel.features(X) @ weights + intercept
    assert (fitted.predict(X) == plain.argmax(axis=1)).mean() >= 0.95


def test_constant_features_leave_a_class_prior(rng):
    _, labels, _ = crowd(rng)
    fitted = wc.learning.CrowdKernel(balance=0.0).fit(np.zeros((120, 2)), labels)
    predicted = fitted.predict_proba(np.zeros((3, 2)))
    np.testing.assert_allclose(predicted, np.tile(predicted[0], (3, 1)))
    shares = labels.class_totals / labels.class_totals.sum()
    np.testing.assert_allclose(predicted[0], shares, atol=0.02)


def test_alignment_reaches_its_target(rng):
    log_f = rng.normal(size=(200, 3))
    target = np.array([0.5, 0.3, 0.2])
    found = log_f + aligned(log_f, np.log(target))
    probas = np.exp(found) / np.exp(found).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probas.mean(axis=0), target, atol=1e-4)


def test_the_temperature_maximises_the_probability_of_labels(rng):
    _, labels, _ = crowd(rng, n=60)
    scores, theta = rng.normal(size=(60, 3)), rng.uniform(0.1, 0.9, (240, 3))
    value, temperature = best_temperature(scores, theta, labels)

    def at(a):
        f = np.exp(a * scores)
        f /= f.sum(axis=1, keepdims=True)
        prior = -0.5 * np.log(a / 5.0) ** 2
        return np.log((f[labels.task] * theta).sum(axis=1)).sum() + prior

    assert value == pytest.approx(at(temperature), abs=1e-9)
    assert value >= max(at(a) for a in np.geomspace(0.3, 90, 200)) - 1e-6


def test_reversed_classes_and_scaled_features_change_nothing_else(rng):
    X, labels, _ = crowd(rng)
    plain = wc.learning.CrowdKernel().fit(X, labels).probas_
    turned = CrowdLabels.from_arrays(labels.task, labels.worker, 2 - labels.label)
    reversed_ = wc.learning.CrowdKernel().fit(X, turned).probas_[:, ::-1]
    np.testing.assert_allclose(plain, reversed_, atol=1e-6)
    np.testing.assert_allclose(
        plain, wc.learning.CrowdKernel().fit(7 * X, labels).probas_, atol=1e-6
    )


def test_it_beats_the_vote_and_repeats_its_posterior(rng):
    X, labels, truth = crowd(rng, n=300, accuracy=0.55)
    fitted = wc.learning.CrowdKernel().fit(X, labels)
    vote = wc.aggregation.MajorityVote().fit(labels)
    assert (fitted.labels_ == truth).mean() > (vote.labels_ == truth).mean() + 0.1
    np.testing.assert_allclose(fitted.predict_proba(X, labels), fitted.probas_, atol=1e-9)


def test_landmarks_are_drawn_by_the_seed_above_their_number(rng):
    X, labels, _ = crowd(rng)
    fits = [
        wc.learning.CrowdKernel(n_landmarks=40, random_state=s).fit(X, labels) for s in (0, 0, 1)
    ]
    np.testing.assert_array_equal(fits[0].probas_, fits[1].probas_)
    assert np.abs(fits[0].probas_ - fits[2].probas_).max() > 1e-6
    assert fits[0].landmarks_.shape == (40, 3)


def test_what_it_cannot_do_is_refused(rng):
    X, labels, _ = crowd(rng, n=20)
    with pytest.raises(ParameterError, match="balance is 2"):
        wc.learning.CrowdKernel(balance=2).fit(X, labels)
    with pytest.raises(ParameterError, match="no checkpoints"):
        wc.learning.CrowdKernel().fit(X, labels, resume=True)
    with pytest.raises(DataError, match="expecting 3"):
        wc.learning.CrowdKernel().fit(X, labels).predict(X[:, :2])


# ---------------------------------------------------------------------------- unlabelled tasks


def test_a_smoothed_kernel_has_the_norm_with_the_laplacian(rng):
    X = rng.normal(size=(12, 3))
    kernel = Kernel.of(X, 1000, rng)
    smooth = kernel.smoothed(X, 3.0)
    K = kernel.matrix(X)
    near = np.where(np.sort(K, axis=1)[:, [-8]] <= K, K, 0.0)
    Z = near / near.sum(axis=1, keepdims=True)
    laplacian = np.eye(12) - Z @ np.diag(1 / Z.sum(axis=0)) @ Z.T
    # The kernel of the norm f' K^-1 f + 3 f' L f is the inverse of that quadratic form.
    expected = np.linalg.inv(np.linalg.inv(K) + 3.0 * laplacian)
    features = smooth.features(X)
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-8)
    assert kernel.smoothed(X, 0.0) is kernel


def rings(rng, n=240):
    """Return points of two rings, and the ring of each."""
    truth = np.arange(n) % 2
    angle = 2 * np.pi * rng.random(n)
    X = (1 + truth[:, None]) * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + 0.08 * rng.normal(size=(n, 2)), truth


def test_unlabelled_tasks_help_and_need_no_warning(rng):
    X, truth = rings(rng)
    rows = np.arange(16)
    votes = np.where(np.arange(len(X))[:, None] < 16, truth[:, None] + np.zeros(2), np.nan)
    whole = wc.learning.CrowdKernel().fit(X, votes)
    alone = wc.learning.CrowdKernel().fit(X[rows], votes[rows])
    assert not whole.findings_
    assert whole.score(X, truth) > alone.score(X, truth) + 0.02
    rough = wc.learning.CrowdKernel(smoothness=0.0).fit(X, votes)
    assert np.abs(rough.probas_ - whole.probas_).max() > 0.01


# -------------------------------------------------------------------------- features that mislead


def wide_crowd(rng, n=400):
    """Return features of ten columns, labels and true classes."""
    X, labels, truth = crowd(rng, n=n, accuracy=0.9)
    return np.hstack([X + 3 * np.eye(3)[truth], 0.3 * rng.normal(size=(n, 7))]), labels, truth


def test_features_of_other_tasks_are_found_and_set_aside(rng):
    X, labels, truth = wide_crowd(rng)
    bad = np.arange(80)
    X[bad] = X[np.roll(bad, 1) + 200]
    wrong = bad[truth[bad] != truth[np.roll(bad, 1) + 200]]
    plain = wc.learning.CrowdKernel().fit(X, labels)
    (finding,) = plain.findings_
    assert finding.id == "mismatched-features"
    assert "robust=True" in finding.remedy
    named = np.array(finding.affected)
    assert np.isin(named, bad).mean() > 0.8
    assert np.isin(wrong, named).mean() > 0.6
    assert plain.mismatch_[named].min() > 0.5
    robust = wc.learning.CrowdKernel(robust=True).fit(X, labels)
    gain = robust.probas_[wrong, truth[wrong]] - plain.probas_[wrong, truth[wrong]]
    assert (gain > 0).mean() > 0.9
    np.testing.assert_allclose(robust.predict_proba(X, labels), robust.probas_, atol=1e-9)


def test_odd_rows_are_named_and_leave_no_trace(rng):
    X, labels, _ = wide_crowd(rng, n=120)
    X[3], X[8] = 0.0, 1e7 * rng.normal(size=10)
    plain = wc.learning.CrowdKernel().fit(X, labels)
    assert [f.affected for f in plain.findings_ if f.id == "odd-features"] == [(3, 8)]
    robust = wc.learning.CrowdKernel(robust=True).fit(X, labels)
    assert all(f.severity == "low" for f in robust.findings_)
    assert robust.feature_scale_.max() < 10 < plain.feature_scale_.max()
    X[8] *= -3
    again = wc.learning.CrowdKernel(robust=True).fit(X, labels)
    np.testing.assert_array_equal(robust.weights_, again.weights_)


def test_features_in_order_give_no_finding_and_the_same_fit(rng):
    X, labels, _ = wide_crowd(rng)
    plain = wc.learning.CrowdKernel().fit(X, labels)
    robust = wc.learning.CrowdKernel(robust=True).fit(X, labels)
    assert plain.findings_ == robust.findings_ == ()
    np.testing.assert_array_equal(plain.probas_, robust.probas_)


def test_a_balance_that_decides_answers_is_named(rng):
    _, labels, truth = crowd(rng, n=300)
    X = 0.4 * np.eye(3)[truth] + rng.normal(size=(300, 3))
    assert not wc.learning.CrowdKernel().fit(X, labels).findings_
    # Nine tasks in ten of one class, and features that hardly tell classes apart.
    skewed = np.where(rng.random((300, 1)) < 0.9, 0, rng.integers(1, 3, (300, 1)))
    votes = np.where(rng.random((300, 3)) < 0.6, skewed, rng.integers(0, 3, (300, 3)))
    with pytest.warns(FindingWarning, match="balance=1"):
        fitted = wc.learning.CrowdKernel(balance=1).fit(X, votes)
    assert [f.id for f in fitted.findings_] == ["assumed-balance"]
    assert not wc.learning.CrowdKernel(balance=0).fit(X, votes).findings_


# --------------------------------------------------------------------------- a network afterwards


def test_refine_trains_a_network_on_the_posterior(rng):
    torch = pytest.importorskip("torch")
    X, labels, _ = crowd(rng)
    options = {
        "epochs": 1, "lr": 0.1, "optimizer": "sgd", "weight_decay": 0.0, "batch_size": 1000,
        "selection": "last",
    }  # fmt: skip
    given = torch.nn.Linear(3, 3)
    kernel = wc.learning.CrowdKernel().fit(X, labels)
    refined = wc.learning.CrowdKernel(refine=given, refine_options=options).fit(X, labels)
    np.testing.assert_array_equal(refined.probas_, kernel.probas_)
    # One step of the gradient of the cross entropy to the posterior.
    x, q = (torch.tensor(a, dtype=torch.float32) for a in (X, kernel.probas_))
    loss = -(q * torch.log_softmax(given(x), dim=1)).sum(dim=1).mean()
    torch.autograd.backward(loss)
    with torch.no_grad():
        weight, bias = given.weight - 0.1 * given.weight.grad, given.bias - 0.1 * given.bias.grad
        expected = torch.softmax(x @ weight.T + bias, dim=1).numpy()
    np.testing.assert_allclose(refined.predict_proba(X), expected, atol=1e-5)
    np.testing.assert_allclose(refined.predict_proba(X, labels), refined.probas_, atol=1e-6)


def test_a_refined_network_of_your_own_is_saved_as_weights(rng, tmp_path):
    torch = pytest.importorskip("torch")
    X, labels, _ = crowd(rng, n=40)
    images = X.repeat(4, axis=1).reshape(40, 1, 3, 4)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3))
    fitted = wc.learning.CrowdKernel(refine=module, refine_options={"epochs": 2})
    fitted.fit(images, labels).save(tmp_path / "model")
    with pytest.raises(DataError, match="module="):
        wc.load(tmp_path / "model")
    loaded = wc.load(tmp_path / "model", module=module)
    np.testing.assert_array_equal(loaded.predict_proba(images), fitted.predict_proba(images))


def test_bad_refinements_are_refused(rng):
    pytest.importorskip("torch")
    X, labels, _ = crowd(rng, n=20)
    for options, message in (
        ({"refine": 3}, "refine is 3"),
        ({"refine_options": {"epochs": 2}}, "no effect without refine"),
        ({"refine": "mlp", "refine_options": {"epoch": 2}}, "has 'epoch'; it takes balance"),
        ({"refine": "mlp", "refine_options": {"epochs": 0}}, "epochs"),
        ({"refine": "mlpp"}, "mlp"),
        ({"robust": 3}, "robust"),
        ({"smoothness": -1}, "smoothness"),
    ):
        with pytest.raises(ParameterError, match=message):
            wc.learning.CrowdKernel(**options).fit(X, labels)


def test_only_refine_needs_torch(rng, monkeypatch):
    X, labels, _ = crowd(rng, n=20)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "wisecrowd.learning.training.neural_classifier", raising=False)
    wc.learning.CrowdKernel().fit(X, labels)
    with pytest.raises(MissingDependencyError, match="refine trains a network and needs torch"):
        wc.learning.CrowdKernel(refine="mlp").fit(X, labels)


def mixture(rng, share, n=2000, n_classes=4, sure=4.0):
    """Return scores and evidence of tasks, a share of which has scores of another task."""
    truth = rng.integers(0, n_classes, n)
    scores = sure * np.eye(n_classes)[truth] + rng.gumbel(size=(n, n_classes))
    bad = rng.random(n) < share
    scores[bad] = scores[rng.permutation(n)[: bad.sum()]]
    votes = np.where(rng.random((n, 3)) < 0.8, truth[:, None], rng.integers(0, n_classes, (n, 3)))
    agreed = (votes[:, :, None] == np.arange(n_classes)).sum(axis=1)
    return scores, agreed * np.log(0.85 / 0.05), bad


def test_the_share_of_mismatches_is_recovered():
    rng = np.random.default_rng(0)
    for share in (0.05, 0.2):
        scores, evidence, bad = mixture(rng, share)
        found = find_mismatches(scores, evidence, 1.0, np.log(np.full(4, 0.25)))
        assert abs(found.share - bad.mean()) < 0.25 * bad.mean()
        assert found.clear
        named = found.probability > 0.5
        assert bad[named].mean() > 0.8
        assert named[bad].mean() > 0.4


def test_features_in_order_give_no_alarm():
    target = np.log(np.full(4, 0.25))
    for seed in range(5):
        scores, evidence, _ = mixture(np.random.default_rng(seed), 0.0)
        found = find_mismatches(scores, evidence, 1.0, target)
        assert not found.clear
        assert (found.probability > 0.5).mean() < 0.01


def test_a_low_temperature_does_not_hide_mismatches():
    rng = np.random.default_rng(1)
    scores, evidence, _ = mixture(rng, 0.2)
    low = find_mismatches(scores, evidence, 0.3, np.log(np.full(4, 0.25)))
    right = find_mismatches(scores, evidence, 1.0, np.log(np.full(4, 0.25)))
    assert abs(low.share - right.share) < 0.03


def test_odd_rows_are_constant_or_far():
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(300, 10))
    assert not odd_rows(X).any()
    X[4], X[9], X[20] = 0.0, 7.0, 1e4 * rng.normal(size=10)
    assert np.flatnonzero(odd_rows(X)).tolist() == [4, 9, 20]
    few = np.zeros((50, 3))
    few[:20] = rng.normal(size=(20, 3))
    assert not odd_rows(few).any()  # three features, most rows of zeros
    wide = np.zeros((50, 9))
    wide[:20] = rng.normal(size=(20, 9))
    assert not odd_rows(wide).any()  # most tasks have a row of zeros: not an exception
