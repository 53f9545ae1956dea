"""The lowest versions that are tested are the lowest that pyproject.toml allows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Tools that check the code and are no part of what runs, and what has a constraint of its own.
ELSEWHERE = {"ruff", "mypy", "import-linter", "torch"}


def test_constraints_name_the_lower_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["dev"], *extras["deep"], *extras["report"]]
    others = [text for text in needed if not text.startswith("wisecrowd[")]
    bounds = dict(re.fullmatch(r"([\w-]+)>=([\w.]+)", text).groups() for text in others)
    lines = (ROOT / "constraints" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert tested.keys() == bounds.keys() - ELSEWHERE
    for name, version in tested.items():
        # 2.0 as a bound is 2.0.0 as a version
        assert version == bounds[name] or re.fullmatch(re.escape(bounds[name]) + r"(\.0)+", version)
