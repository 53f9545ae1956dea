"""The scale of numbers: whether logarithms describe it better, and who uses another unit."""

from __future__ import annotations

from dataclasses import dataclass

from wisecrowd.audit.number_view import NumberView, number_view
from wisecrowd.audit.part import Part
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.families.number_scales import different_scales, scale_findings


@dataclass(frozen=True, eq=False)
class ScaleReport(Part):
    """Skewness of the numbers about the median of their task.

    Attributes
    ----------
    scale : {"linear", "log"}
        The scale on which the disagreement is more symmetric. All parts of the audit use it.
    skewness, log_skewness : float
        Of the numbers and of their logarithms; the second is NaN if a number is not positive.
    own_scales : tuple of Finding
        Workers whose numbers are a multiple of those of the others.
    """

    scale: str
    skewness: float
    log_skewness: float
    own_scales: tuple[Finding, ...] = ()

    def findings(self) -> list[Finding]:
        """Return workers who use another scale, and the suggestion of a log scale."""
        if self.scale == "linear":
            return [*self.own_scales]
        how = for_reader('method="gaussian-em", scale="log"', "-m gaussian-em -p scale=log")
        return [*self.own_scales, Finding(
            "log-scale", "low", self.skewness - abs(self.log_skewness), (),
            f"The numbers of a task are skewed (skewness {self.skewness:.1f}), and their "
            f"logarithms are not ({self.log_skewness:.1f}); the score is the difference. The "
            "audit looked at the logarithms.",
            f"Errors seem to be factors rather than amounts: compare with a log scale ({how}).",
        )]  # fmt: skip


def check_scale(data: CrowdNumbers, *, view: NumberView | None = None) -> ScaleReport:
    """Return whether logarithms are more symmetric about their task than the numbers are.

    A log scale is suggested if all numbers are positive and the logarithm lowers the absolute
    skewness of the numbers about the median of their task by more than 1.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> task, worker = np.divmod(np.arange(1000), 10)
    >>> value = np.exp(rng.normal(3, 1, 100)[task] + rng.normal(0, 0.7, 1000))
    >>> check_scale(CrowdNumbers.from_arrays(task, worker, value)).scale
    'log'
    """
    view = number_view(data) if view is None else view
    own = tuple(scale_findings(data, different_scales(data)))
    return ScaleReport(view.scale, view.skewness, view.log_skewness, own)
