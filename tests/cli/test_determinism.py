"""The same bits over processes: hash seeds, threads and reruns make no difference."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from wisecrowd.storage import read_manifest

# Text ids, so that the order of a set or a dict of them would depend on the hash seed.
RUN = """
import sys
import wisecrowd.inference.engine as engine
from wisecrowd.cli.main import run
engine.SMALLEST_SHARD = 100  # several blocks, which threads take in any order
for method in sys.argv[2:]:
    code = run(["aggregate", "answers.csv", "-q", "-m", method, "-o", f"{sys.argv[1]}-{method}.csv",
                "--soft", "--workers", f"{sys.argv[1]}-{method}.jsonl"])
    assert code == 0
"""
METHODS = ("auto", "dawid-skene", "one-coin", "gibbs-dawid-skene")
SETTINGS = {"a": ("0", "1"), "b": ("1", "3"), "c": ("987", "2")}


@pytest.fixture
def crowd(table):
    rows = [
        (f"task {e // 5}", f"worker {(e * 7 + e // 31) % 37}", "abc"[(e // 5 + (e % 4 == 0)) % 3])
        for e in range(600)
    ]
    return table("answers.csv", ["task", "worker", "label"], rows)


def test_hash_seeds_threads_and_reruns(crowd, tmp_path):
    for name, (seed, threads) in SETTINGS.items():
        environment = {
            **os.environ, "PYTHONHASHSEED": seed, "WISECROWD_THREADS": threads,
            "OMP_NUM_THREADS": threads,
        }  # fmt: skip
        command = [sys.executable, "-c", RUN, name, *METHODS]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    for method in METHODS:
        for suffix in ("csv", "jsonl"):
            files = [tmp_path / f"{name}-{method}.{suffix}" for name in SETTINGS]
            assert len({file.read_bytes() for file in files}) == 1, (method, suffix)
            manifests = [read_manifest(file) for file in files]
            assert len({manifest.output_sha256 for manifest in manifests}) == 1
            assert [m.hash_seed for m in manifests] == [seed for seed, _ in SETTINGS.values()]
            assert [m.threads for m in manifests] == [int(n) for _, n in SETTINGS.values()]
