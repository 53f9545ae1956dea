"""Advice on grades: whether ordinal-latent predicts held-out labels better than the default."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wisecrowd.core.annotations import Annotations

RIVAL = "ordinal-latent"
MOST_LABELS = 5000  # above, the comparison would take longer than a few seconds
LEAST_HIDDEN = 100  # labels to score; with fewer the scores are noise
CLEAR = 2.0  # standard errors of the difference


def better_than_thresholds(labels: Annotations) -> str | None:
    """Return a sentence if the rival clearly predicts held-out labels better, else None.

    The default is represented by thresholds of hierarchical-dawid-skene, because a choice for each
    cut of each fold would take ten times as long.
    """
    from wisecrowd.core.exceptions import DataError, WisecrowdWarning
    from wisecrowd.core.labels import CrowdLabels
    from wisecrowd.core.registry import get_method
    from wisecrowd.inference.held_out_labels import paired_difference
    from wisecrowd.inference.scorers import OrderedScorer

    if not isinstance(labels, CrowdLabels) or labels.n_classes < 3:
        return None
    if labels.n_annotations > MOST_LABELS:
        return None
    scorer = OrderedScorer()
    plan = scorer.plan(labels)
    if plan.n_hidden < LEAST_HIDDEN:
        return None
    first = get_method("thresholds")(method="hierarchical-dawid-skene")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)
        try:
            own, rival = (
                scorer.score_held_out(made.fit, plan) for made in (first, get_method(RIVAL)())
            )
        except DataError:  # the visible labels may not allow a fit
            return None
    lead, error = paired_difference(rival, own)
    if not lead > CLEAR * error:  # also false for an undefined error
        return None
    return (
        f"{RIVAL} predicts held-out labels better than thresholds (log-probability "
        f"{lead:+.2f} ± {error:.2f} per label): try -m {RIVAL}"
    )
