"""Agreement of votes: the sides of the items do not matter."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdPairs, CrowdSame, metrics
from wisecrowd.kinds.pairs.agreement import agreement_evidence


def test_votes_are_compared_by_items_and_not_by_sides():
    rng = np.random.default_rng(0)
    pair, worker = np.divmod(np.arange(120), 4)
    first, second = np.array([f"a{p}" for p in pair]), np.array([f"b{p}" for p in pair])
    outcome = rng.choice(["left", "right", "tie"], 120)
    turned = rng.random(120) < 0.5
    swapped = np.array([{"left": "right", "right": "left", "tie": "tie"}[one] for one in outcome])
    votes = CrowdPairs.from_arrays(
        None, worker, np.where(turned, second, first), np.where(turned, first, second),
        np.where(turned, swapped, outcome),
    )  # fmt: skip
    found = agreement_evidence(votes).coefficients
    alpha = metrics.krippendorff_alpha(pair, outcome)
    assert found["krippendorff_alpha"].value == pytest.approx(alpha)
    kappa = metrics.fleiss_kappa(pair, outcome)
    assert found["fleiss_kappa"].value == pytest.approx(kappa)


def test_votes_of_the_same_task_on_other_items_are_not_compared():
    votes = CrowdPairs.from_arrays(
        ["t"] * 4, list("abab"), ["x", "x", "x", "x"], ["y", "y", "z", "z"],
        ["left", "left", "right", "right"], duplicates="keep",
    )  # fmt: skip
    found = agreement_evidence(votes).coefficients
    assert found["percent_agreement"].value == 1.0


def test_same_or_different_is_an_outcome():
    votes = CrowdSame.from_arrays(
        None, list("abab"), ["x", "y", "x", "x"], ["y", "x", "z", "z"],
        ["same", "same", "same", "different"],
    )  # fmt: skip
    assert agreement_evidence(votes).coefficients["percent_agreement"].value == 0.5
