"""Sets of classes: entity types of real sentences, simulated prototypes, and CPU time.

``python -m benchmarks.run sets`` prints every row.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.aggregation import BinaryRelevance, LabelSetMixture, SetVote, SharedTwoCoin
from wisecrowd.io.tables import read_frame
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.metrics import set_scores
from wisecrowd.kinds.sets.truth import KnownSets, known_sets

METHODS = {
    "votes": (SetVote, None, None),
    "binary relevance, Dawid-Skene": (BinaryRelevance, None, None),
    "SharedTwoCoin": (SharedTwoCoin, 0.835, None),
    "LabelSetMixture": (LabelSetMixture, None, 0.49),
}  # method, bar of micro F1 on ner_mturk, bar of exact sets of simulated prototypes
SEEDS = range(5)
# Votes find 22% of these sets, which is what the bar of LabelSetMixture was measured with.
PROTOTYPES = {"density": 0.25, "sensitivity": 0.65, "false_alarm": 0.22, "spread": 0.15}


def run() -> list[Row]:
    return [*entity_types(), *simulated_prototypes(), cpu_seconds()]


def entity_types() -> list[Row]:
    data, truth = sentences()
    rows = []
    for name, (make, bar, _) in METHODS.items():
        model = make().fit(data)
        scores = set_scores(truth, model.members_, model.probas_)
        claimed = np.where(model.members_, model.probas_, 1 - model.probas_)[truth.known].mean()
        said = (
            f"exact sets {scores['exact_sets']:.3f}; log loss {scores['log_loss']:.3f}; "
            f"confidence {claimed:.3f}, right {1 - scores['hamming_loss']:.3f}"
        )
        rows.append(Row(
            f"ner_mturk, types per sentence, {name}: micro F1",
            "–" if bar is None else f"≥ {bar}",
            f"{scores['micro_f1']:.3f} ({said})",
            None if bar is None else scores["micro_f1"] >= bar,
        ))  # fmt: skip
    return rows


def sentences() -> tuple[CrowdSets, KnownSets]:
    """Return the types of entities that workers mark in each sentence, and the true ones."""
    folder = data_folder() / "ner_mturk"
    answers, truth = (read_frame(folder / name) for name in ("answers.csv", "truth.csv"))
    given = [types(text) for text in answers["label"].to_pylist()]
    data = CrowdSets.from_arrays(answers["task"].to_pylist(), answers["worker"].to_pylist(), given)
    known = zip(truth["task"].to_pylist(), map(types, truth["label"].to_pylist()), strict=True)
    return data, known_sets(dict(known), data)


def types(tags: str) -> list[str]:
    """Return the types in tags.

    >>> types("O B-PER I-PER O B-LOC")
    ['LOC', 'PER']
    """
    return sorted({tag[2:] for tag in tags.split() if tag != "O"})


def simulated_prototypes() -> list[Row]:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in METHODS}
    for seed in SEEDS:
        crowd = simulate.sets(1000, 20, simulate.PerTask(3), random_state=seed, **PROTOTYPES)
        truth = KnownSets(np.ones(1000, dtype=bool), crowd.members)
        for name, (make, *_) in METHODS.items():
            model = make().fit(crowd.data)
            found[name].append(set_scores(truth, model.members_, model.probas_))
    rows = []
    for name, (*_, bar) in METHODS.items():
        mean = {key: float(np.mean([one[key] for one in found[name]])) for key in found[name][0]}
        said = f"micro F1 {mean['micro_f1']:.3f}; log loss {mean['log_loss']:.3f}"
        rows.append(Row(
            f"4 prototypes, 8 classes, 3 labels, seeds 0 to 4, {name}: exact sets",
            "–" if bar is None else f"≥ {bar}",
            f"{mean['exact_sets']:.3f} ({said})",
            None if bar is None else mean["exact_sets"] >= bar,
        ))  # fmt: skip
    return rows


def cpu_seconds() -> Row:
    data = simulate.sets(20_000, 500, simulate.PerTask(5)).data
    begun = time.process_time()
    model = SharedTwoCoin().fit(data)
    seconds = time.process_time() - begun
    return Row(
        f"SharedTwoCoin, {data.n_annotations} sets of 8 classes: CPU s", "–",
        f"{seconds:.2f} ({model.n_iter_} iterations)",
    )  # fmt: skip
