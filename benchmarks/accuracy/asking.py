"""Asking: replays of real logs, the stop rule, online updates, and the cost of a round.

``python -m benchmarks.run asking`` prints every row. Constants are those of the published policy;
what was left open was settled on simulated crowds and on the sets in ``LOOKED_AT``. No
constant changed after replays of the sets in ``JUDGED``.

Tasks are ordered by the mean posterior of both models. On ``LOOKED_AT`` it was compared with the
driving model alone, the larger of both entropies, and their sum. Mean accuracies were within .002
of each other; the mean posterior was taken because its least lead over balanced was the best of
the four (-.007; driving model -.009, larger entropy -.013, sum -.028).
"""

from __future__ import annotations

import resource
import sys
import warnings

import numpy as np

import wisecrowd as wc
from benchmarks.accuracy.real_data import data_folder, read_set
from benchmarks.rows import Row, cpu_seconds
from wisecrowd.acquire.candidates import OpenPairs
from wisecrowd.acquire.policies import POLICIES, get_policy
from wisecrowd.acquire.replaying import accuracy_of, replay_columns, run_policy
from wisecrowd.acquire.rounds import RoundState, choose
from wisecrowd.acquire.shrunken_models import AveragePosterior, fit_beliefs
from wisecrowd.kinds.classes.prior import class_prior
from wisecrowd.kinds.classes.truth import as_truth

LOOKED_AT = ("bluebird", "face", "leaves9", "product", "temp")
JUDGED = ("cf", "dog", "labelme", "music_genre", "rte", "sp_amt", "trec", "zc_us")
COIN = ("zc_us", "music_genre", "product")  # final labels by one coin, else confusion matrices
LEADS = ("temp", "rte", "dog", "cf")
STOPPED = ("dog", "rte", "temp", "face", "zc_us", "sp_amt", "leaves9", "cf", "music_genre")
BUDGETS = (0.25, 0.5, 0.75)


def final_of(name: str) -> str:
    return "one-coin" if name in COIN else "confusion"


def replay(name: str, policies: list[str], n_seeds: int) -> dict[str, np.ndarray]:
    """Return accuracies at the budgets by policy."""
    labels, truth = read_set(data_folder() / name)
    table = replay_columns(
        labels, truth, policies, BUDGETS, n_seeds, method=f"shrunken-{final_of(name)}",
        model="auto", cost=None, n_rounds=40, random_state=0,
    )  # fmt: skip
    rows = table["accuracy"].reshape(-1, len(BUDGETS))
    return dict(zip(table["policy"][:: len(BUDGETS)].tolist(), rows, strict=True))


def replays() -> list[Row]:
    if data_folder() is None:
        return [Row("replays", "", "no data: set WISECROWD_DATA")]
    found, lines = {}, []
    for name in sorted(LOOKED_AT + JUDGED):
        print(f"... replay {name}", file=sys.stderr, flush=True)
        found[name] = replay(name, ["uncertain"], 2 if name == "trec" else 5)
        mark = " (looked at)" if name in LOOKED_AT else ""
        cells = [
            "/".join(f"{x:.3f}" for x in found[name][p])
            for p in ("random", "balanced", "uncertain")
        ]
        lines.append(f"| {name}{mark} | {' | '.join(cells)} |")
    print(
        "\n| set | random | balanced | uncertain |\n|---|---|---|---|\n" + "\n".join(lines) + "\n"
    )
    rows = []
    for half, names in (("all", sorted(found)), ("judged", JUDGED), ("looked at", LOOKED_AT)):
        gaps = {n: found[n]["uncertain"] - found[n]["balanced"] for n in names}
        worst = min(gaps, key=lambda n: gaps[n].min())
        low = float(gaps[worst].min())
        cells = sum(int((gap < -0.01).sum()) for gap in gaps.values())
        rows.append(Row(f"replay, {half} sets: least lead of uncertain over balanced", "≥ -.01",
                        f"{low:+.3f} ({worst}); {cells} of {3 * len(gaps)} cells below",
                        low >= -0.01))  # fmt: skip
        mean = float(np.mean(list(gaps.values())))
        rows.append(Row(f"replay, {half} sets: mean lead of uncertain over balanced", "≥ .01",
                        f"{mean:+.4f}", mean >= 0.01))  # fmt: skip
    leads = {n: float(found[n]["uncertain"][0] - found[n]["random"][0]) for n in LEADS}
    rows.append(Row("replay: lead over random at 25 %", "≥ .03 on temp, rte, dog, cf",
                    ", ".join(f"{n} {x:+.3f}" for n, x in leads.items()),
                    min(leads.values()) >= 0.03))  # fmt: skip
    return rows


def textbook() -> list[Row]:
    """The rules of papers on the two sets where the difference is largest; no bar."""
    if data_folder() is None:
        return []
    rows = []
    for name in ("temp", "rte"):
        policies = ["uncertain", "best-worker", "information", "epsilon-greedy", "bandit", "margin"]
        found = replay(name, policies, 3)
        shown = "; ".join(f"{p} {'/'.join(f'{x:.3f}' for x in v)}" for p, v in found.items())
        rows.append(Row(f"policies on {name} at 25/50/75 %, 3 seeds", "", shown))
    return rows


def stop_rule(delta: float = 0.03, n_seeds: int = 3) -> list[Row]:
    """The stop rule, judged by confusion matrices everywhere and by the final labels of replays."""
    if data_folder() is None:
        return []
    return [
        *_stop_rows(delta, n_seeds, lambda name: "confusion", "labels by confusion matrices"),
        *_stop_rows(delta, n_seeds, final_of, "final labels as in replays"),
    ]


def _stop_rows(delta: float, n_seeds: int, final, how: str) -> list[Row]:
    shares, losses = {}, {}
    for name in (*STOPPED, "bluebird"):
        print(f"... stop {name}", file=sys.stderr, flush=True)
        labels, truth = read_set(data_folder() / name)
        known, everything = as_truth(truth, labels), np.ones(labels.n_annotations, dtype=bool)
        whole = accuracy_of(final(name), labels, everything, known)
        runs = []
        for seed in range(n_seeds):
            run = run_policy(labels, get_policy("uncertain"), [1.0], seed, stop=delta)
            mask = run.asked[0] if run.stopped is None else run.stopped
            runs.append((mask.mean(), whole - accuracy_of(final(name), labels, mask, known)))
        shares[name], losses[name] = np.mean(runs, axis=0)
    told = ", ".join(f"{n} {shares[n]:.2f} {-losses[n]:+.3f}" for n in shares)
    print(f"stop rule: share of the log and change of accuracy: {told}", flush=True)
    apart = (
        f"; bluebird, not among them: {shares.pop('bluebird'):.2f} {-losses.pop('bluebird'):+.3f}"
    )
    share, loss = (float(np.mean(list(one.values()))) for one in (shares, losses))
    worst = max(losses, key=losses.get)
    what = f"stop rule, δ = {delta}, {len(shares)} sets, {how}"
    return [
        Row(f"{what}: mean share of the log", "≤ .55", f"{share:.3f}", share <= 0.55),
        Row(f"{what}: mean loss of accuracy", "≤ .005", f"{loss:+.4f}", loss <= 0.005),
        Row(f"{what}: worst loss", "≤ .015", f"{losses[worst]:+.3f} ({worst}){apart}",
            losses[worst] <= 0.015),
    ]  # fmt: skip


def whole_budget() -> list[Row]:
    workers = 12 * wc.simulate.OneCoinWorkers(8, 2) + 3 * wc.simulate.OneCoinWorkers(2, 2)
    crowd = wc.simulate.crowd(120, workers, "per-task:6", n_classes=3, random_state=2)
    batch = wc.aggregation.DawidSkene().fit(crowd.labels).probas_
    same = 0
    for name in POLICIES:
        mask = run_policy(crowd.labels, get_policy(name), [1.0], 0).asked[0]
        fitted = wc.aggregation.DawidSkene().fit(crowd.labels.select_annotations(mask))
        same += int((fitted.probas_ == batch).all())
    return [Row("100 % of the budget equals the batch fit, bitwise", "every policy",
                f"{same} of {len(POLICIES)}", same == len(POLICIES))]  # fmt: skip


def online() -> list[Row]:
    if data_folder() is None:
        return []
    gaps, equal, shown = [], [], []
    for name in ("dog", "rte", "face", "temp", "leaves9", "zc_us"):
        labels, truth = read_set(data_folder() / name)
        columns, rng = labels.to_dict(), np.random.default_rng(0)
        order = rng.permutation(labels.n_annotations)
        n = max(10, labels.n_annotations // 100)
        parts = [
            wc.CrowdLabels.from_arrays(
                *(columns[c][rows] for c in ("task", "worker", "label")),
                timestamp=np.arange(len(rows)),
                classes=labels.classes,
            )
            for rows in (order[:n], order[n:])
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            batch = wc.aggregation.DawidSkene().fit(labels)
            passed = wc.aggregation.DawidSkene().fit(parts[0]).update(parts[1])
            swept = wc.aggregation.DawidSkene().fit(parts[0]).update(parts[1], sweeps=300)
        scores = [_accuracy(model, truth) for model in (passed, swept, batch)]
        gaps.append(scores[0] - scores[2])
        by_task = dict(zip(batch.tasks_, batch.labels_, strict=True))
        equal.append(np.mean([by_task[t] == y for t, y in
                              zip(swept.tasks_, swept.labels_, strict=True)]))  # fmt: skip
        shown.append(f"{name} {'/'.join(f'{x:.3f}' for x in scores)}")
    labels, _ = _large(20_000, 1000, 100_000)
    early = labels.select_annotations(np.arange(labels.n_annotations) < 100)
    late = labels.select_annotations(np.arange(labels.n_annotations) >= 100)
    fitted = wc.aggregation.DawidSkene().fit(early)
    wc.aggregation.DawidSkene().fit(early).update(late)  # compiled
    seconds = cpu_seconds(lambda: fitted.update(late))
    mean = float(np.mean(np.abs(gaps)))
    return [
        Row("online, one random pass against batch accuracy, mean over 6 sets", "within .005",
            f"{mean:.4f}; one pass/swept/batch: {', '.join(shown)}", mean <= 0.005),
        Row("online, swept: labels equal to batch", "≥ 99 %", f"{min(equal):.4f} at worst",
            min(equal) >= 0.99),
        Row("online, 10^5 answers", "≤ 5 CPU s", f"{seconds:.2f} s", seconds <= 5),
    ]  # fmt: skip


def _accuracy(model, truth: dict) -> float:
    pairs = zip(model.tasks_.tolist(), model.labels_.tolist(), strict=True)
    return float(np.mean([truth[task] == label for task, label in pairs if task in truth]))


def _large(n_tasks: int, n_workers: int, n_labels: int, n_classes: int = 4):
    rng = np.random.default_rng(0)
    key = np.unique(rng.integers(0, n_tasks * n_workers, n_labels))
    task, worker = (key // n_workers).astype(np.int32), (key % n_workers).astype(np.int32)
    truth = rng.integers(0, n_classes, n_tasks)
    right = rng.random(len(key)) < 0.7
    label = np.where(right, truth[task], rng.integers(0, n_classes, len(key))).astype(np.int32)
    labels = wc.CrowdLabels(
        task, worker, label, np.arange(n_tasks), np.arange(n_workers), np.arange(n_classes)
    )
    return labels, key


def cost() -> list[Row]:
    wc.set_threads(1)
    N, J = 1_000_000, 10_000
    labels, key = _large(N, J, 3_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3

    def one_round():
        beliefs = fit_beliefs(labels, class_prior(None, None, labels))
        state = RoundState(labels, labels.labels_per_task, beliefs[1], True, np.ones(J),
                           len(key), np.random.default_rng(0), min_labels=0,
                           average=AveragePosterior(tuple(beliefs)))  # fmt: skip
        pairs = OpenPairs(N, J, np.arange(J), key, np.full(N, 99))
        found = choose(get_policy("uncertain"), state, pairs, 1000)
        assert len(found.score) == 1000

    one_round()  # compiled
    seconds = cpu_seconds(one_round)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    wc.set_threads(None)
    what = "10^6 tasks, 10^4 workers, 3·10^6 answers, a round of 1000 queries with both fits"
    return [
        Row(what, "≤ 10 CPU s", f"{seconds:.1f} s", seconds <= 10),
        Row(f"{what}: peak memory of the process", "≤ 1 GB",
            f"{memory:.0f} MB ({before:.0f} MB before)", memory <= 1000),
    ]  # fmt: skip


def run() -> list[Row]:
    # Memory first: the peak is that of the whole process.
    return [*cost(), *whole_budget(), *online(), *stop_rule(), *replays(), *textbook()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
