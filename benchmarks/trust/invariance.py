"""Metamorphic relations on random crowds, for every method: what says nothing new changes nothing.

Also whether the objective is what it should be, and Dawid and Skene's own table at convergence.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from tests.support.objective import (
    OBJECTIVES,
    largest_fall,
    monotone_methods,
    objective_gap,
    random_labels,
)
from tests.support.relations import RELATIONS, Difference, Relation, compare

from benchmarks.rows import Row
from wisecrowd import CrowdLabels, datasets
from wisecrowd.aggregation import DawidSkene
from wisecrowd.core.exceptions import WisecrowdError, WisecrowdWarning
from wisecrowd.core.kinds import KINDS
from wisecrowd.core.registry import get_method, kebab_case, method_names
from wisecrowd.testing import maker
from wisecrowd.testing.crowds import columns_of, n_classes_for, simulated
from wisecrowd.testing.foundation import dense, numbers_of, short_run

CROWDS = 8
RUNS = 1000
ROUNDING = 1e-9
ITEM_ROUNDING = 1e-5  # scores of items are optimised up to this
ANAESTHETISTS = (0.39955475, 0.42198339, 0.11179519, 0.06666667)


def crowd(seed: int, n_classes: int, noise: bool = False) -> CrowdLabels:
    """Return asymmetric workers on skewed classes, or the same with labels at random."""
    rng = np.random.default_rng(seed)
    labels = simulated(int(rng.integers(8, 40)), 7, n_classes, 4, seed).labels
    if not noise:
        return labels
    drawn = rng.integers(0, n_classes, labels.n_annotations).astype(np.int32)
    return CrowdLabels(
        labels.task, labels.worker, drawn, labels.tasks, labels.workers, labels.classes
    )


def differences(relation: Relation, noise: bool = False) -> dict[str, list[Difference]]:
    """Return what a relation changed, by method."""
    found: dict[str, list[Difference]] = {}
    for name in method_names():
        make = maker(get_method(name))
        for seed in range(CROWDS):
            labels = crowd(seed, n_classes_for(make), noise)
            try:
                difference = compare(make, relation, labels, np.random.default_rng(seed))
            except WisecrowdError:
                continue  # too small a crowd for a moment method, which says so
            if difference is not None:
                found.setdefault(name, []).append(difference)
                if difference.labels or difference.probas > ROUNDING:
                    print(f"{name}, {relation.name}, crowd {seed}: {difference}", file=sys.stderr)
    return found


def relation_row(relation: Relation) -> Row:
    found = differences(relation)
    every = [difference for several in found.values() for difference in several]
    labels = sum(difference.labels for difference in every)
    largest = max(difference.probas for difference in every)
    same = all(difference.bits for difference in every)
    what = f"{relation.name}: {len(found)} methods, {len(every)} pairs of fits"
    if relation.same_bits:
        return Row(what, "the same bits", "the same bits" if same else f"{largest:.1e}", same)
    return Row(
        what, "0 other labels outside ties, |Δp| ≤ 1e-9",
        f"{labels} other labels, |Δp| ≤ {largest:.1e}", labels == 0 and largest <= ROUNDING,
    )  # fmt: skip


def noise_row() -> Row:
    """Report pure noise apart: there the corners and groups that moment methods look for tie."""
    other: set[str] = set()
    n_pairs, n_other = 0, 0
    for relation in RELATIONS:
        for name, several in differences(relation, noise=True).items():
            wrong = sum(bool(d.labels) or d.probas > ROUNDING for d in several)
            n_pairs, n_other = n_pairs + len(several), n_other + wrong
            other |= {name} if wrong else set()
    told = f"{n_other} of {n_pairs} pairs of fits" + (
        f" ({', '.join(sorted(other))})" * bool(other)
    )
    return Row("all relations on labels that are pure noise: beyond rounding", "reported", told)


def item_name_row() -> Row:
    """Report whether names of items move scores, ranges of ranks or P(best), pairs and rankings."""
    fits, moved = 0, []
    for kind in (KINDS["pairs"], KINDS["rankings"]):
        reverse = next(one for one in kind.symmetries if one.name == "reversing the items")
        for name in map(kebab_case, kind.method_modules()):
            make = maker(get_method(name))
            for seed in range(CROWDS):
                data = kind.example_crowd(make, seed)
                first, second = make().fit(data), make().fit(reverse.change(data))
                fits += 1
                for attribute, expected in reverse.expected(vars(first)).items():
                    if np.abs(expected - getattr(second, attribute)).max() > ITEM_ROUNDING:
                        moved.append(f"{name}, {attribute}, crowd {seed}")
    print("\n".join(moved), file=sys.stderr)
    return Row(f"renaming of items: scores, ranges of ranks and P(best), {fits} pairs of fits",
               "0 moved", f"{len(moved)} moved", not moved)  # fmt: skip


def half_weight_row() -> Row:
    """Report fits of all rows twice at weight 1/2, of methods that promise to count them once."""
    fits, moved, without = 0, [], []
    for kind in KINDS.values():
        for name in map(kebab_case, kind.method_modules()):
            make = maker(get_method(name))
            if not make().tags().exact_replication:
                without.append(name)
                continue
            data = kind.example_crowd(make, 0)
            columns, build = columns_of(data), type(data).from_arrays
            twice = build(*(np.repeat(column, 2) for column in columns), duplicates="keep",
                          weight=np.full(2 * len(columns[0]), 0.5))  # fmt: skip
            first, second = short_run(make).fit(build(*columns)), short_run(make).fit(twice)
            fits += 1
            # Standard errors count rows, and a repeated row is another look.
            for one in [one for one in numbers_of(first) if one != "worker_accuracy_error_"]:
                gap = np.abs(dense(getattr(first, one)) - dense(getattr(second, one)))
                if gap.max(initial=0.0) > ITEM_ROUNDING:
                    moved.append(f"{name}, {one}")
    print("\n".join(moved), file=sys.stderr)
    told = f"{len(moved)} moved; {len(without)} methods promise nothing ({', '.join(without)})"
    return Row(f"all rows twice at weight ½, {fits} methods", "0 moved", told, not moved)


def objective_rows() -> list[Row]:
    methods = monotone_methods()
    makes = [maker(get_method(name)) for name in methods]
    falls = [largest_fall(makes[run % len(makes)], run) for run in range(RUNS)]
    good = sum(fall <= ROUNDING for fall in falls)
    gaps = {name: max(objective_gap(name, random_labels(seed)) for seed in range(30))
            for name in OBJECTIVES}  # fmt: skip
    worst = max(gaps, key=lambda name: gaps[name])
    return [
        Row(f"objective never falls, {len(methods)} methods", f"{RUNS} of {RUNS} random runs",
            f"{good} of {RUNS}; largest relative fall {max(falls):.1e}", good == RUNS),
        Row(f"objective is log-likelihood plus log prior, {len(gaps)} models × 30 crowds",
            "≤ 1e-8", f"{gaps[worst]:.1e} ({worst})", gaps[worst] <= 1e-8),
    ]  # fmt: skip


def anaesthetists_rows() -> list[Row]:
    model = DawidSkene(prior=None, tol=1e-14, max_iter=5000).fit(datasets.anaesthetists())
    prior, value = model.class_prior_, model.history_[-1]
    off = float(np.abs(prior - ANAESTHETISTS).max())
    return [
        Row("Dawid & Skene 1979, class prior", "± 1e-6 of " + " ".join(map(str, ANAESTHETISTS)),
            " ".join(f"{share:.8f}" for share in prior), off <= 1e-6),
        Row("Dawid & Skene 1979, log-likelihood", "-192.890881 ± 1e-6", f"{value:.6f}",
            abs(value + 192.890881) <= 1e-6),
    ]  # fmt: skip


def run() -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)
        return [
            *(relation_row(relation) for relation in RELATIONS),
            item_name_row(),
            half_weight_row(),
            noise_row(),
            *objective_rows(),
            *anaesthetists_rows(),
        ]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
