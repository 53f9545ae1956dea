"""Learning with inference: what an E-step costs beside the epoch of a network."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.rows import Row

SCRIPT = """
import time
import numpy as np
import torch
import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.learning import DeepBP, DeepMF
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.trainer import train
from wisecrowd.nn.backbones import MLP

torch.set_num_threads(1)
wc.set_threads(1)
n = 33_332
made = simulate.crowd(n, simulate.OneCoinWorkers(2, 1), simulate.Regular(3, 4),
                      n_workers=3 * n // 4, n_classes=2)
rng = np.random.default_rng(0)
X = rng.normal(size=(n, 512)).astype(np.float32)
X[:, 0] += 1.3 * (2 * made.truth_codes - 1)
data = CrowdData(X, made.labels, np.full(n, -1))


for kind in (DeepBP, DeepMF):
    method = kind(batch_size=64)
    model = method._build(MLP(512, 2), data)
    model.begin_epoch(0, data)  # compiled, and messages to start from
    taken = []
    for epoch in range(1, 5):
        start = time.process_time()
        model.begin_epoch(epoch, data)
        e_step = time.process_time() - start
        begin = model.begin_epoch
        model.begin_epoch = lambda *_: None
        start = time.process_time()
        train(model, data, torch.arange(n), method._options(1, None))
        taken.append((e_step, time.process_time() - start))
        model.begin_epoch = begin
    e_steps, epochs = zip(*taken)
    print(np.median(e_steps), np.median(epochs))
"""


def run() -> list[Row]:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    rows = []
    for name, line in zip(("deepBP", "deepMF"), done.stdout.splitlines(), strict=True):
        e_step, epoch = (float(x) for x in line.split())
        what = f"{name}, E-step on 10^5 labels, the network's forward pass included"
        rows.append(Row(what, "≤ 0.5 s CPU", f"{e_step:.2f} s", e_step <= 0.5))
        what = f"{name}, E-step against an epoch of a 128-unit network on 512 features"
        rows.append(Row(what, "less", f"{e_step:.2f} s and {epoch:.2f} s", e_step < epoch))
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
