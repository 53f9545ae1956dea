"""What several test packages share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """Return the directory of the real data sets; tests that ask for it carry the mark ``data``."""
    directory = os.environ.get("WISECROWD_DATA")
    if not directory or not Path(directory).is_dir():
        pytest.skip("set WISECROWD_DATA to the directory of the real data sets")
    return Path(directory)


# `make test` takes the first, `make test-deep` the second. A busy machine is no failure.
settings.register_profile("quick", max_examples=30, deadline=None)
settings.register_profile("deep", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
