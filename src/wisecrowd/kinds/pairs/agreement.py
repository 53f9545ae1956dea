"""Agreement of votes: whether the workers who compared the same items gave the same answer."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.agreement_evidence import AgreementEvidence
from wisecrowd.core.types import Ints
from wisecrowd.kinds.classes.metrics.coefficients import (
    UnitLabels,
    alpha,
    brennan_prediger,
    chance_of,
    fleiss,
    gwet,
    nominal,
    percent_agreement,
)
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.outcomes import TIE


def agreement_evidence(data: CrowdPairs) -> AgreementEvidence:
    """Return the votes that count, with their coefficients.

    Votes of a task on the same two items are compared, whichever side these are on.

    Examples
    --------
    >>> votes = CrowdPairs.from_arrays(
    ...     None, ["ann", "bob", "ann", "bob"], ["x", "y", "x", "z"], ["y", "x", "z", "x"],
    ...     ["left", "right", "left", "left"])
    >>> agreement_evidence(votes).coefficients["percent_agreement"].value
    0.5
    """
    turned = data.left > data.right
    outcome = np.where(turned & (data.outcome < TIE), 1 - data.outcome, data.outcome)
    return votes_evidence(data, outcome if data.relation == "prefers" else data.outcome)


def votes_evidence(data: CrowdPairs, outcome: Ints) -> AgreementEvidence:
    """Return the coefficients of votes (n_annotations,) on unordered pairs of items."""
    low, high = np.minimum(data.left, data.right), np.maximum(data.left, data.right)
    order = np.lexsort((np.arange(len(low)), data.worker, high, low, data.task))
    keys = [one[order] for one in (data.task, low, high)]
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any([np.diff(key) != 0 for key in keys], axis=0)
    unit, worker = np.cumsum(new) - 1, data.worker[order]
    keep = np.ones(len(order), dtype=bool)  # of several votes of a worker the last one
    keep[:-1] = (np.diff(unit) != 0) | (np.diff(worker) != 0)
    if data.weight is not None:
        keep &= data.weight[order] > 0
    unit, worker, code = unit[keep], worker[keep], outcome[order][keep].astype(np.int64)
    classes, code = np.unique(code, return_inverse=True)
    labels = UnitLabels(unit, code.ravel(), int(new.sum()), len(classes))
    chance = chance_of(labels, nominal(len(classes)))
    return AgreementEvidence(
        task=keys[0][keep], worker=worker,
        coefficients={
            "krippendorff_alpha": alpha(labels, nominal(len(classes))),
            "percent_agreement": percent_agreement(chance),
            "fleiss_kappa": fleiss(chance),
            "gwet_ac1": gwet(chance),
            "brennan_prediger": brennan_prediger(chance),
        },
    )  # fmt: skip
