"""What the next labels would do to the confidence, on the least certain tasks or spread over all.

The fit's label law simulates the new labels: a class is drawn from each task's posterior, workers
are drawn by their label counts, and the posterior is updated. The share of simulated classes that
the posterior finds is the model's own expectation of its confidence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.families.confusion import safe_log
from wisecrowd.inference.label_law import LabelLaw
from wisecrowd.kernels.posteriors import log_normalise

Floats = NDArray[np.float64]

MOST_NEXT = 1000  # labels to buy, and never more than there are now
N_ROUNDS = 10  # after each round the least certain tasks are chosen again, as `wisecrowd next` does
POOL = 4 * MOST_NEXT  # least certain tasks at the start, among which the rounds choose
N_REPEATS = 3  # simulations, whose mean is returned; more for few tasks
FEWEST_DRAWN = 2000  # simulated tasks
DIGITS = 9  # probabilities that agree to so many decimals are ties


def next_labels(
    posterior: Floats, law: LabelLaw, tasks: Any, busy: Floats, n_labels: int, seed: int
) -> dict[str, Any]:
    """Return the mean confidence before and after the next labels.

    Parameters
    ----------
    posterior : (n, K)
        Posterior of some tasks.
    law : LabelLaw
    tasks : (n,) int
        Codes of these tasks in the law.
    busy : (n_workers,)
        Share of each worker among new labels.
    n_labels : int
        Number of labels so far.
    seed : int

    Returns
    -------
    dict
        The number ``n`` of labels, and the mean confidence ``before`` and ``after`` labels on the
        least certain tasks, and ``after_even`` if they are spread over all.
    """
    n_next = min(MOST_NEXT, n_labels)
    before = float(posterior.max(axis=1).mean())
    pool = _least_certain(posterior, POOL)
    after = {}
    for policy in ("uncertain", "even"):
        rng = np.random.default_rng([seed, len(policy)])
        some = pool if policy == "uncertain" else np.arange(len(tasks))
        given = posterior[some], law, tasks[some], busy
        gains = [
            _gain(*given, n_next, policy, rng)
            for _ in range(max(N_REPEATS, FEWEST_DRAWN // len(tasks)))
        ]
        after[policy] = float(np.clip(before + np.mean(gains) / len(tasks), before, 1))
    return {
        "n": n_next, "before": before, "after": after["uncertain"], "after_even": after["even"],
    }  # fmt: skip


def _gain(
    posterior: Floats,
    law: LabelLaw,
    tasks: Any,
    busy: Floats,
    n_next: int,
    policy: str,
    rng: Any,
) -> float:
    """Return how many more of the simulated classes are found after one simulation."""
    n, K = posterior.shape
    truth = (rng.random((n, 1)) > posterior.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)
    now = posterior.copy()
    size = min(-(-n_next // N_ROUNDS), n)
    for done in range(0, n_next, size):
        some = min(size, n_next - done)
        chosen = _least_certain(now, some) if policy == "uncertain" else rng.permutation(n)[:some]
        worker = rng.choice(len(busy), len(chosen), p=busy)
        label = law.draw(truth[chosen], worker, tasks[chosen], rng)
        seen = law.log_prob(label[:, None], np.arange(K), worker[:, None], tasks[chosen][:, None])
        now[chosen] = log_normalise(safe_log(now[chosen]) + seen)[0]
    right = now.argmax(axis=1) == truth
    was = posterior.argmax(axis=1) == truth
    return float(right.sum() - was.sum())


def _least_certain(posterior: Floats, size: int) -> NDArray[np.intp]:
    """Return the tasks with the largest entropy; ties are broken by their order."""
    entropy = -(posterior * safe_log(posterior)).sum(axis=1).round(DIGITS)
    return np.argsort(-entropy, kind="stable")[:size]
