"""Every command in a folder full of a user's files that have the names that wisecrowd uses."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.support.user_files import CASES, FILES, make_folder, run_case

from benchmarks.rows import Row


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_folder(folder)
        wrong = {case.name: run_case(case, folder) for case in CASES}
    for name, what in wrong.items():
        if what:
            print(f"{name}: {what}", file=sys.stderr, flush=True)
    n_wrong = sum(map(bool, wrong.values()))
    what = f"{len(CASES)} commands among {len(FILES)} files with our names: deleted or changed"
    return [Row(what, "0", str(n_wrong), n_wrong == 0)]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
