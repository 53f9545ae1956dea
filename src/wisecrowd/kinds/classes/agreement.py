"""Agreement of classes: the coefficients of nominal, ordinal and interval labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.agreement_evidence import (
    AgreementEvidence,
    Measured,
    labels_that_count,
    sums_of,
)
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.parameter_checks import check_choice
from wisecrowd.core.types import Floats, Ints, Mask
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.metrics.agreement import (
    LEVELS,
    Level,
    alpha_at,
    class_positions,
)
from wisecrowd.kinds.classes.metrics.coefficients import (
    Distance,
    UnitLabels,
    brennan_prediger,
    chance_of,
    class_coefficients,
    fleiss,
    gwet,
    linear,
    nominal,
    ordinal,
    percent_agreement,
    quadratic,
)
from wisecrowd.kinds.classes.metrics.worker_kappas import Weights, pair_kappas

WEIGHTS: tuple[Weights, ...] = ("identity", "linear", "quadratic")
MOST_CLASSES = 100  # in the table of classes, the most frequent ones
MOST_PAIRS = 20_000_000  # pairs of labels in the table of pairs of workers: a few hundred MB


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassEvidence(AgreementEvidence):
    """Labels of classes, with coefficients of their level of measurement.

    Attributes
    ----------
    units : UnitLabels
        Tasks and classes; codes of classes are ranks at the ordinal level.
    classes : (n_classes,)
        Ids, by code.
    position : (n_classes,)
        Numbers of the classes at the interval level, else their ranks.
    level : "nominal", "ordinal" or "interval"
    """

    units: UnitLabels
    classes: NDArray[Any]
    position: Floats
    level: Level


def agreement_evidence(data: CrowdLabels, level: Level | None = None) -> ClassEvidence:
    """Return the labels that count, with their coefficients.

    Parameters
    ----------
    data : CrowdLabels
    level : {"nominal", "ordinal", "interval"}, optional
        By default "ordinal" if the classes are ordered, otherwise "nominal".

    Examples
    --------
    >>> data = CrowdLabels.from_matrix([[0, 0], [1, 1], [0, 1]])
    >>> found = agreement_evidence(data).coefficients
    >>> round(found["krippendorff_alpha"].value, 2), round(found["cohen_kappa"].value, 2)
    (0.44, 0.4)
    """
    if level is None:
        level = "ordinal" if data.ordered else "nominal"
    check_choice("level", level, LEVELS)
    data = labels_that_count(data)
    order = data.classes.tolist() if data.ordered and level == "ordinal" else None
    try:
        position = class_positions(data.classes, level, order)
    except DataError:
        if level != "ordinal":
            raise
        raise DataError(
            "The ordinal level needs classes in order, but these are "
            f"{describe_ids(data.classes)}; declare {option('scale', 'LOWEST,...,HIGHEST')}."
        ) from None
    code, classes = data.label.astype(np.int64), data.classes
    if level == "ordinal":
        rank = position.astype(np.int64)
        code, classes = rank[code], classes[np.argsort(rank, kind="stable")]
        position = np.arange(len(classes), dtype=np.float64)
    units = UnitLabels(data.task, code, data.n_tasks, len(classes))
    found = _coefficients(units, level, position)
    if len(np.unique(data.worker[units.several])) == 2:
        found |= _of_two(units, data.worker, level, position)
    return ClassEvidence(
        task=data.task, worker=data.worker, coefficients=found, units=units, classes=classes,
        position=position, level=level,
    )  # fmt: skip


def _coefficients(units: UnitLabels, level: Level, position: Floats) -> dict[str, Measured]:
    """Return the coefficients of any number of workers."""
    chance = chance_of(units, nominal(units.n_classes))
    found = {
        "krippendorff_alpha": alpha_at(level, units, position),
        "percent_agreement": percent_agreement(chance),
        "fleiss_kappa": fleiss(chance),
        "gwet_ac1": gwet(chance),
        "brennan_prediger": brennan_prediger(chance),
    }
    distances: dict[str, Distance] = {}
    if level != "nominal":
        distances |= {"linear": linear(position), "quadratic": quadratic(position)}
    if level == "ordinal":
        distances["ordinal"] = ordinal(units.n_classes)
    for name, distance in distances.items():
        chance = chance_of(units, distance)
        found |= {
            f"fleiss_kappa_{name}": fleiss(chance),
            f"gwet_ac2_{name}": gwet(chance),
            f"brennan_prediger_{name}": brennan_prediger(chance),
        }
    return found


def _of_two(units: UnitLabels, worker: Ints, level: Level, position: Floats) -> dict[str, Measured]:
    """Return the kappas of two workers, on the tasks that both have labelled."""
    both, K = units.several, units.n_classes
    common = UnitLabels(units.unit[both], units.code[both], units.n_units, K)
    indptr = np.append(0, np.cumsum(common.size))
    found = {"scott_pi": fleiss(chance_of(common, nominal(K)))}
    for weights in WEIGHTS[: 1 if level == "nominal" else 3]:
        pair = pair_kappas(
            indptr, common.unit, worker[both], common.code, K, min_common=1, weights=weights,
            position=position,
        )  # fmt: skip
        slope = sums_of(pair.task, pair.slope, units.n_units)[common.unit]
        shown = "cohen_kappa" if weights == "identity" else f"cohen_kappa_{weights}"
        found[shown] = Measured(float(pair.kappa[0]), slope / 2, slope)
    effects = np.zeros((2, len(both)))
    for name, one in found.items():
        effects[:, both] = one[1:3]
        found[name] = one._replace(of_task=effects[0].copy(), of_worker=effects[1].copy())
    return found


def class_evidence(evidence: ClassEvidence) -> AgreementEvidence:
    """Return the agreement on each of the most frequent classes.

    The coefficients are ``agreement K`` and ``kappa K`` for the class with the code K.
    """
    units = evidence.units
    count = np.bincount(units.code, units.several, units.n_classes)
    which = np.argsort(-count, kind="stable")[:MOST_CLASSES]
    which = np.sort(which[count[which] > 0])
    found: dict[str, Measured] = {}
    for k in which.tolist():
        found[f"agreement {k}"], found[f"kappa {k}"] = class_coefficients(units, k)
    return AgreementEvidence(task=evidence.task, worker=evidence.worker, coefficients=found)


@dataclass(frozen=True, eq=False)
class PairTable:
    """Agreement of pairs of workers with common tasks.

    Attributes
    ----------
    columns : mapping of name to (n_pairs,) array
        ``first`` and ``second`` (codes of workers), ``n_tasks``, ``percent_agreement``,
        ``cohen_kappa`` with ``low`` and ``high`` for other tasks, and, of ordered classes,
        ``kappa_linear`` and ``kappa_quadratic``.
    share : float
        Share of the tasks that were used, at random, because there are too many pairs.
    """

    columns: Mapping[str, NDArray[Any]]
    share: float


def worker_pairs(evidence: ClassEvidence, min_common: int = 2, level: float = 0.95) -> PairTable:
    """Return Cohen's kappa of all pairs of workers with so many common tasks."""
    from scipy.special import ndtri

    size = evidence.units.size.astype(np.float64)
    n_pairs, share = float((size * (size - 1) / 2).sum()), 1.0
    keep: Mask = np.ones(len(evidence.task), dtype=bool)
    if n_pairs > MOST_PAIRS:
        share = MOST_PAIRS / n_pairs
        keep = (np.random.default_rng(0).random(evidence.units.n_units) < share)[evidence.task]
    task, worker, code = evidence.task[keep], evidence.worker[keep], evidence.units.code[keep]
    indptr = np.append(0, np.cumsum(np.bincount(task, minlength=evidence.units.n_units)))
    common: Any = {"min_common": min_common, "position": evidence.position}
    found = pair_kappas(indptr, task, worker, code, len(evidence.classes), **common)
    reach = float(ndtri((1 + level) / 2)) * found.kappa_error
    columns = {
        "first": found.first, "second": found.second, "n_tasks": found.common,
        "percent_agreement": found.agreement, "cohen_kappa": found.kappa,
        "low": np.maximum(found.kappa - reach, -1), "high": np.minimum(found.kappa + reach, 1),
    }  # fmt: skip
    if evidence.level != "nominal":
        for weights in ("linear", "quadratic"):
            weighted = pair_kappas(
                indptr, task, worker, code, len(evidence.classes), weights=weights, **common
            )
            columns[f"kappa_{weights}"] = weighted.kappa
    return PairTable(columns, share)
