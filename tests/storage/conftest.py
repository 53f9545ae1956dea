from __future__ import annotations

from importlib.util import find_spec

import pytest

collect_ignore = [] if find_spec("torch") else ["test_forged_models.py"]


@pytest.fixture
def small_file_limit():
    """Let no file grow over 64 kB, which fails a write in the way that a full disk does."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
