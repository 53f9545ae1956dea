"""Masks: 100 images of 512 × 512 pixels by 5 simulated workers, beside crowd-kit.

``python -m benchmarks.run masks`` prints every row. CPU time and memory are those of a whole
process that reads a csv file and fits; crowd-kit gets dense masks that are in memory already, and
only its fit counts. Without crowd-kit its rows are left out.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rows import Row, cpu_seconds
from wisecrowd.aggregation import MaskEM, MaskRasa, MaskVote
from wisecrowd.kinds.masks.metrics import known_masks, mean_iou
from wisecrowd.kinds.masks.run_lengths import counts_of
from wisecrowd.simulate import Dense, SimulatedMasks, masks

MOST_MEGABYTES = 500
TIMES_FASTER = 5
# Crowds by name. Such crowds with the seeds 20 to 47 were used to choose `dependence` and the rim.
CROWDS: dict[str, dict[str, Any]] = {
    "default workers": {},
    "careless workers": {"miss": 0.3, "shift": 0.2},
    "too wide or too tight": {"offset": 0.3},
}
SEEDS = (11, 12, 13)
SCRIPT = """
import json, resource, sys, time
import wisecrowd as wc
from wisecrowd.aggregation import MaskEM
def peak():
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["VmHWM"].split()[0]) / 1024
before = peak()
begun = time.process_time()
data = wc.read(sys.argv[1], type="masks")
read = time.process_time()
MaskEM().fit(data).main_columns()
print(json.dumps({"before": before, "peak": peak(), "read": read - begun,
                  "fit": time.process_time() - read}))
"""


def run(n_images: int = 100, size: int = 512) -> list[Row]:
    made = masks(n_images, 5, Dense(), height=size, width=size, n_objects=3, random_state=SEEDS[0])
    used = _own_process(made)
    cost = used["read"] + used["fit"]
    crowd = f"{n_images} images of {size} × {size}, 5 workers"
    rows = [Row(
        f"{crowd}: peak memory of a process that reads and fits", f"≤ {MOST_MEGABYTES} MB",
        f"{used['peak']:.0f} MB, {used['peak'] - used['before']:.0f} MB over the interpreter",
        used["peak"] <= MOST_MEGABYTES,
    )]  # fmt: skip
    theirs = importlib.util.find_spec("crowdkit") is not None
    if theirs:
        seconds, their_iou = _crowd_kit(made)
        own = MaskEM().fit(made.data).score(made.data, dict(enumerate(made.truth.tolist())))
        rows.append(Row(
            f"{crowd}: mean IoU against crowd-kit's SegmentationEM", f"≥ {their_iou:.4f}",
            f"{own:.4f}", own >= their_iou,
        ))  # fmt: skip
        rows.append(Row(
            f"{crowd}: CPU seconds against crowd-kit's SegmentationEM", f"≥ {TIMES_FASTER}×",
            f"{seconds / cost:.0f}× ({used['read']:.2f} reading, {used['fit']:.2f} fitting; "
            f"{seconds:.1f})",
            seconds / cost >= TIMES_FASTER,
        ))  # fmt: skip
    return rows + [
        _accuracy(name, options, seed, theirs) for name, options in CROWDS.items() for seed in SEEDS
    ]


def _accuracy(name: str, options: dict[str, Any], seed: int, theirs: bool) -> Row:
    """Return mean IoU of all methods on 60 images of 128 × 128."""
    made = masks(60, 5, Dense(), height=128, width=128, n_objects=3, random_state=seed, **options)
    wanted = known_masks(dict(zip(made.data.tasks.tolist(), made.truth, strict=True)), made.data)
    found, claimed = {}, 0.0
    for method in (MaskVote, MaskRasa, MaskEM):
        model = method().fit(made.data)
        pointer = np.append(0, np.cumsum(model.n_runs_))
        found[method.__name__] = mean_iou(wanted, model.mask_runs_, pointer)
        claimed = float(model.confidence_.mean())
    if theirs:
        found["crowd-kit's SegmentationEM"] = _crowd_kit(made)[1]
    best = found.get("crowd-kit's SegmentationEM", found["MaskVote"])
    listed = ", ".join(f"{one} {value:.4f}" for one, value in found.items())
    return Row(
        f"{name}, seed {seed}: mean IoU", "MaskEM ≥ crowd-kit" if theirs else "MaskEM ≥ vote",
        f"{listed}; MaskEM claims {claimed:.3f}", found["MaskEM"] >= best,
    )  # fmt: skip


def _own_process(made: SimulatedMasks) -> dict[str, float]:
    """Return memory in MB and CPU seconds of reading and fitting in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.csv"
        table = made.data.to_dict()
        with path.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(table)
            rows.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
        command = [sys.executable, "-c", SCRIPT, str(path)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(result.stdout)
    return found


def _crowd_kit(made: SimulatedMasks) -> tuple[float, float]:
    """Return CPU seconds and mean IoU of SegmentationEM."""
    import pandas as pd
    from crowdkit.aggregation import SegmentationEM

    data, answers = made.data, {}
    frame = pd.DataFrame({
        "task": data.task, "worker": data.worker,
        "segmentation": [data.dense(e) for e in range(data.n_annotations)],
    })  # fmt: skip
    seconds = cpu_seconds(lambda: answers.update(SegmentationEM().fit_predict(frame)))
    wanted = known_masks(dict(zip(data.tasks.tolist(), made.truth, strict=True)), data)
    runs = [counts_of(answers[i]) for i in range(data.n_tasks)]
    pointer = np.cumsum([0, *map(len, runs)])
    return seconds, mean_iou(wanted, np.concatenate(runs), pointer)


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
