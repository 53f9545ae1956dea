"""Accuracy of the aggregated labels, estimated with little gold or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.default_fit import fit_or_default
from wisecrowd.audit.parametric_bootstrap import BootstrapResult, run_bootstrap
from wisecrowd.audit.part import Part, Table
from wisecrowd.audit.strata import Stratified, post_stratify
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.findings import Finding
from wisecrowd.core.gold import as_gold
from wisecrowd.core.parameter_checks import as_generator, check_integer, check_number
from wisecrowd.core.validation import as_crowd_labels

Floats = NDArray[np.float64]

MOST_ANNOTATIONS = 2_000_000  # simulated labels in total, if the number of crowds is not given
SUSPICIOUS = 1e-3  # p-value below which the model does not fit the labels
NEARLY_ALL = 0.995  # an estimate above is not given to more digits
OVERCONFIDENT = 0.02  # minimum difference from gold to report


@dataclass(frozen=True, eq=False)
class Accuracy(Part):
    """Estimates of the share of tasks whose aggregated label is correct.

    Attributes
    ----------
    n_tasks, n_gold : int
        Number of tasks with labels, and of those with gold. Other tasks do not count.
    confidence : float
        Nominal coverage of the intervals.
    method : (n_methods,) str
        "posterior": mean of the largest probabilities. "simulation": the same, corrected by
        simulated crowds. "gold": accuracy on gold, post-stratified; only with gold.
    value, low, high : (n_methods,)
    misfit : float
        Excess correlation of errors on the same task over simulated crowds, in standard
        deviations. Far from 0 the model is wrong, and estimates without gold are usually too high.
        With few tasks or labels, the model may be wrong even if the value is near 0.
    misfit_p : float
        Its p-value.
    strata : mapping
        Ranges of the confidence with their tasks, gold and accuracy; only with gold.
    """

    n_tasks: int
    n_gold: int
    confidence: float
    method: NDArray[Any]
    value: Floats
    low: Floats
    high: Floats
    misfit: float
    misfit_p: float
    strata: Table

    @property
    def best(self) -> tuple[float, float, float]:
        """Value, low and high of the most reliable method: gold if available."""
        return float(self.value[-1]), float(self.low[-1]), float(self.high[-1])

    def findings(self) -> list[Finding]:
        """Return findings on the accuracy and on the reliability of the probabilities."""
        value, low, high = self.best
        source = "from gold" if self.n_gold else "if workers err independently, on tasks alike"
        found = [
            Finding(
                "accuracy", "info", value, (),
                f"{_about(value)} of the aggregated labels are correct ({low:.1%} to {high:.1%}, "
                f"{source}; the probabilities claim {self.value[0]:.1%}).",
                "Collect more labels for the least certain tasks if this is too low.",
            )
        ]  # fmt: skip
        if self.misfit_p < SUSPICIOUS and not self.n_gold:
            found.append(
                Finding(
                    "accuracy-uncertain", "low", abs(self.misfit), (),
                    f"Labels of a task err together {'more' if self.misfit > 0 else 'less'} than "
                    f"the model explains ({self.misfit:.1f} standard deviations): tasks differ in "
                    "difficulty or workers are not independent, and the accuracy may be lower "
                    "than the labels alone say.",
                    "Find out the classes of some 50 tasks drawn at random, and give them as gold.",
                )
            )  # fmt: skip
        return found + self._overconfident()

    def _overconfident(self) -> list[Finding]:
        if not self.n_gold:
            return []
        reach = self.high[-1] - self.low[-1]
        # Outside the interval by half its width, four standard errors in total: not chance.
        gap = float(self.value[0] - self.high[-1])
        if gap < max(reach / 2, OVERCONFIDENT):
            return []
        return [
            Finding(
                "overconfident", "medium", gap, (),
                f"The probabilities claim that {self.value[0]:.1%} of the labels are correct, but "
                f"by gold it is {self.value[-1]:.1%} (at most {self.high[-1]:.1%}).",
                "Do not use the probabilities as they are; look for workers who copy, and try "
                "methods that know hard tasks, such as glad.",
            )
        ]  # fmt: skip

    def tables(self) -> dict[str, Table]:
        """Return ``accuracy``, one row per method, and with gold ``accuracy_strata``."""
        found: dict[str, Table] = {
            "accuracy": {
                "method": self.method,
                "accuracy": self.value,
                "low": self.low,
                "high": self.high,
            }
        }
        return found | ({"accuracy_strata": self.strata} if self.n_gold else {})


def _about(share: float) -> str:
    """Return a share as the start of a sentence; an estimate is never 100%."""
    return f"About {share:.1%}" if share < NEARLY_ALL else "More than 99%"


def estimate_accuracy(
    labels: Any,
    *,
    gold: Any = None,
    fit: Any = None,
    source: Any = None,
    n_simulations: int | None = None,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> Accuracy:
    r"""Estimate the accuracy of aggregated labels from the posterior, simulations and gold.

    The accuracy under the posterior, :math:`C = \frac1N \sum_i \max_k q_i(k)`, is too high if
    workers have few labels. The parametric bootstrap estimates the bias: crowds are simulated from
    the fit and fitted again, and their accuracy :math:`A^*` is known. With :math:`\delta = A^* -
    C^*` the corrected estimate is :math:`C + \bar\delta`. A second bootstrap within each simulated
    crowd gives the error of that estimate and thus the width of the interval. Both assume that the
    model is right; otherwise only gold helps. Gold is compared with the labels in strata of
    confidence.

    Parameters
    ----------
    labels : CrowdLabels or data of any accepted form
    gold : mapping from task to class, (task, label) frame, or (n_tasks,) array with None
        Known classes of tasks that were selected independently of their labels.
    fit : fitted method, optional
        Method whose labels are assessed; it must not have seen the gold. Default: Auto.
    source : fitted method, optional
        Fit of these labels with a label law, from which crowds are simulated if ``fit`` has no
        law. Default: Auto.
    n_simulations : int, optional
        Number of simulated crowds, with two fits each. The default is 20, and fewer for very many
        labels.
    confidence : float, default 0.95
    random_state : int, Generator or None

    References
    ----------
    B. Efron, R. Tibshirani (1993). An Introduction to the Bootstrap. Chapman & Hall.

    P. Hall (1986). On the bootstrap and confidence intervals. Annals of Statistics 14(4).

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> from wisecrowd.aggregation import DawidSkene
    >>> crowd = simulate.crowd(300, 30 * simulate.OneCoinWorkers(4, 2), simulate.PerTask(4))
    >>> gold = dict(enumerate(crowd.truth[:60]))
    >>> fit = DawidSkene().fit(crowd.labels)
    >>> found = estimate_accuracy(crowd.labels, gold=gold, fit=fit, n_simulations=5)
    >>> found.method.tolist()
    ['posterior', 'simulation', 'gold']
    >>> bool(found.value[1] < found.value[0]), found.n_gold  # too much is claimed
    (True, 60)
    """
    check_number("confidence", confidence, 0.0, 1.0)
    known = as_crowd_labels(labels)
    rng = as_generator(random_state)
    model = fit_or_default(known, source if fit is None else fit)
    labelled = known.labels_per_task > 0
    if len(model.labels_) != known.n_tasks:
        raise DataError(
            f"The fit is of {len(model.labels_)} tasks and the labels are of {known.n_tasks}; "
            "give the fit of these labels."
        )
    sure = np.asarray(model.confidence_)[labelled]
    if n_simulations is None:
        n_simulations = int(np.clip(MOST_ANNOTATIONS / known.n_annotations, 5, 20))
    check_integer("n_simulations", n_simulations, 3)
    imagined = run_bootstrap(known, model, n_simulations, rng, source)
    rows = [_claimed(sure, confidence), _corrected(sure.mean(), imagined, confidence)]
    codes = as_gold(gold, known)
    strata: Stratified | None = None
    if codes is not None and (codes[labelled] >= 0).any():
        right = model.labels_ == known.classes[np.maximum(codes, 0)]
        strata = post_stratify(sure, right[labelled], codes[labelled] >= 0, confidence)
        rows.append((strata.value, strata.low, strata.high))
    value, low, high = np.array(rows).T
    return Accuracy(
        n_tasks=int(labelled.sum()),
        n_gold=0 if strata is None else int(strata.table["n_gold"].sum()),
        confidence=confidence,
        method=np.array(["posterior", "simulation", "gold"][: len(rows)], dtype=object),
        value=value,
        low=np.clip(low, 0, 1),
        high=np.clip(high, 0, 1),
        misfit=imagined.misfit,
        misfit_p=imagined.misfit_p,
        strata={} if strata is None else strata.table,
    )


def _claimed(sure: Floats, confidence: float) -> tuple[float, float, float]:
    """Return the accuracy under the posterior: the mean of independent draws, one per task."""
    from scipy.special import ndtri

    value = float(sure.mean())
    reach = float(ndtri((1 + confidence) / 2) * np.sqrt((sure * (1 - sure)).sum()) / len(sure))
    return value, value - reach, value + reach


def _corrected(
    claimed: float, imagined: BootstrapResult, confidence: float
) -> tuple[float, float, float]:
    r"""Correct the posterior accuracy by simulated crowds, whose errors give the interval.

    An error :math:`e = \delta - \delta^*` of a simulated crowd has the noise of one
    :math:`\delta^*`, but the estimate uses a mean of many, so the variance of that noise is
    subtracted. The mean error is not corrected again; it widens the interval.
    """
    from scipy.special import stdtrit

    n = len(imagined.gap)
    noise = float(imagined.gap.var(ddof=1))
    error = imagined.gap - imagined.gap_within
    variance = max(float(error.var(ddof=1)) - noise, noise) * (1 + 1 / n)
    value = claimed + float(imagined.gap.mean())
    reach = float(stdtrit(n - 1, (1 + confidence) / 2)) * np.sqrt(
        variance + float(error.mean()) ** 2
    )
    return min(max(value, 0.0), 1.0), value - reach, value + reach
