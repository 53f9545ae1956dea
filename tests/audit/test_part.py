from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from wisecrowd.audit.part import Part


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
