from __future__ import annotations

import os

import pytest

from wisecrowd.core import memory_check
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.memory_check import available_memory, readable_bytes, require_memory


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (3_200, "3.2 kB"), (5e6, "5 MB"), (8e11, "800 GB"),
     (3.2e15, "3,200 TB"), (3.2e13, "32 TB")],
)  # fmt: skip
def test_sizes_as_people_write_them(size, text):
    given = readable_bytes(size)
    assert given.split()[1] == text.split()[1]
    assert float(given.split()[0].replace(",", "")) == float(text.split()[0].replace(",", ""))


def test_what_fits_is_allowed(monkeypatch):
    monkeypatch.setattr(memory_check, "available_memory", lambda: 1000)
    require_memory(1000, "The table", "use less")


def test_what_does_not_fit_is_refused_with_figures(monkeypatch):
    monkeypatch.setattr(memory_check, "available_memory", lambda: 4_000_000_000)
    with pytest.raises(DataError, match=r"The tables need 800 GB .* has 4 GB; use less\."):
        require_memory(800_000_000_000, "The tables", "use less")


def test_a_container_may_have_less(monkeypatch, tmp_path):
    machine = available_memory()
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory_check, "CONTAINER_LIMITS", (limit, tmp_path / "none"))
    limit.write_text("max\n")
    assert available_memory() >= machine
    limit.write_text("123456\n")
    assert available_memory() == 123_456


def test_a_process_may_have_less(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (5_000, 9_000))
    assert available_memory() == 5_000


def test_systems_that_do_not_tell(monkeypatch):
    def refuse(name):
        raise ValueError(name)

    monkeypatch.setattr(memory_check, "CONTAINER_LIMITS", ())
    monkeypatch.setattr(memory_check, "_process_limit", lambda: memory_check.UNKNOWN)
    monkeypatch.setattr(os, "sysconf", refuse)
    assert available_memory() > 1 << 60


def test_this_machine_has_some():
    assert available_memory() > 1 << 26
