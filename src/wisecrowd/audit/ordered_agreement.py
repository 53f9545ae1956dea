"""Agreement of ordered classes: near misses count less than distant ones."""

from __future__ import annotations

from typing import Any

from wisecrowd.audit.agreement_report import AgreementReport, measure_agreement
from wisecrowd.core.labels import CrowdLabels


def measure_ordered_agreement(
    labels: CrowdLabels, *, random_state: Any = 0, **options: Any
) -> AgreementReport:
    """Measure the agreement with Krippendorff's alpha of the ordinal level.

    Parameters
    ----------
    labels : CrowdLabels
        Their classes are in order.
    random_state : int, Generator or None
    **options
        Further options of :func:`~wisecrowd.audit.measure_agreement`.

    Examples
    --------
    >>> labels = CrowdLabels.from_matrix([[0, 1], [2, 2], [1, 1], [0, 0]], classes=range(3))
    >>> report = measure_ordered_agreement(labels)
    >>> report.level, round(float(report.alpha[0]), 2)
    ('ordinal', 0.79)
    """
    return measure_agreement(
        labels, level="ordinal", order=labels.classes.tolist(), random_state=random_state, **options
    )
