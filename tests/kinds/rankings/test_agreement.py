"""Agreement of rankings against Kendall's tau of all pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kendalltau

from wisecrowd import CrowdRankings
from wisecrowd.kinds.rankings.agreement import agreement_evidence


def test_tau_is_the_mean_of_all_pairs():
    rng = np.random.default_rng(0)
    task, worker = np.divmod(np.arange(20), 4)
    places = np.array([rng.permutation(5) for _ in range(20)])
    texts = [" > ".join(f"x{a}" for a in np.argsort(row)) for row in places]
    data = CrowdRankings.from_arrays(task, worker, texts)
    pairs = [(a, b) for a, b in combinations(range(20), 2) if task[a] == task[b]]
    expected = np.mean([kendalltau(places[a], places[b]).statistic for a, b in pairs])
    found = agreement_evidence(data).coefficients["kendall_tau"]
    assert found.value == pytest.approx(expected)
    assert found.of_task.sum() == pytest.approx(0)
