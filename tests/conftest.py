"""What several test packages share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from wisecrowd.core.labels import CrowdLabels

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
    """Mark what needs the real data sets, so that `-m data` selects exactly that."""
    for item in items:
        if "data_directory" in getattr(item, "fixturenames", ()):
            item.add_marker("data")


# `make test` takes the first, `make test-deep` the second. A busy machine is no failure.
settings.register_profile("quick", max_examples=30, deadline=None)
settings.register_profile("deep", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
