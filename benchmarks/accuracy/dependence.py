"""Workers who depend on each other: groups, trained classifiers, and colluders, made and injected.

``python -m benchmarks.accuracy.dependence`` prints the tables; the rows say what was to be reached.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np

import wisecrowd as wc
from benchmarks.accuracy.real_data import data_folder, read_set
from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.kinds.classes.audit.collusion import CollusionReport, find_collusion
from wisecrowd.kinds.classes.families.worker_groups import groups_of

N_SEEDS = 20
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4)
REAL = ("bluebird", "sentiment_polarity", "dog")
A_POINT = 0.01
Truth = np.ndarray


def say(text: str) -> None:
    print(f"... {text}", file=sys.stderr, flush=True)


def right(labels: wc.CrowdLabels, truth: Truth, method: str = "DawidSkene", **options) -> float:
    """Return the accuracy of a method on tasks with a known class (codes, -1 where unknown)."""
    model = getattr(wc.aggregation, method)(**options).fit(labels)
    known = truth >= 0
    return float(np.mean(model.labels_[known] == labels.classes[truth[known]]))


def without(labels: wc.CrowdLabels, who: np.ndarray) -> wc.CrowdLabels:
    return labels.select_annotations(~who[labels.worker])


# --------------------------------------------------------------------------------------- groups


def group_crowd(seed: int, members: float | None) -> tuple[simulate.SimulatedCrowd, np.ndarray]:
    """5000 tasks, 40 workers, 3 classes; 5 groups whose members report rightly with ``members``."""
    if members is None:
        workers = 40 * simulate.OneCoinWorkers(8, 11)  # not so good that nothing is left to win
    else:
        report = simulate.OneCoinWorkers(100 * members, 100 * (1 - members))
        group = simulate.DependentGroup(simulate.OneCoinWorkers(7, 3), report)
        workers = sum((8 * group for _ in range(4)), 8 * group)
    made = simulate.crowd(5000, workers, simulate.Dense(), n_classes=3, random_state=seed)
    true = np.repeat(np.arange(5), 8) if members is not None else np.full(40, -1)
    return made, true


def simulated_groups(n_seeds: int = 5) -> list[Row]:
    rows = []
    names = ("MajorityVote", "DawidSkene", "GroupAwareMajorityVote", "GroupAwareDawidSkene")
    for members, what in ((0.95, "strong"), (0.8, "medium"), (0.65, "weak"), (None, "none")):
        say(f"groups, {what}")
        found, reached = 0, []
        for seed in range(n_seeds):
            made, true = group_crowd(seed, members)
            found += np.array_equal(groups_of("auto", made.labels), true)
            reached.append([right(made.labels, made.truth_codes, name) for name in names])
        vote, plain, aware_vote, aware = np.mean(reached, axis=0)
        text = (
            f"groups found exactly {found} of {n_seeds}; MV {vote:.4f}, DS {plain:.4f}, group MV "
            f"{aware_vote:.4f}, group DS {aware:.4f}"
        )
        best = max(vote, plain)
        least = best if what == "strong" else best - A_POINT
        met = bool(aware >= least) and (what not in ("strong", "none") or found == n_seeds)
        bar = "found; group DS ≥ both" if what == "strong" else "group DS within a point or better"
        rows.append(Row(f"5 groups of 8, N=5000, K=3: dependence {what}", bar, text, met))
    return rows


def classifiers(
    name: str, seed: int = 0, sizes: tuple[int, ...] = (10, 10, 10), taken: int = 180
) -> tuple[wc.CrowdLabels, Truth, np.ndarray]:
    """Return labels by small models of three kinds, ``taken`` of each kind's own 200 examples."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    stored = np.load(data_folder() / name / f"{name}.npz")
    arrays = {key: stored[key] for key in stored.files}
    X = next(v for k, v in arrays.items() if v.ndim == 2).astype(np.float64)
    y = next(v for k, v in arrays.items() if v.ndim == 1 and len(v) == len(X))
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(X))[:6000]
    X, y = X[rows], np.unique(y[rows], return_inverse=True)[1]
    kinds: tuple[Callable[[int], object], ...] = (
        lambda m: KNeighborsClassifier(1 + m % 5),
        lambda m: DecisionTreeClassifier(max_depth=3 + m % 3, random_state=m),
        lambda m: (
            GaussianNB() if m % 2 else LogisticRegression(C=10.0 ** (m % 3 - 1), max_iter=300)
        ),
    )
    table, kind = [], np.repeat(np.arange(3), sizes)
    for number, make in enumerate(kinds):
        own = 3000 + rng.permutation(3000)[:200]
        for m in range(sizes[number]):
            some = rng.choice(own, taken, replace=False)
            model = make_pipeline(StandardScaler(), make(m + number)).fit(X[some], y[some])
            table.append(model.predict(X[:3000]))
    labels = wc.CrowdLabels.from_matrix(np.array(table).T, classes=np.arange(y.max() + 1))
    return labels, y[:3000], kind


def trained_classifiers(n_seeds: int = 3) -> list[Row]:
    import warnings

    rows = []
    for name in ("shuttle", "covtype"):
        figures, sizes = [], []
        for seed in range(n_seeds):
            say(f"classifiers on {name}, {seed}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                labels, truth, kind = classifiers(name, seed)
            group = groups_of("auto", labels)
            sizes.append(np.bincount(group[group >= 0]).tolist())
            figures.append([
                right(labels, truth, "MajorityVote"),
                right(labels, truth),
                right(labels, truth, "GroupAwareMajorityVote"),
                right(labels, truth, "GroupAwareDawidSkene"),
                right(labels, truth, "GroupAwareDawidSkene", groups=kind),
            ])  # fmt: skip
        vote, plain, aware_vote, aware, given = np.mean(figures, axis=0)
        text = (
            f"MV {vote:.4f}, DS {plain:.4f}, group MV {aware_vote:.4f}, group DS {aware:.4f}, "
            f"with the kinds given {given:.4f}; groups found {sizes}"
        )
        what = f"30 classifiers of three kinds on {name}, {n_seeds} draws: group DS"
        rows.append(Row(what, "≥ DS", text, bool(aware >= plain)))
        rows.append(Row(what, "within a point of MV or better", "see above",
                        bool(aware >= vote - A_POINT)))  # fmt: skip
    return rows


def bluebird_groups() -> list[Row]:
    labels, truth = codes_of("bluebird")
    found = groups_of("auto", labels)
    auto = right(labels, truth, "GroupAwareDawidSkene")
    by_number = {J: right(labels, truth, "GroupAwareDawidSkene", groups=J) for J in range(2, 13)}
    text = f"{by_number[7]:.4f} with 7 groups; auto finds {found.max() + 1} groups: {auto:.4f}; "
    text += ", ".join(f"J={J} {value:.3f}" for J, value in by_number.items())
    return [Row("group-aware DS on bluebird", ".916 (7 groups)", text, by_number[7] >= 0.9159)]


# -------------------------------------------------------------------------------------- collusion


def codes_of(name: str) -> tuple[wc.CrowdLabels, Truth]:
    labels, known = read_set(data_folder() / name)
    code = {value: k for k, value in enumerate(labels.classes.tolist())}
    return labels, np.array([code.get(known.get(task), -1) for task in labels.tasks.tolist()])


def inject(
    labels: wc.CrowdLabels, truth: Truth, share: float, seed: int, p: float = 0.9
) -> tuple[wc.CrowdLabels, np.ndarray]:
    """Let a share of the workers agree on one wrong label per task and give it with ``p``."""
    rng = np.random.default_rng(seed)
    J, K = labels.n_workers, labels.n_classes
    bad = np.zeros(J, dtype=bool)
    bad[rng.permutation(J)[: round(share * J)]] = True
    classes = np.where(truth >= 0, truth, rng.integers(0, K, len(truth)))
    agreed = (classes + rng.integers(1, K, len(truth))) % K
    follow = bad[labels.worker] & (rng.random(labels.n_annotations) < p)
    given = np.where(follow, agreed[labels.task], labels.label).astype(np.int32)
    return wc.CrowdLabels(
        labels.task, labels.worker, given, labels.tasks, labels.workers, labels.classes
    ), bad


def someone_good(labels: wc.CrowdLabels, truth: Truth, bad: np.ndarray) -> object:
    """Return the honest worker with the best record among those with many labels: the trusted."""
    hits = np.bincount(labels.worker, labels.label == truth[labels.task], labels.n_workers)
    score = hits / np.maximum(labels.labels_per_worker, 1)
    score[bad | (labels.labels_per_worker < np.median(labels.labels_per_worker))] = -1
    return labels.workers.tolist()[int(score.argmax())]


def verdict(report: CollusionReport, bad: np.ndarray) -> tuple[int, int]:
    return int((report.accused & bad).sum()), int((report.accused & ~bad).sum())


def injected(n_seeds: int = 5) -> list[Row]:
    rows = []
    print("\n| set | colluders | MV | DS | group DS | half honest | trusted | honest only |"
          " accused: colluders, honest |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name in REAL:
        labels, truth = codes_of(name)
        worst, below, draws = np.inf, np.zeros(2, dtype=int), 0
        for share in SHARES:
            say(f"{name}, {share:.0%} collude")
            figures, accused = [], np.zeros(2, dtype=int)
            for seed in range(n_seeds):
                data, bad = inject(labels, truth, share, seed)
                half = find_collusion(data)
                told = find_collusion(data, trusted=someone_good(labels, truth, bad))
                accused += verdict(half, bad)
                figures.append([
                    right(data, truth, "MajorityVote"), right(data, truth),
                    right(data, truth, "GroupAwareDawidSkene"), right(half.remove(data), truth),
                    right(told.remove(data), truth), right(without(data, bad), truth),
                ])  # fmt: skip
            mean, draws = np.mean(figures, axis=0), draws + n_seeds
            below += [sum(one[c] < one[0] for one in figures) for c in (3, 4)]
            worst = min(worst, float(min(mean[3], mean[4]) - mean[0]))
            cells = " | ".join(f"{value:.3f}" for value in mean)
            found = f"{accused[0]} of {n_seeds * round(share * labels.n_workers)}, {accused[1]}"
            print(f"| {name} | {share:.0%} | {cells} | {found} |")
        rows.append(Row(
            f"colluders injected into {name}, 0-40%, p = .9: Dawid-Skene after removal",
            "never below majority vote, in the mean over draws",
            f"least lead of the mean {worst:+.3f}; single draws below: {below[0]} of {draws} by "
            f"half honest, {below[1]} with a trusted worker", bool(worst >= 0),
        ))  # fmt: skip
    return rows


def colluders(
    n_tasks: int, share: float, seed: int, honest: simulate.Population
) -> tuple[simulate.SimulatedCrowd, np.ndarray]:
    n_bad = round(60 * share)
    workers = (60 - n_bad) * honest
    if n_bad:
        workers = workers + n_bad * simulate.Colluders(0.9)
    graph = simulate.Bernoulli(0.5)
    made = simulate.crowd(n_tasks, workers, graph, n_classes=3, random_state=seed)
    return made, made.kinds == "colluders"


def simulated_colluders() -> list[Row]:
    perfect, behind = 0, []
    for seed in range(N_SEEDS):
        say(f"simulated colluders, seed {seed}")
        made, bad = colluders(5000, 0.3, seed, simulate.OneCoinWorkers(4, 2))
        report = find_collusion(made.labels)
        perfect += np.array_equal(report.accused, bad)
        kept = right(report.remove(made.labels), made.truth_codes)
        behind.append(right(without(made.labels, bad), made.truth_codes) - kept)
    what = "simulated colluders, N=5000, M=60, K=3, 30% collude with p=.9"
    return [
        Row(what, "all found, nobody else accused, 19 of 20 seeds", f"{perfect} of {N_SEEDS}",
            perfect >= N_SEEDS - 1),
        Row(what + ": accuracy after removal", "within a point of honest only",
            f"at most {max(behind):.4f} behind", max(behind) <= A_POINT),
    ]  # fmt: skip


def sweep(n_seeds: int = 8) -> Iterator[Row]:
    """Shares of colluders where half of all labels are there: N=2000, M=60, K=3.

    Honest workers are as good as makes majority vote about what was published beside (.843, .603,
    .322, .148); how good they were there is not said.
    """
    published = {0.1: 0.987, 0.2: 0.982, 0.3: 0.976, 0.4: 0.961}
    for share in SHARES:
        say(f"sweep, {share:.0%} collude")
        figures, exact, told = [], 0, 0
        for seed in range(n_seeds):
            made, bad = colluders(2000, share, seed, simulate.OneCoinWorkers(5, 5))
            truth = made.truth_codes
            report = find_collusion(made.labels)
            exact += np.array_equal(report.accused, bad)
            good = int(np.where(bad, 0.0, made.worker_accuracy).argmax())
            told += np.array_equal(find_collusion(made.labels, trusted=good).accused, bad)
            figures.append([
                right(made.labels, truth, "MajorityVote"), right(made.labels, truth),
                right(report.remove(made.labels), truth), right(without(made.labels, bad), truth),
            ])  # fmt: skip
        vote, plain, kept, oracle = np.mean(figures, axis=0)
        text = (
            f"MV {vote:.3f}, DS {plain:.3f}, after removal {kept:.3f} (honest only {oracle:.3f}); "
            f"exactly the colluders accused in {exact} of {n_seeds}, {told} with a trusted worker"
        )
        bar = f"as honest only; published {published[share]}" if share else "nobody accused"
        met = bool(exact == n_seeds and abs(kept - oracle) <= A_POINT)
        yield Row(f"{share:.0%} of 60 collude, N=2000, half of the labels there", bar, text, met)


def clean_crowds(n_seeds: int = N_SEEDS) -> list[Row]:
    accused = 0
    for seed in range(n_seeds):
        for K in (2, 3, 5):
            made = simulate.crowd(
                1000, 35 * simulate.OneCoinWorkers(4, 2) + 5 * simulate.Spammers(),
                simulate.PerTask(12), n_classes=K, random_state=seed,
            )  # fmt: skip
            accused += int(find_collusion(made.labels).accused.sum())
    what = f"{3 * n_seeds} clean crowds of 40 with 5 spammers: workers accused"
    return [Row(what, "none", str(accused), accused == 0)]


def run() -> list[Row]:
    rows = simulated_groups() + simulated_colluders() + list(sweep()) + clean_crowds()
    if data_folder() is None:
        return [*rows, Row("dependence in real data", "", "no data: set WISECROWD_DATA")]
    return rows + trained_classifiers() + bluebird_groups() + injected()


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
