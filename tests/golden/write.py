"""Write the stored results again: ``python -m tests.golden.write [crowd ...]``.

Do this only when a method is meant to give other results, and say in the commit which and why.
"""

from __future__ import annotations

import json
import sys

from tests.golden.machine import fingerprint
from tests.golden.results import CROWDS, HERE, results


def main() -> None:
    """Fit every method to the crowds that are named, or to all."""
    for crowd in sys.argv[1:] or CROWDS:
        found = {"machine": fingerprint(), **results(crowd)}
        lines = [f'"{name}": {json.dumps(value)}' for name, value in found.items()]
        text = "{\n" + ",\n".join(lines) + "\n}\n"  # a line for each method, so that diffs tell
        (HERE / "aggregators" / f"{crowd}.json").write_text(text)


if __name__ == "__main__":
    main()
