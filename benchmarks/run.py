"""Run all benchmarks, print one table and keep it in benchmarks/output/."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

# `learning` trains for an hour and runs by itself; `make trust` has its own.
NAMES = (
    "crowd_kit", "kernels", "memory", "ingest", "glad", "start_up", "many_classes",
    "belief_propagation", "calibration", "inference", "inference_bcc", "audit", "real_data",
    "moments", "report", "dependence", "learning_population", "deep", "fit_memory",
)  # fmt: skip


def main(names: list[str]) -> None:
    rows = []
    for name in names or NAMES:
        print(f"... {name}", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"benchmarks.{name}").run()
    print("| what | bar | measured | met |\n|---|---|---|---|")
    print("\n".join(row.line() for row in rows))
    output = Path(__file__).with_name("output")
    output.mkdir(exist_ok=True)
    (output / "results.json").write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
