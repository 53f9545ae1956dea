"""Whether probabilities can be believed: calibration against the oracle, who knows all parameters.

``python -m benchmarks.trust.confidence``; ``python -m replays.calibration`` prints all methods.
Belief propagation has the kind of prior that the condition calls for, not its parameters: one coin,
Dirichlet rows for Dirichlet confusion, and an estimated class prior for 95/5 imbalance. Where
workers have few labels much depends on the parameters; there they are fitted to the labels, without
truth (``fit_prior``), and Gibbs sampling gets the same prior. Dirichlet rows are integrated over
with 128 nodes per worker instead of 512, to save time; on a crowd of another seed 64, 128 and 256
nodes agreed to .001 in ECE and log loss.

The oracle knows every worker. Nobody who sees labels alone can: "who knows the prior" is belief
propagation with the very prior that the workers of a one-coin condition were drawn from.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from replays.calibration import dense, figures

import wisecrowd as wc
from benchmarks.rows import Row
from benchmarks.trust.conditions import CONDITIONS, HONEST, Condition, oracle
from wisecrowd.audit import find_temperature
from wisecrowd.core.answers import ONE_WORKER
from wisecrowd.core.exceptions import WisecrowdError
from wisecrowd.core.kinds import KINDS
from wisecrowd.core.registry import get_method, kebab_case
from wisecrowd.inference.priors import DirichletRows, OneCoinPrior
from wisecrowd.testing import maker
from wisecrowd.testing.humility import CASES, ROUNDING, TOLD

WELL_SPECIFIED = tuple(condition for condition in CONDITIONS if condition.well_specified)
FEW_LABELS = 20  # per worker, below which the prior's parameters are fitted
SOME_SURE = 0.01  # with fewer sure labels an error among them is not counted


def few_labels(made) -> bool:
    return made.labels.n_annotations < FEW_LABELS * made.labels.n_workers


def fitted_prior(made):
    """Return the one-coin prior under which the labels have the highest evidence."""
    return wc.aggregation.BeliefPropagation(fit_prior=True).fit(made.labels).prior_


def belief_propagation(condition: Condition, made):
    K, options = made.labels.n_classes, {}
    if condition.name == "Dirichlet confusion":
        options = {"prior": DirichletRows(np.ones((K, K)) + 3 * np.eye(K)), "n_nodes": 128}
    if few_labels(made):
        options["prior"] = fitted_prior(made)
    if "imbalance" in condition.name:
        options["class_prior"] = "estimate"
    return wc.aggregation.BeliefPropagation(**options).fit(made.labels).probas_


def gibbs(condition: Condition, made):
    prior = fitted_prior(made) if few_labels(made) else "weak"
    return (
        wc.aggregation.GibbsDawidSkene(prior=prior, n_chains=8, n_sweeps=150)
        .fit(made.labels)
        .probas_
    )


def knows_the_prior(made) -> np.ndarray:
    """Return the posterior of who knows from which one-coin prior workers were drawn."""
    prior = OneCoinPrior(HONEST.a, HONEST.b)
    return wc.aggregation.BeliefPropagation(prior=prior).fit(made.labels).probas_


def dawid_skene(condition: Condition, made):
    model = wc.aggregation.DawidSkene().fit(made.labels)
    return find_temperature(made.labels, fit=model).apply(model.probas_)


METHODS = {
    "DawidSkene, corrected": dawid_skene,
    "BeliefPropagation": belief_propagation,
    "GibbsDawidSkene": gibbs,
}


def humility_rows() -> list[Row]:
    """Return claims about labels that show little, of all methods of all kinds, and told ones."""
    made, over, told = 0, [], []
    for kind in KINDS.values():
        for name in map(kebab_case, kind.method_modules()):
            make = maker(get_method(name))
            for case in CASES[kind.name](make()):
                try:
                    fitted = make().fit(case.data)
                except WisecrowdError:
                    continue  # too few labels for this method, which says so
                made += 1
                ids = {finding.id for finding in fitted.findings_}
                lacks = case.alone and ONE_WORKER not in ids
                if not lacks and case.excess(fitted) <= ROUNDING:
                    continue
                (told if not case.alone and ids & set(TOLD) else over).append((name, case.what))
    for name, what in over:
        print(f"... overconfident: {name}, {what}", file=sys.stderr, flush=True)
    methods = sorted({name for name, _ in told})
    what = f"ties and single workers, {made} fits of all methods of {len(KINDS)} kinds"
    return [
        Row(f"{what}: overconfident", "0", str(len(over)), not over),
        Row(f"{what}: claims that a finding takes back", "reported",
            f"{len(told)}" + f" ({', '.join(methods)})" * bool(methods)),
    ]  # fmt: skip


def run(n_seeds: int = 3) -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = humility_rows()
    return [*rows, *calibration_rows(n_seeds)]


def calibration_rows(n_seeds: int = 3) -> list[Row]:
    worst = {name: {"ece": [], "sure": [], "loss": []} for name in METHODS}
    for condition in WELL_SPECIFIED:
        table = {name: [] for name in ["oracle", *METHODS]}
        floor = []  # log loss of who knows the prior, where workers have few labels
        for seed in range(n_seeds):
            made = condition.make(seed)
            table["oracle"].append(figures(oracle(made), made.truth_codes))
            if few_labels(made):
                floor.append(figures(knows_the_prior(made), made.truth_codes)[2])
            for name, method in METHODS.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    probas = dense(method(condition, made))
                table[name].append(figures(probas, made.truth_codes))
        mean = {name: np.mean(values, axis=0) for name, values in table.items()}
        _, ece, loss, _, _ = mean["oracle"]
        name_and_floor = condition.name
        if floor:
            name_and_floor += f", where who knows the prior has {np.mean(floor) / loss:.2f}"
        for name in METHODS:
            _, own_ece, own_loss, sure, wrong = mean[name]
            error = wrong / sure if sure > SOME_SURE else 0.0
            worst[name]["ece"].append((own_ece - ece, condition.name))
            worst[name]["sure"].append((error, condition.name))
            worst[name]["loss"].append((own_loss / loss, name_and_floor))
            print(
                f"... {condition.name}, {name}: ECE {own_ece:.3f} (oracle {ece:.3f}), log loss "
                f"{own_loss:.3f} ({own_loss / loss:.2f} of {loss:.3f}), {error:.2%} wrong of "
                f"{sure:.0%} above .99", file=sys.stderr, flush=True,
            )  # fmt: skip
    return [row for name in METHODS for row in _rows(name, worst[name])]


def _rows(name: str, found: dict[str, list[tuple[float, str]]]) -> list[Row]:
    n = len(WELL_SPECIFIED)
    rows = []
    for key, what, bar, form, most in (
        ("ece", "ECE above the oracle's", "≤ .02", "{:+.3f}", 0.02),
        ("sure", "error above .99 confidence", "≤ 1.5%", "{:.2%}", 0.015),
        ("loss", "log loss / the oracle's", "≤ 1.35", "{:.2f}", 1.35),
    ):
        over = [c for value, c in found[key] if value > most]
        value, where = max(found[key])
        text = f"at most {form.format(value)} ({where}); {n - len(over)} of {n} conditions meet it"
        if over:
            text += f"; not {', '.join(over)}"
        rows.append(Row(f"{name}, {n} well-specified conditions: {what}", bar, text, not over))
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
