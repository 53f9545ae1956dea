"""Run benchmarks by name, print one table and keep it in benchmarks/output/.

python -m benchmarks.run                what ``make bench`` prints
python -m benchmarks.run kernels        benchmarks/speed/kernels.py
python -m benchmarks.run trust_crash    benchmarks/trust/crash.py
python -m benchmarks.run trust          what ``make trust`` prints
python -m benchmarks.run honest         what is claimed of classes and workers, and what is right
python -m benchmarks.run honest_kinds   the same of all other kinds, with ties and reliability
python -m benchmarks.run truth          what is true with few known answers, judges, agreement
python -m benchmarks.run kinds          all kinds of labels besides classes
python -m benchmarks.run house          how the code is laid out (benchmarks/trust/house.py)
python -m benchmarks.run large          packs of 10^7 labels (benchmarks/speed/large_packs.py)
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).parent
# `learning` trains for an hour and runs by itself; `make trust` has its own.
NAMES = (
    "crowd_kit", "kernels", "memory", "ingest", "glad", "start_up", "many_classes",
    "belief_propagation", "calibration", "inference", "inference_bcc", "audit", "real_data",
    "moments", "report", "dependence", "copies", "learning_population", "deep", "fit_memory",
    "epochs", "outside_kernels", "hierarchical", "unlabelled", "corrupted_features", "robustness",
    "fairness", "learner_auto", "packs",
)  # fmt: skip
GROUPS = {
    "trust": (
        "trust_attacks", "trust_audit_kinds", "trust_audit_spans", "trust_budgets",
        "trust_campaign_load", "trust_confidence", "trust_crash", "trust_damaged_packs",
        "trust_determinism", "trust_discrimination", "trust_files", "trust_guards",
        "trust_inputs", "trust_invariance", "trust_pack_faults", "trust_ranks",
        "trust_report_advice", "trust_user_files", "calibration",
    ),
    "honest": (
        "honest_results", "honest_workers_by_gold", "honest_worker_errors", "honest_ties",
        "honest_copies", "honest_bad_workers",
    ),
    "honest_kinds": (
        "honest_numbers", "honest_ordered", "honest_pairs", "honest_spans", "honest_sets",
        "honest_same", "honest_boxes", "honest_masks", "honest_ties", "reliability",
    ),
    "truth": (
        "honest_agreement",
        "honest_check",
        "honest_judges",
        "honest_estimates",
        "honest_plans",
    ),
    "kinds": (
        "accuracy_numbers", "ordered_classes", "item_ranking", "rewards_and_regressions",
        "audit_kinds", "number_fits", "million_votes", "spans", "span_learning", "sets", "boxes",
        "same", "graphs", "accuracy_texts", "masks",
    ),
    "mutation": ("mutation_driver",),
    "large": ("large_packs",),
}  # fmt: skip


def module_of(name: str) -> str:
    """Return the module of a benchmark, NAME.py in any folder; trust_crash is trust/crash.py."""
    for path in HERE.glob("*/*.py"):
        folder = path.parent.name
        if name in (path.stem, f"{folder}_{path.stem}"):
            return f"benchmarks.{folder}.{path.stem}"
    sys.exit(f"There is no benchmark {name!r}; there are {', '.join((*NAMES, *GROUPS))}.")


def main(names: list[str]) -> None:
    rows = []
    for name in (one for given in names or NAMES for one in GROUPS.get(given, (given,))):
        print(f"... {name}", file=sys.stderr, flush=True)
        rows += importlib.import_module(module_of(name)).run()
    print("| what | bar | measured | met |\n|---|---|---|---|")
    print("\n".join(row.line() for row in rows))
    output = HERE / "output"
    output.mkdir(exist_ok=True)
    (output / "results.json").write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
