"""Write stored results again: ``python -m tests.golden.write [crowd, command or kind ...]``.

Do this only when results are meant to change, and say in the commit which and why; or when a
method is new, whose results are then added.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.golden.command_runs import CASES, runs
from tests.golden.kind_runs import NAMES, runs_of_kind
from tests.golden.machine import fingerprint
from tests.golden.results import CROWDS, HERE, results


def main() -> None:
    """Run what is named: all methods on a crowd, all cases of a command or kind; by default all."""
    for name in sys.argv[1:] or (*CROWDS, *CASES, *NAMES):
        if name in CROWDS:
            _write(HERE / "aggregators" / f"{name}.json", results(name), depth=1)
        elif name in NAMES:
            _write(HERE / "kinds" / f"{name}.json", runs_of_kind(name), depth=3)
        else:
            _write(HERE / "commands" / f"{name}.json", runs(name), depth=3)


def _write(path: Path, found: dict[str, Any], depth: int) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(_json({"machine": fingerprint(), **found}, depth) + "\n")


def _json(value: Any, depth: int) -> str:
    """Return JSON with a line for each item down to a depth, so that diffs can be read."""
    if not depth or not value or not isinstance(value, dict | list):
        return json.dumps(value)
    if isinstance(value, list):
        return "[\n" + ",\n".join(_json(item, depth - 1) for item in value) + "\n]"
    items = (f"{json.dumps(name)}: {_json(item, depth - 1)}" for name, item in value.items())
    return "{\n" + ",\n".join(items) + "\n}"


if __name__ == "__main__":
    main()
