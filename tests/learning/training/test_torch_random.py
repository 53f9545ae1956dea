from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import wisecrowd as wc
from wisecrowd.core.exceptions import ConcurrentFitError
from wisecrowd.learning import AggNet, CrowdLayer
from wisecrowd.learning.training.torch_random import own_random_numbers
from wisecrowd.testing.crowds import simulated

LABELS = simulated(60, 6, 2).labels
X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)


def test_learners_in_different_threads_give_what_they_give_alone():
    makers = [lambda: CrowdLayer(epochs=5), lambda: AggNet(epochs=5)] * 2
    alone = [make().fit(X, LABELS).probas_ for make in makers]
    with ThreadPoolExecutor(4) as pool:
        together = pool.map(lambda make: make().fit(X, LABELS).probas_, makers)
        for found, expected in zip(together, alone, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_loading_in_another_thread_does_not_disturb_a_fit(tmp_path):
    CrowdLayer(epochs=1).fit(X, LABELS).save(tmp_path / "model")
    expected = CrowdLayer(epochs=20).fit(X, LABELS).probas_
    over = threading.Event()

    def load_again_and_again():
        while not over.is_set():
            wc.load(tmp_path / "model")

    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(load_again_and_again)
        try:
            found = CrowdLayer(epochs=20).fit(X, LABELS).probas_
        finally:
            over.set()
        loading.result()
    np.testing.assert_array_equal(found, expected)


def test_the_users_own_draws_go_on_as_if_nothing_had_happened(tmp_path):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    CrowdLayer(epochs=1).fit(X, LABELS).save(tmp_path / "model")
    wc.load(tmp_path / "model")
    assert torch.equal(torch.rand(3), expected)


def test_a_learner_is_fitted_by_one_thread_at_a_time(monkeypatch):
    learner = CrowdLayer(epochs=1)
    entered = threading.Event()
    # Of the class: a fit works on a new object.
    monkeypatch.setattr(CrowdLayer, "_selection", lambda *_: entered.set() or "last")
    with ThreadPoolExecutor(1) as pool:
        with own_random_numbers():
            running = pool.submit(learner.fit, X, LABELS)
            assert entered.wait(10)  # now it waits for the random numbers
            with pytest.raises(ConcurrentFitError, match="CrowdLayer is being fitted"):
                learner.fit(X, LABELS)
        assert running.result().n_iter_ == 1
