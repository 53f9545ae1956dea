from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from wisecrowd.core.part import Part, WorkerPart


@dataclass(frozen=True, eq=False)
class Sample(Part):
    values: Any
    _cache: int = 3


def test_fields_become_plain_data():
    part = Sample({"x": np.array([1.0, np.inf]), 2: (np.bool_(True), None, np.str_("é"))})
    assert part.to_dict() == {"values": {"x": [1.0, None], "2": [True, None, "é"]}}
    json.dumps(part.to_dict(), allow_nan=False)
    assert part.tables() == {}


def test_a_part_must_have_findings():
    with pytest.raises(TypeError, match="Sample must define findings"):
        Sample(1).findings()


@dataclass(frozen=True, eq=False)
class Clickers(WorkerPart):
    table = "clickers"
    noun = "all votes"

    total: int
    workers: Any
    n_votes: Any
    worker_share: Any
    clicker: Any

    def findings(self):
        return self.about("clickers", self.clicker, "clicked", "Ask them why.")


def test_findings_about_workers_name_the_most_active_first():
    part = Clickers(
        2, np.array(list("abc")), np.array([1, 90, 9]), np.ones(3), np.array([True, False, True])
    )
    (found,) = part.findings()
    assert (found.severity, found.score, found.affected) == ("medium", 0.1, ("c", "a"))
    assert found.explanation == (
        "2 workers ('c', 'a'; 10.0% of all votes, which is the score) clicked."
    )
    assert list(part.tables()["clickers"]) == ["worker", "n_votes", "share", "clicker"]


def test_nobody_is_no_finding():
    none = np.zeros(1, dtype=bool)
    assert Clickers(1, np.array(["a"]), np.array([3]), np.ones(1), none).findings() == []
