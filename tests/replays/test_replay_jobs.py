"""A replay that is interrupted keeps its measurements, and starts over unless told to resume."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from replays import material


def test_a_measurement_is_stored_once_and_reused_only_on_request(tmp_path, monkeypatch):
    monkeypatch.setattr(material, "OUTPUT", tmp_path / "output")
    calls = []

    def measure():
        calls.append(1)
        return {"accuracy": 0.25 * len(calls)}

    job = material.Job("trial", range(2)).begin()
    assert job.once(measure, 0, "method") == {"accuracy": 0.25}
    assert job.once(measure, 0, "method") == {"accuracy": 0.25}
    assert job.once(measure, 1, "method") == {"accuracy": 0.5}
    resumed = material.Job("trial", range(2), resume=True).begin()
    assert resumed.once(measure, 1, "method") == {"accuracy": 0.5}
    assert len(calls) == 2
    again = material.Job("trial", range(2)).begin()
    assert again.once(measure, 1, "method") == {"accuracy": 0.75}
