"""MaskEM: patterns are exact, rates are found, smoothing is mean field on the grid."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import binary_dilation

from wisecrowd import simulate
from wisecrowd.aggregation import DawidSkene, MaskEM, MaskVote
from wisecrowd.core import memory_check
from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.masks.container import CrowdMasks
from wisecrowd.kinds.masks.methods import mask_em
from wisecrowd.kinds.masks.methods.mask_em import mean_field
from wisecrowd.kinds.masks.methods.patterns import MaskPatterns


def region_of(stack: np.ndarray) -> np.ndarray:
    """Return the union of the masks of an image, with its rim."""
    if not stack.any():
        return stack.any(axis=0)
    area = np.mean([mask.sum() for mask in stack if mask.any()])
    rim = max(3, round(0.15 * np.sqrt(area / np.pi)))
    return binary_dilation(stack.any(axis=0), np.ones((2 * rim + 1, 2 * rim + 1)))


def pixel_by_pixel(data: CrowdMasks, n_iter: int, dependence: float) -> list[np.ndarray]:
    """Return posteriors of all images by EM on every pixel of the regions, without patterns."""
    images = []
    for i in range(data.n_tasks):
        own = np.flatnonzero(data.task == i)
        stack = np.array([data.dense(e) for e in own])
        region = region_of(stack)
        images.append((stack[:, region], data.worker[own], region))
    n = sum(len(who) for _, who, _ in images)
    strength = 0.5 * sum(y.size for y, *_ in images) / n
    posterior = [y.mean(axis=0) for y, *_ in images]
    for step in range(n_iter + 1):
        counts = np.zeros((data.n_workers, 4))
        for (y, who, _), q in zip(images, posterior, strict=True):
            for label, j in zip(y, who, strict=True):
                counts[j] += [q[label].sum(), q[~label].sum(), (1 - q)[label].sum(),
                              (1 - q)[~label].sum()]  # fmt: skip
        hit, missed, false, right = counts.T
        s = (hit + strength * 0.9) / (hit + missed + strength)
        f = (false + strength * 0.1) / (false + right + strength)
        inside, size = sum(q.sum() for q in posterior), sum(len(q) for q in posterior)
        prior = (inside + 1) / (size + 2)
        posterior = []
        for y, who, _ in images:
            odds = np.log(prior / (1 - prior))
            for label, j in zip(y, who, strict=True):
                odds = odds + np.where(label, np.log(s[j] / f[j]), np.log((1 - s[j]) / (1 - f[j])))
            posterior.append(1 / (1 + np.exp(-odds / (1 + dependence * (len(who) - 1)))))
        if step == n_iter:
            break
    found = []
    for (_, _, region), q in zip(images, posterior, strict=True):
        found.append(np.zeros(region.shape))
        found[-1][region] = q
    return found


@pytest.mark.parametrize("dependence", [0.0, 0.2])
def test_patterns_are_exact(dependence):
    data = simulate.masks(5, 4, simulate.PerTask(3), height=20, width=14, random_state=3).data
    model = MaskEM(max_iter=6, tol=0.0, dependence=dependence).fit(data)
    expected = pixel_by_pixel(data, 6, dependence)
    for i, task in enumerate(data.tasks.tolist()):
        assert np.allclose(model.pixel_probabilities(task), expected[i], atol=1e-9)


def test_more_annotations_than_bits_of_a_word():
    rng = np.random.default_rng(0)
    stack = rng.random((70, 6, 5)) < 0.5
    model = MaskVote().fit((["i"] * 70, list(range(70)), list(stack)))
    assert np.allclose(model.pixel_probabilities("i"), (stack.sum(axis=0) + 1) / 72)


def test_one_image_is_dawid_skene_with_pixels_as_tasks(monkeypatch):
    rng = np.random.default_rng(1)
    truth = np.zeros((30, 30), dtype=bool)
    truth[4:24, 6:26] = True
    rates = np.array([0.9, 0.8, 0.75, 0.85])
    stack = [np.where(rng.random(truth.shape) < rate, truth, ~truth) for rate in rates]
    data = CrowdMasks.from_arrays(["i"] * 4, list("abcd"), stack)
    monkeypatch.setattr(mask_em, "PRIOR_IMAGES", 0.0)
    ours = MaskEM(dependence=0.0, tol=1e-9, max_iter=500).fit(data)
    pixel, worker = np.divmod(np.arange(4 * 900), 4)
    labels = CrowdLabels.from_arrays(pixel, worker, np.array(stack).reshape(4, -1)[worker, pixel])
    theirs = DawidSkene(tol=1e-12).fit(labels)
    assert np.abs(ours.pixel_probabilities("i").ravel() - theirs.probas_[:, 1]).max() < 0.01
    assert np.abs(ours.inside_rate_[:4] - theirs.confusion_[:, 1, 1]).max() < 0.005


def test_rates_of_the_workers_are_found():
    rng = np.random.default_rng(2)
    inside, outside = np.array([0.95, 0.8, 0.7, 0.9]), np.array([0.05, 0.3, 0.02, 0.15])
    task, worker, masks = [], [], []
    for i in range(12):
        truth = np.zeros((40, 40), dtype=bool)
        truth[5 : 20 + i, 8:30] = True
        for j in range(4):
            chance = np.where(truth, inside[j], outside[j])
            task, worker = [*task, i], [*worker, j]
            masks.append(rng.random(truth.shape) < chance)
    model = MaskEM(dependence=0.0).fit((task, worker, masks))
    assert np.abs(model.inside_rate_[:4] - inside).max() < 0.03
    assert np.abs(model.outside_rate_[:4] - outside).max() < 0.03
    assert model.converged_


def test_better_than_votes_on_careless_workers():
    made = simulate.masks(40, 6, simulate.PerTask(5), miss=0.3, random_state=5)
    truth = dict(zip(made.data.tasks.tolist(), made.truth, strict=True))
    score = {m: m().fit(made.data).score(made.data, truth) for m in (MaskEM, MaskVote)}
    assert score[MaskEM] > score[MaskVote] + 0.02


def test_mean_field_is_a_fixed_point_of_its_equation():
    rng = np.random.default_rng(3)
    odds, strength = rng.normal(size=(5, 4)), 0.3
    found = mean_field(np.arange(20), odds.ravel(order="F"), 5, strength)
    total = np.log(found / (1 - found)).reshape((5, 4), order="F") * (1 + 2 * strength)
    sign = np.pad(np.tanh(0.5 * total), 1, constant_values=-1.0)
    around = sign[:-2, 1:-1] + sign[2:, 1:-1] + sign[1:-1, :-2] + sign[1:-1, 2:]
    assert np.abs(odds + strength * around - total).max() < 1e-4


def test_smoothing_fills_holes_and_removes_dots():
    mask = np.zeros((14, 14))
    mask[3:11, 3:11] = 1
    dotted = mask.copy()
    dotted[6, 6], dotted[1, 12] = 0, 1
    columns = ["i"] * 3, list("abc"), [mask, dotted, dotted]
    plain, smooth = (MaskEM(smoothing=one).fit(columns) for one in (0.0, 1.5))
    assert plain.pixel_probabilities("i")[6, 6] < 0.5 < smooth.pixel_probabilities("i")[6, 6]
    assert plain.pixel_probabilities("i")[1, 12] > 0.5 > smooth.pixel_probabilities("i")[1, 12]
    assert smooth.area_[0] == 64


def test_patterns_are_few_and_cover_the_region():
    data = simulate.masks(4, 5, height=120, width=100, radius=0.3, random_state=1).data
    patterns = MaskPatterns.of(data)
    assert np.bincount(patterns.task).max() <= 2**5
    for i in range(data.n_tasks):
        stack = np.array([data.dense(e) for e in np.flatnonzero(data.task == i)])
        assert patterns.of_images(patterns.pixels)[i] == region_of(stack).sum()


def test_huge_images_are_fitted_but_not_expanded(monkeypatch):
    monkeypatch.setattr(memory_check, "available_memory", lambda: 10**9)
    whole = {"size": [40_000, 40_000], "counts": [0, 40_000**2]}
    columns = ["i", "i"], ["ann", "bob"], [whole, whole]
    model = MaskEM().fit(columns)
    assert model.area_.tolist() == [40_000**2]
    with pytest.raises(DataError, match="40000 × 40000 pixels would need"):
        model.pixel_probabilities("i")
    with pytest.raises(DataError, match=r"would need .* use smoothing=0"):
        MaskEM(smoothing=1.0).fit(columns)
