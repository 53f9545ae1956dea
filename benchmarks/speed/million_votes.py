"""Bradley-Terry beside evalica's, in one process: 10^6 votes on 1000 items, from text to scores.

Both get lists of text ids. evalica returns scores; wisecrowd also intervals, ranges of ranks and a
covariance. Run it with OMP_NUM_THREADS=1: the figures are processor time.
"""

from __future__ import annotations

import numpy as np

from benchmarks.rows import Row, cpu_seconds
from wisecrowd.kinds.pairs.methods.bradley_terry import BradleyTerry
from wisecrowd.kinds.pairs.methods.crowd_bt import CrowdBT

BAR, CROWD_BAR = 1.0, 5.0


def text_votes(n_votes: int, n_items: int = 1000, n_workers: int = 1000):
    """Return lists of left and right ids, whether left won, and workers."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=n_items)
    left = rng.integers(0, n_items, n_votes)
    right = (left + rng.integers(1, n_items, n_votes)) % n_items
    won = rng.random(n_votes) < 1 / (1 + np.exp(score[right] - score[left]))
    numbers = rng.integers(0, 10**6, n_items)
    names = np.array([f"model-{a:04d}-{b}" for a, b in enumerate(numbers)], dtype=object)
    workers = np.array([f"worker-{j:04d}" for j in range(n_workers)], dtype=object)
    who = workers[rng.integers(0, n_workers, n_votes)].tolist()
    return names[left].tolist(), names[right].tolist(), won.tolist(), who


def run(n_votes: int = 1_000_000, repeat: int = 5) -> list[Row]:
    import evalica

    left, right, won, who = text_votes(n_votes)
    winners = [evalica.Winner.X if one else evalica.Winner.Y for one in won]
    outcome = ["left" if one else "right" for one in won]

    def theirs():
        return evalica.bradley_terry(left, right, winners)

    def ours():
        return BradleyTerry().fit((left, right, outcome))

    def crowd():
        return CrowdBT().fit((who, left, right, outcome))

    def closeness() -> float:
        scores, fit = theirs().scores, ours()
        logs = np.log([scores[item] for item in fit.items_.tolist()])
        return float(np.corrcoef(logs, fit.scores_)[0, 1])

    alike = closeness()
    crowd()  # compiled
    # Alternating, because the machine's speed changes while this runs.
    times = np.array([[cpu_seconds(job) for job in (theirs, ours, crowd)] for _ in range(repeat)])
    evalica_time, mine, crowd_time = times.min(axis=0)
    what = "10^6 votes on 1000 items with text ids, one process, CPU time: "
    return [
        Row(what + "BradleyTerry against evalica", f"≤ {BAR:.1f}×",
            f"{mine / evalica_time:.2f}× ({mine:.2f} against {evalica_time:.2f} s; "
            f"correlation of scores {alike:.4f})", mine <= BAR * evalica_time),
        Row(what + "CrowdBT against evalica's Bradley-Terry", f"≤ {CROWD_BAR:.0f}×",
            f"{crowd_time / evalica_time:.2f}× ({crowd_time:.2f} s)",
            crowd_time <= CROWD_BAR * evalica_time),
    ]  # fmt: skip


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
