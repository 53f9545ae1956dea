"""Peak memory of a fit on 10^7 labels beyond the input codes, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.rows import Row

# Free what is free, and start the process's high-water mark again.
PEAK = """
import ctypes, gc
gc.collect()
try:
    ctypes.CDLL(None).malloc_trim(0)
except (AttributeError, OSError):
    pass
def resident():
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return 1024 * int(fields["VmRSS"].split()[0]), 1024 * int(fields["VmHWM"].split()[0])
with open("/proc/self/clear_refs", "w") as clear:
    clear.write("5")
"""
SCRIPT = f"""
import sys
import wisecrowd as wc
from benchmarks.rows import random_crowd
small, _ = random_crowd(200_000, 2)
wc.aggregation.DawidSkene(max_iter=2).fit(small)  # compiled and imported before the baseline
n = int(sys.argv[1])
labels, _ = random_crowd(n, 2)
{PEAK}
before, _ = resident()
wc.aggregation.DawidSkene(max_iter=10).fit(labels)
_, peak = resident()
print((peak - before) / n)
"""


def run(n_labels: int = 10_000_000) -> list[Row]:
    command = [sys.executable, "-c", SCRIPT, str(n_labels)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    per_label = float(result.stdout)
    what = "10^7 labels, K = 2: peak memory beyond the input codes"
    return [Row(what, "≤ 60 bytes per label", f"{per_label:.1f} bytes per label", per_label <= 60)]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
