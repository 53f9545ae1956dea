"""What several test packages share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """Return the directory of the real data sets; tests that ask for it carry the mark ``data``."""
    directory = os.environ.get("WISECROWD_DATA")
    if not directory or not Path(directory).is_dir():
        pytest.skip("set WISECROWD_DATA to the directory of the real data sets")
    return Path(directory)
