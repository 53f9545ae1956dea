"""What several test packages share."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from tests.slow_tests import read_list

from wisecrowd.kinds.classes.container import CrowdLabels

# Tests fork, which threads of PyTorch do not survive; it is not imported yet, and reads this then.
os.environ.setdefault("OMP_NUM_THREADS", "1")

RealCrowd = Callable[[str], tuple[CrowdLabels, dict[int, int]]]


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """Return the directory of the real data sets; the test is skipped where it is absent."""
    directory = os.environ.get("WISECROWD_DATA")
    if not directory or not Path(directory).is_dir():
        pytest.skip("set WISECROWD_DATA to the directory of the real data sets")
    return Path(directory)


@pytest.fixture(scope="session")
def real_crowd(data_directory: Path) -> RealCrowd:
    """Return a function from the name of a real data set to its labels and its truth.

    Ids and classes are integers, as they are in the files; the truth is that of labelled tasks.
    """

    def read(name: str) -> tuple[CrowdLabels, dict[int, int]]:
        answers, truth = (
            np.loadtxt(data_directory / name / file, int, delimiter=",", skiprows=1)
            for file in ("answers.csv", "truth.csv")
        )
        labelled = truth[np.isin(truth[:, 0], answers[:, 0])]
        return CrowdLabels.from_arrays(*answers.T), dict(labelled.tolist())

    return read


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the real data sets, and what is slow, so that `-m` selects exactly that."""
    cases, tests = read_list()
    for item in items:
        if "data_directory" in getattr(item, "fixturenames", ()):
            item.add_marker("data")
        if item.nodeid in cases or item.nodeid.partition("[")[0] in tests:
            item.add_marker("slow")


# `make test` takes the first, `make test-deep` the second. A busy machine is no failure.
settings.register_profile("quick", max_examples=30, deadline=None)
settings.register_profile("deep", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


# ---------------------------------------------------------- crowds whose moments are known


def expert_crowd(n_workers, n_classes, seed=0, n_experts=2):
    """Return confusion (J, K, K) and class prior; each class has strict experts, who come first.

    An expert of class k uses label k for this class alone.
    """
    rng = np.random.default_rng(seed)
    confusion = rng.dirichlet(np.ones(n_classes), (n_workers, n_classes)) + 0.7 * np.eye(n_classes)
    for j in range(n_classes * n_experts):
        k = j // n_experts
        confusion[j, :, k] = 0.0
        confusion[j, k, k] = 0.6
    confusion /= confusion.sum(axis=2, keepdims=True)
    return confusion, rng.dirichlet(np.full(n_classes, 5.0))


def confusion_error(found, confusion):
    """Return the largest error of any entry, under the best of all orders of the classes."""
    orders = permutations(range(confusion.shape[1]))
    return min(float(np.abs(found[:, list(order)] - confusion).max()) for order in orders)


@pytest.fixture
def experts():
    return expert_crowd


@pytest.fixture
def error():
    return confusion_error
