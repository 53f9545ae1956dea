from __future__ import annotations

import pytest

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.engines.threads import get_threads, set_threads


@pytest.fixture(autouse=True)
def unset():
    set_threads(None)
    yield
    set_threads(None)


def test_set_threads_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("WISECROWD_THREADS", "3")
    assert get_threads() == 3
    set_threads(2)
    assert get_threads() == 2
    set_threads(None)
    assert get_threads() == 3


@pytest.mark.parametrize("text", ["", "0", "many", "-1"])
def test_all_cores_by_default(monkeypatch, text):
    monkeypatch.setenv("WISECROWD_THREADS", text)
    assert get_threads() >= 1
    monkeypatch.delenv("WISECROWD_THREADS")
    cores = get_threads()
    monkeypatch.setenv("WISECROWD_THREADS", text)
    assert get_threads() == cores


@pytest.mark.parametrize("bad", [0, -1, 1.5, "two", True])
def test_bad_numbers_are_refused(bad):
    with pytest.raises(ParameterError, match="n_threads"):
        set_threads(bad)
