"""The default method: real crowds, quizzes, tiny crowds, one label per task, and its cost.

``python -m benchmarks.run auto`` prints every row. Constants were chosen on simulated crowds and on
the sets in ``LOOKED_AT``; the sets in ``JUDGED`` decided nothing.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import wisecrowd as wc
from benchmarks.accuracy import copies
from benchmarks.accuracy.real_data import (
    NAMESAKES,
    crowd_kit_accuracy,
    data_folder,
    read_set,
    tie_credit,
)
from benchmarks.rows import Row, cpu_seconds, random_crowd
from benchmarks.speed import crowd_kit
from benchmarks.trust import discrimination
from wisecrowd.core.registry import get_method, method_names

# The categorical sets of at most 28 000 labels, every other one by name.
LOOKED_AT = (
    "bluebird", "compas_dressel_race", "face", "leaves9", "product", "sentiment_polarity", "temp",
    "valence5",
)  # fmt: skip
JUDGED = (
    "cf", "dog", "labelme", "music_genre", "rte", "sp_amt", "truthfulness_s6", "zc_us",
)  # fmt: skip
A_POINT = 0.01
# Number of classes, share of the first one, and the workers' accuracy.
SINGLE = ((2, 0.5, 1.0), (2, 0.8, 1.0), (4, 0.25, 0.8), (3, 0.9, 1.0), (2, 0.95, 0.8))
VOTE = "majority-vote"
HDS = "hierarchical-dawid-skene"


def fit(method: str, labels: wc.CrowdLabels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return get_method(method)().fit(labels)


def probabilities(model, labels: wc.CrowdLabels, truth: dict) -> tuple[list, np.ndarray]:
    """Return the truths and the posteriors of the tasks whose truth is a class of the labels."""
    classes = set(labels.classes.tolist())
    rows = [i for i, task in enumerate(labels.tasks.tolist()) if truth.get(task) in classes]
    probas = model.probas_
    probas = probas.toarray() if hasattr(probas, "toarray") else probas
    return [truth[labels.tasks[i]] for i in rows], probas[rows]


# ------------------------------------------------------------------------------------ real crowds


def real_crowds() -> list[Row]:
    folder = data_folder()
    if folder is None:
        return [Row("real crowds", "", "no data: set WISECROWD_DATA")]
    names = [name for name in method_names() if name != "auto"]
    scores: dict[str, dict[str, float]] = {}
    theirs: dict[str, dict[str, float]] = {}
    quality, below, lines = {}, [], []
    for one in sorted(LOOKED_AT + JUDGED):
        labels, truth = read_set(folder / one)
        for name in ["auto", *names]:
            if get_method(name)().tags().binary and labels.n_classes > 2:
                continue
            print(f"... {one} {name}", file=sys.stderr, flush=True)
            model = fit(name, labels)
            known, probas = probabilities(model, labels, truth)
            scores.setdefault(name, {})[one] = tie_credit(model.probas_, labels, truth)
            if name == "auto":
                auto = model
                quality[one] = (
                    wc.metrics.expected_calibration_error(known, probas, classes=labels.classes),
                    wc.metrics.log_loss(known, probas, classes=labels.classes),
                    float(probas.max(axis=1).mean()) - scores[name][one],
                )
        for name in NAMESAKES.values():
            found = crowd_kit_accuracy(name, labels, truth)
            if found is not None:
                theirs.setdefault(name, {})[one] = found
        lead = scores["auto"][one] - scores["majority-vote"][one]
        found = [finding.id for finding in auto.findings_ if finding.severity in ("medium", "high")]
        lines.append(
            f"| {one}{' (looked at)' if one in LOOKED_AT else ''} | {scores['auto'][one]:.3f} "
            f"| {scores['majority-vote'][one]:.3f} | {quality[one][0]:.3f} | {quality[one][1]:.2f} "
            f"| {auto.chosen_} | {', '.join(found) or '–'} |"
        )
        if lead < -A_POINT:
            below.append((one, lead, found))
    print("\n| set | auto | vote | calibration error | log loss | chosen | findings |")
    print("|---" * 7 + "|\n" + "\n".join(lines) + "\n")
    return _judge_real_crowds(scores, theirs, quality, below)


def _judge_real_crowds(scores, theirs, quality, below) -> list[Row]:
    n = len(scores["auto"])
    mean = {name: np.mean(list(one.values())) for name, one in scores.items() if len(one) == n}
    ours = mean.pop("auto")
    better = {name: value for name, value in mean.items() if value >= ours}
    ranked = sorted(mean.items(), key=lambda one: -one[1])
    print(f"Mean accuracy: auto {ours:.4f},", ", ".join(f"{k} {v:.4f}" for k, v in ranked))
    halves = [
        f"{half} {np.mean([scores['auto'][one] for one in sets]):.3f} (vote "
        f"{np.mean([scores['majority-vote'][one] for one in sets]):.3f})"
        for half, sets in (("looked at", LOOKED_AT), ("judged", JUDGED))
    ]
    against = []  # crowd-kit's methods, each on the sets where it has an answer
    for name, one in theirs.items():
        own = np.mean([scores["auto"][which] for which in one])
        against.append((own - np.mean(list(one.values())), name, len(one)))
    worst = min(against)
    errors, losses, gaps = np.array(list(quality.values())).T
    warned = all(found for _, _, found in below)
    told = "; ".join(
        f"{one} {lead:+.3f} ({', '.join(f) or 'no finding'})" for one, lead, f in below
    )
    return [
        Row(f"mean accuracy of auto over {n} categorical sets of at most 28 000 labels", "≥ .780",
            f"{ours:.4f}; {'; '.join(halves)}", ours >= 0.780),
        Row("single methods of ours at least as accurate on average", "≤ 2",
            ", ".join(f"{k} {v:.4f}" for k, v in better.items()) or "none", len(better) <= 2),
        Row("least lead over a method of crowd-kit, on the sets it can fit", "> 0",
            f"{worst[0]:+.4f} over {worst[1]} ({worst[2]} sets)", worst[0] > 0),
        Row("sets more than a point below the vote", "≤ 3, each with a finding",
            f"{len(below)}: {told}" if below else "none", len(below) <= 3 and warned),
        Row("median calibration error", "≤ .065", f"{np.median(errors):.4f}",
            float(np.median(errors)) <= 0.065),
        Row("mean log loss", "≤ .85", f"{losses.mean():.3f}", float(losses.mean()) <= 0.85),
        Row("mean confidence minus accuracy", "within ±.03",
            f"{gaps.mean():+.3f} (from {gaps.min():+.3f} to {gaps.max():+.3f})",
            abs(float(gaps.mean())) <= 0.03),
    ]  # fmt: skip


# ------------------------------------------------------------------------------- little evidence


def quizzes(n_draws: int = 40) -> list[Row]:
    what = "quizzes: 25 questions, 5 options, 5 experts among 30 workers, 25 guess"
    found = []
    for known in (1.0, 0.9, 0.8, 0.7):  # share of the questions that an expert knows
        rng = np.random.default_rng(5)
        right = []
        for _ in range(n_draws):
            truth = rng.integers(0, 5, 25)
            answers = rng.integers(0, 5, (25, 30))
            expert = np.where(rng.random((25, 5)) < known, truth[:, None], answers[:, :5])
            answers[:, :5] = expert
            labels = wc.CrowdLabels.from_matrix(answers, classes=range(5))
            right.append([np.mean(fit(m, labels).labels_ == truth) for m in ("auto", VOTE)])
        auto, vote = np.mean(right, axis=0)
        told, text = f"experts know {known:.0%}", f"{auto:.3f} (vote {vote:.3f})"
        if known == 1:
            found.append(Row(f"{what}; {told}", "≥ .95", text, auto >= 0.95))
        else:
            found.append(Row(f"{what}; {told}", "reported", text))
    return found


def tiny_crowds(n_draws: int = 500) -> list[Row]:
    rng = np.random.default_rng(7)
    rows, overruled = [], 0
    for _ in range(n_draws):
        truth = rng.integers(0, 2, 4)
        answers = np.where(rng.random((4, 3)) < 0.8, truth[:, None], 1 - truth[:, None])
        labels = wc.CrowdLabels.from_matrix(answers, classes=[0, 1])
        auto, vote = fit("auto", labels), fit("majority-vote", labels)
        rows.append((
            np.mean(auto.labels_ == truth), np.mean(vote.labels_ == truth), auto.confidence_.mean()
        ))  # fmt: skip
        alike = (answers == answers[:, :1]).all(axis=1)
        overruled += int((auto.labels_ != answers[:, 0])[alike].sum())
    accuracy, vote, confidence = np.mean(rows, axis=0)
    ties, sure = 0, []
    for n_tasks in (1, 2, 4, 10):
        model = fit("auto", wc.CrowdLabels.from_matrix([[0, 1]] * n_tasks, classes=[0, 1]))
        ties += int(model.ties_.all())
        sure.append(float(np.abs(model.confidence_ - 0.5).max()))
    what = f"4 tasks × 3 workers at .8, {n_draws} draws: "
    return [
        Row(what + "accuracy", "≥ vote - .01", f"{accuracy:.3f}, vote {vote:.3f}",
            accuracy >= vote - 0.01),
        Row(what + "mean confidence against accuracy", "within .06",
            f"{confidence:.3f} against {accuracy:.3f}", abs(confidence - accuracy) <= 0.06),
        Row(what + "unanimous labels overruled", "0", f"{overruled}", overruled == 0),
        Row("two workers, 1 : 1 on every task (1, 2, 4, 10 tasks)", "tie at .5 ± .02",
            f"{ties} of 4 tied; at most {max(sure):.3f} from .5", ties == 4 and max(sure) <= 0.02),
    ]  # fmt: skip


def one_label_per_task(n_draws: int = 20) -> list[Row]:
    methods = ("auto", HDS, "dawid-skene", "one-coin", "wawa", "bwa", "spammer-elimination")
    rng = np.random.default_rng(11)
    flipped = dict.fromkeys(methods, 0)
    n_labels = 0
    for _ in range(n_draws):
        for n_classes, skew, accuracy in SINGLE:
            shares = [skew] + [(1 - skew) / (n_classes - 1)] * (n_classes - 1)
            truth = rng.choice(n_classes, 60, p=shares)
            wrong = (truth + rng.integers(1, n_classes, 60)) % n_classes
            label = np.where(rng.random(60) < accuracy, truth, wrong)
            n_labels += 60
            labels = wc.CrowdLabels.from_arrays(
                np.arange(60), rng.integers(0, 5, 60), label, classes=range(n_classes)
            )
            for method in methods:
                flipped[method] += int((fit(method, labels).labels_ != label).sum())
    told = ", ".join(f"{name} {n}" for name, n in flipped.items())
    what = f"one label per task by perfect or 80 % workers, labels flipped of {n_labels}"
    return [Row(what, "0 by auto", told, flipped["auto"] == 0)]


# ------------------------------------------------------------------------------------------- cost


def cost() -> list[Row]:
    wc.set_threads(1)
    rows = []
    for n_classes in (2, 4, 10):
        labels, _ = random_crowd(1_000_000, n_classes)
        hds, ds = (
            _per_pass(get_method(name), labels, options)
            for name, options in ((HDS, {}), ("dawid-skene", {"accelerate": False}))
        )
        what = f"{HDS} against dawid-skene, one pass, 10^6 labels, K = {n_classes}"
        rows.append(Row(what, "≤ 8×", f"{hds / ds:.1f}× ({hds:.4f} s)", hds <= 8 * ds))  # fmt: skip
    labels, _ = random_crowd(100_000, 4)
    first, seconds = (cpu_seconds(lambda: fit("auto", labels)) for _ in range(2))
    text = f"{seconds:.2f} s; {first:.2f} s for the first fit, which compiles kernels"
    rows.append(Row("auto, 10^5 labels, K = 4", "≤ 5 CPU s", text, seconds <= 5))
    labels, _ = random_crowd(10_000_000, 4, n_workers=10_000)
    auto, plain = (cpu_seconds(lambda m=m: fit(m, labels)) for m in ("auto", "dawid-skene"))
    rows.append(Row("auto against dawid-skene, 10^7 labels, K = 4", "≤ 15×",
                    f"{auto / plain:.1f}× ({auto:.1f} against {plain:.1f} CPU s)",
                    auto <= 15 * plain))  # fmt: skip
    wc.set_threads(None)
    return rows


def _per_pass(method, labels: wc.CrowdLabels, options: dict) -> float:
    """Return the CPU seconds of one pass, without what comes before and after the passes."""
    method(max_iter=2, tol=0.0, **options)._fit_without_checks(labels)  # compiled
    few, many = (
        cpu_seconds(
            lambda n=n: method(max_iter=n, tol=0.0, **options)._fit_without_checks(labels), 3
        )
        for n in (2, 12)
    )
    return (many - few) / 10


def run() -> list[Row]:
    rows = [*quizzes(), *tiny_crowds(), *one_label_per_task(), *real_crowds()]
    return [*rows, *discrimination.run(), *copies.run(), *cost(), *crowd_kit.run()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
