"""Honest probabilities of sets: real types and emotions, and what caution costs on simulations.

``python -m benchmarks.run honest_sets`` prints every row; about a minute of CPU time.
"""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.real_data import data_folder
from benchmarks.accuracy.sets import PROTOTYPES, sentences
from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.aggregation import LabelSetMixture, SharedTwoCoin
from wisecrowd.io.tables import read_frame
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.methods.label_rules import LabelRules
from wisecrowd.kinds.sets.methods.set_mixture import MixtureMethod, SetMixture, tempered
from wisecrowd.kinds.sets.metrics import set_scores
from wisecrowd.kinds.sets.truth import KnownSets, SetPrior, known_sets

EMOTIONS, STRONG, HEADLINES = 6, 20, 100  # task // 100 is the question; the last one is no emotion
SEEDS = range(3)


def run() -> list[Row]:
    types, emotions = sentences(), strong_emotions()
    return [
        _real("ner_mturk, types per sentence", *types, 0.27),
        _real("emotion_numeric, emotions above 20", *emotions, 0.47),
        *caution(), *prototypes(),
    ]  # fmt: skip


def strong_emotions() -> tuple[CrowdSets, KnownSets]:
    """Return the emotions that workers and experts rate above 20 of 100 in each headline."""
    folder = data_folder() / "emotion_numeric"
    answers, truth = (read_frame(folder / name) for name in ("answers.csv", "truth.csv"))
    given: dict[tuple[int, str], list[str]] = {}
    for task, worker, value in _rows(answers, "task", "worker", "label"):
        _add(given.setdefault((int(task) % HEADLINES, str(worker)), []), task, value)
    known: dict[int, list[str]] = {}
    for task, value in _rows(truth, "task", "label"):
        _add(known.setdefault(int(task) % HEADLINES, []), task, value)
    names = [f"emotion-{number}" for number in range(EMOTIONS)]
    data = CrowdSets.from_arrays(*zip(*given, strict=True), list(given.values()), classes=names)
    return data, known_sets(known, data)


def _rows(frame, *names: str):
    return zip(*(frame[name].to_pylist() for name in names), strict=True)


def _add(emotions: list[str], task: float, value: float) -> None:
    number = int(task) // HEADLINES
    if number < EMOTIONS and float(value) > STRONG:
        emotions.append(f"emotion-{number}")


def before(model: MixtureMethod, data: CrowdSets) -> np.ndarray:
    """Return the probabilities of a fit without the share of the votes."""
    rules = LabelRules.none(data.n_classes)
    mixture = SetMixture(data, SetPrior(), rules, model.shrinkage)
    return tempered(mixture.under(model._fitted()).probas, data)


def losses(make: type, data: CrowdSets, truth: KnownSets) -> tuple[dict, dict]:
    """Return the scores of a fit, without the share of the votes and as published."""
    model = make().fit(data)
    old = before(model, data)
    return set_scores(truth, old >= 0.5, old), set_scores(truth, model.members_, model.probas_)


def _real(what: str, data: CrowdSets, truth: KnownSets, bar: float) -> Row:
    old, new = losses(SharedTwoCoin, data, truth)
    return Row(
        f"{what}, shared-two-coin: log loss", f"≤ {bar}",
        f"{new['log_loss']:.3f} ({old['log_loss']:.3f} without votes; micro F1 "
        f"{new['micro_f1']:.3f}, exact sets {new['exact_sets']:.3f})",
        new["log_loss"] <= bar,
    )  # fmt: skip


def caution(sizes: tuple[int, ...] = (60, 300), seeds=SEEDS) -> list[Row]:
    """Return what the share of the votes costs where workers err independently."""
    rows = []
    for what, crowd in (("usual workers", {}), ("poor workers", PROTOTYPES)):
        for size in sizes:
            found = []
            for seed in seeds:
                data, truth = _simulated(size, seed, crowd)
                old, new = losses(SharedTwoCoin, data, truth)
                found.append((old["log_loss"], new["log_loss"]))
            old_loss, new_loss = np.mean(found, axis=0)
            rows.append(Row(
                f"simulated, {what}, {size} tasks with 3 sets, shared-two-coin: log loss", "–",
                f"{old_loss:.3f} → {new_loss:.3f}",
            ))  # fmt: skip
    return rows


def prototypes(size: int = 60, seeds=SEEDS) -> list[Row]:
    """Return exact sets with the chosen number of prototypes and with one."""
    rows = []
    for what, crowd in (("4 prototypes", {}), ("none", {"n_prototypes": 1, "purity": 0.5})):
        found, chosen = [], []
        for seed in seeds:
            data, truth = _simulated(size, seed, crowd)
            model, one = LabelSetMixture().fit(data), SharedTwoCoin().fit(data)
            chosen.append(len(model.prototypes_))
            found.append([set_scores(truth, fit.members_)["exact_sets"] for fit in (one, model)])
        alone, several = np.mean(found, axis=0)
        rows.append(Row(
            f"simulated, {what}, {size} tasks, one prototype and label-set-mixture: exact sets",
            "–", f"{alone:.3f} → {several:.3f} (chooses {chosen})",
        ))  # fmt: skip
    return rows


def _simulated(size: int, seed: int, params: dict) -> tuple[CrowdSets, KnownSets]:
    crowd = simulate.sets(size, 20, simulate.PerTask(3), random_state=seed, **params)
    return crowd.data, KnownSets(np.ones(size, dtype=bool), crowd.members)


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
