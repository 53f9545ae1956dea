"""How sure methods are and how often right, on thirteen simulated conditions.

``python -m replays.calibration`` runs all methods; ``--methods DawidSkene OneCoin`` some of them.
Accuracy, expected calibration error, log loss, and the error among labels claimed with more than
.99, beside the oracle, who knows all parameters, and majority vote. "corrected" is the temperature
that is chosen without truth (``wisecrowd.audit.find_temperature``).
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np
from benchmarks.trust.conditions import CONDITIONS, Condition, oracle

import wisecrowd as wc
from replays.feature_free import finish
from wisecrowd.audit import find_temperature
from wisecrowd.core.exceptions import WisecrowdError
from wisecrowd.kinds.classes.methods import METHODS
from wisecrowd.metrics import expected_calibration_error, log_loss

CORRECTED = ("DawidSkene", "OneCoin", "MeanField")
SURE = 0.99
LEAST = 1e-6  # probabilities are raised to this, so that one certain mistake does not decide alone


def figures(probas: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return accuracy, ECE, log loss, share of sure labels, and wrong ones per task among these."""
    classes = np.arange(probas.shape[1])
    chosen, confidence = probas.argmax(axis=1), probas.max(axis=1)
    sure = confidence > SURE
    return np.array([
        np.mean(chosen == truth), expected_calibration_error(truth, probas, classes=classes),
        log_loss(truth, probas, classes=classes, eps=LEAST), np.mean(sure),
        np.mean(sure & (chosen != truth)),
    ])  # fmt: skip


def dense(probas: object) -> np.ndarray:
    return np.asarray(probas.toarray() if hasattr(probas, "toarray") else probas)


def fit(name: str, labels: wc.CrowdLabels):
    """Return a fit by a method's defaults, in pairs of classes where it handles only two."""
    method = getattr(wc.aggregation, name)()
    if method.tags().binary and labels.n_classes > 2:
        method = wc.aggregation.OneVsRest(method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method.fit(labels)


def condition_table(condition: Condition, names: list[str], seeds: range) -> dict[str, np.ndarray]:
    """Return the mean figures of every method, and a last column: seeds with a warning."""
    found: dict[str, list[np.ndarray]] = {}

    def add(name: str, probas: np.ndarray, truth: np.ndarray, warned: bool = False) -> None:
        found.setdefault(name, []).append(np.append(figures(probas, truth), warned))

    for seed in seeds:
        made = condition.make(seed)
        truth = made.truth_codes
        add("oracle", oracle(made), truth)
        for name in names:
            try:
                model = fit(name, made.labels)
            except WisecrowdError:
                continue
            add(name, dense(model.probas_), truth, bool(model.warnings_))
            if name in CORRECTED:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found_t = find_temperature(made.labels, fit=model, random_state=seed)
                corrected = found_t.apply(model.probas_)
                add(f"{name}, corrected", corrected, truth, bool(model.warnings_))
    return {name: np.mean(values, axis=0) for name, values in found.items()}


def cells(values: np.ndarray) -> str:
    accuracy, ece, loss, sure, wrong, warned = values
    share = f"{wrong / sure:.1%}" if sure > 0 else "–"
    return (
        f"{accuracy:.3f} | {ece:.3f} | {loss:.3f} | {share} of {sure:.0%} | "
        f"{'always' if warned == 1 else 'no' if warned == 0 else 'at times'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--conditions", nargs="*", default=[c.name for c in CONDITIONS])
    options = parser.parse_args()
    lines = [
        "| condition | method | accuracy | ECE | log loss | wrong above .99 | warned |",
        "|---|---|---|---|---|---|---|",
    ]
    data = {}
    for condition in CONDITIONS:
        if condition.name not in options.conditions:
            continue
        table = condition_table(condition, options.methods, range(options.seeds))
        data[condition.name] = {name: values.tolist() for name, values in table.items()}
        for name, values in table.items():
            lines.append(f"| {condition.name} | {name} | {cells(values)} |")
            print(lines[-1], file=sys.stderr, flush=True)
    finish(f"calibration: 13 conditions, {options.seeds} seeds each", lines, data)


if __name__ == "__main__":
    main()
