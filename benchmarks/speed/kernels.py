"""One EM iteration on 10^7 labels, beside a plain C loop compiled in the same run."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.rows import Row, cpu_seconds, random_crowd
from wisecrowd.kinds.classes.kernels import confusion_fast

GUIDE = {2: 4, 5: 16, 10: 60}  # nanoseconds per label, found with quick trials elsewhere


def plain_loop():
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    folder = Path(tempfile.mkdtemp())
    library = folder / "plain_em.so"
    source = Path(__file__).with_name("plain_em.c")
    flags = ["-O3", "-march=native", "-shared", "-fPIC", "-o", library]
    subprocess.run([compiler, *flags, source, "-lm"], check=True)
    function = ctypes.CDLL(str(library)).plain_em
    function.restype = ctypes.c_double
    return function


def run(n_labels: int = 10_000_000) -> list[Row]:
    rows = []
    plain = plain_loop()
    for n_classes, guide in GUIDE.items():
        labels, _ = random_crowd(n_labels, n_classes)
        cell = labels.worker * np.int32(n_classes) + labels.label
        rng = np.random.default_rng(1)
        table = np.log(rng.dirichlet(np.full(n_classes, 2.0), labels.n_workers * n_classes))
        log_class, mass = np.full(n_classes, -np.log(n_classes)), np.zeros(n_classes)
        counts, no_prior = np.zeros_like(table), np.zeros((1, n_classes))

        def ours(c=cell, t=table, lc=log_class, p=no_prior, n=counts, m=mass, x=labels):
            return confusion_fast.confusion_step(
                x.indptr, c, None, t, lc, p, None, n, m, None, False
            )

        ours()  # compiled
        mine = cpu_seconds(ours, 5) / n_labels * 1e9
        what = f"one EM iteration, 10^7 labels, K = {n_classes}"
        rows.append(Row(what, f"about {guide} ns per label", f"{mine:.1f} ns"))
        if plain is None:
            continue
        q = np.zeros(n_classes)
        arrays = (labels.indptr, cell, table, log_class, counts, mass)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]

        def c_loop(p=pointers, q=q, x=labels, k=n_classes):
            return plain(
                ctypes.c_int64(x.n_tasks), *p, ctypes.c_int64(k), ctypes.c_void_p(q.ctypes.data)
            )

        assert abs(ours() / c_loop() - 1) < 1e-9
        theirs = cpu_seconds(c_loop, 5) / n_labels * 1e9
        ratio = mine / theirs
        measured = f"{ratio:.2f} ({mine:.1f} against {theirs:.1f} ns)"
        rows.append(Row(f"{what}, ratio to a plain C loop", "≤ 1.0", measured, ratio <= 1.0))
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
