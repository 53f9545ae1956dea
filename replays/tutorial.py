"""Tables of the tutorial that need no network: spammers and dependent annotators.

The tutorial names data sets and results, not the trained annotators nor how they were grouped. Here
annotators on Shuttle and CoverType are small classifiers of three and four kinds, the number of
groups that the tutorial gives; members of a kind learn from halves of the same examples.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from typing import Any

import numpy as np
from benchmarks.accuracy.dependence import codes_of, right

import wisecrowd as wc
from replays.material import Job, Scores, add, folder, quiet, report
from wisecrowd.audit import prune
from wisecrowd.kinds.classes.families.worker_groups import groups_of

MEMBERS = 3  # annotators of a kind
EXAMPLES = 2000  # of a kind; each member learns from half of them
SAMPLE = 3000  # rows from which the groups are found
KINDS = {"shuttle": 3, "covtype": 4}  # as many as the tutorial's groups
PASSES = {"shuttle": 50, "covtype": 15}  # of EM: without a prior it creeps, and rows are many


# -------------------------------------------------------------------------------------- spammers


def spammers(job: Job) -> None:
    """Vote and Dawid-Skene before and after the pruning of workers who look random."""
    scores: Scores = {}
    for name in ("bluebird", "dog"):
        labels, truth = codes_of(name)
        pruned = prune(labels)
        add(scores, name, "workers pruned", len(pruned.removed))
        for when, data in (("before", labels), ("after", pruned.labels)):
            add(scores, name, f"vote {when}", right(data, truth, "MajorityVote"))
            add(scores, name, f"Dawid-Skene {when}", right(data, truth))
    report("tutorial spammers: pruning", scores)


# ---------------------------------------------------------------------------- dependent annotators


def table_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the numeric features of all rows, and class codes."""
    stored = np.load(folder(name) / f"{name}.npz")
    arrays = {key: stored[key] for key in stored.files}
    if "num" in arrays:
        return arrays["num"].astype(np.float32), arrays["y"].astype(np.int64)
    X, y = (
        np.concatenate([v for k, v in sorted(arrays.items()) if v.ndim == ndim]) for ndim in (2, 1)
    )
    return X.astype(np.float32), y.astype(np.int64)


def kinds() -> list[Any]:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    return [
        lambda m: DecisionTreeClassifier(max_depth=5 + 2 * m, random_state=m),
        lambda m: LogisticRegression(C=10.0 ** (m - 1), max_iter=200),
        lambda m: GaussianNB(var_smoothing=10.0 ** (m - 4)),
        lambda m: LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.05 + 0.2 * m),
    ]


def trained(name: str, seed: int) -> tuple[wc.CrowdLabels, np.ndarray, np.ndarray]:
    """Return labels of all rows but the examples, the true classes, and the annotators' kinds."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = table_of(name)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(X))
    used = KINDS[name] * EXAMPLES
    rest = np.sort(rows[used:])
    columns = []
    for number, make in enumerate(kinds()[: KINDS[name]]):
        own = rows[number * EXAMPLES : (number + 1) * EXAMPLES]
        for member in range(MEMBERS):
            some = rng.choice(own, EXAMPLES // 2, replace=False)
            model = make_pipeline(StandardScaler(), make(member))
            columns.append(quiet(model, X[some], y[some]).predict(X[rest]))
    classes = np.arange(int(y.max()) + 1)
    labels = wc.CrowdLabels.from_matrix(np.column_stack(columns), classes=classes)
    return labels, y[rest], np.repeat(np.arange(KINDS[name]), MEMBERS)


def classifiers(job: Job) -> None:
    """Shuttle and CoverType with all rows: Dawid-Skene and group-aware methods, no prior."""
    scores: Scores = {}
    for name, seed in product(KINDS, job.seeds):
        found = job.once(lambda name=name, seed=seed: with_groups(name, seed), name, seed)
        for what, value in found.items():
            add(scores, name, what, value)
    report("tutorial classifiers: dependent annotators, all rows, no prior", scores)


def with_groups(name: str, seed: int) -> dict[str, float]:
    """Return the accuracy of four methods; the groups are found from a sample of the rows."""
    labels, truth, kind = trained(name, seed)
    sample = np.sort(np.random.default_rng(seed).permutation(len(truth))[:SAMPLE])
    groups = groups_of(KINDS[name], labels[sample])
    free = {"prior": None, "max_iter": PASSES[name]}
    methods: dict[str, tuple[str, dict[str, Any]]] = {
        "vote": ("MajorityVote", {}),
        "Dawid-Skene": ("DawidSkene", free),
        "group vote, J given": ("GroupAwareMajorityVote", {"groups": groups}),
        "group DS, J given": ("GroupAwareDawidSkene", {"groups": groups} | free),
    }
    same, found_same = (g[:, None] == g for g in (kind, groups))
    found = {
        "rows": float(labels.n_tasks),
        "pairs grouped as the kinds": float(np.mean(same == found_same)),
        "mean annotator": float(np.mean(labels.label == truth[labels.task])),
    }
    for what, (method, options) in methods.items():
        begun = time.process_time()
        model = getattr(wc.aggregation, method)(**options)._fit_without_checks(labels)
        found[what] = float(np.mean(model.labels_ == truth))
        print(f"{name}, {what}: {time.process_time() - begun:.0f} CPU s", flush=True)
    return found


def bluebird(job: Job) -> None:
    """Group-aware Dawid-Skene on bluebird by the number of groups; the tutorial has 7."""
    labels, truth = codes_of("bluebird")
    scores: Scores = {}
    add(scores, "bluebird", "vote", right(labels, truth, "MajorityVote"))
    add(scores, "bluebird", "Dawid-Skene", right(labels, truth))
    for groups in ("auto", *range(2, 13)):
        name = f"group DS, {groups} groups"
        add(scores, "bluebird", name, right(labels, truth, "GroupAwareDawidSkene", groups=groups))
        vote = right(labels, truth, "GroupAwareMajorityVote", groups=groups)
        add(scores, "bluebird", f"group vote, {groups} groups", vote)
    report("tutorial bluebird: groups", scores)


EXPERIMENTS = {
    "spammers": (spammers, 1),
    "bluebird": (bluebird, 1),
    "classifiers": (classifiers, 3),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiment", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--seeds", type=int, help="how many seeds to average")
    parser.add_argument("--resume", action="store_true", help="keep what was measured before")
    options = parser.parse_args()
    for name, (run, n_seeds) in EXPERIMENTS.items():
        if options.experiment in (name, "all"):
            seeds = range(options.seeds or n_seeds)
            run(Job(f"tutorial-{name}", seeds, resume=options.resume).begin())


if __name__ == "__main__":
    main()
