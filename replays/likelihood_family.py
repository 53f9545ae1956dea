"""A classifier and confusion matrices learned together: the trace paper's experiments and others.

Simulated workers label MNIST and CIFAR-10; real ones LabelMe, Music and CIFAR-10N. By default
everything is scaled to minutes on a processor without GPU; ``--full`` has the papers' sizes. As in
the trace paper, the epoch is chosen by the labels of a held-out tenth of the tasks. The protocol is
fixed here and does not follow the defaults of the library.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from benchmarks.accuracy.learning import read_set, set_table

from replays import feature_data
from replays.feature_data import Problem
from replays.feature_free import finish, plot
from replays.material import Job
from wisecrowd import aggregation, learning, metrics, simulate
from wisecrowd.io.tables import read_truth
from wisecrowd.nn import MLP

SKILLS = (0.25, 0.35, 0.5)
GRAPHS = {"dense": None, "one label per task": 1}
PROTOCOL: dict[str, Any] = {
    "lr": 1e-3, "crowd_lr": 1e-2, "weight_decay": 1e-4, "optimizer": "adam", "schedule": "constant",
    "selection": "crowd", "valid_fraction": 0.1, "refit": False, "patience": None,
}  # fmt: skip
LAMBDA = 0.01  # factor of the trace penalty


def plain_mlp(shape: tuple[int, ...], n_classes: int) -> MLP:
    """Return 128 units without dropout: the papers' convolutional network has none either."""
    return MLP(shape[0], n_classes, dropout=0.0)


@dataclass(frozen=True)
class Scale:
    """How large an experiment is."""

    n_train: int = 3000
    n_test: int = 2000
    n_cifar: int = 8000
    epochs: int = 30
    batch_size: int = 50
    convolutions: bool = False

    def options(self, *, images: bool = True) -> dict:
        module = "pooled-cnn" if self.convolutions and images else plain_mlp
        return PROTOCOL | {
            "epochs": self.epochs, "batch_size": self.batch_size, "module": module
        }  # fmt: skip

    def mnist(self) -> Problem:
        return feature_data.mnist(self.n_train, self.n_test, small=not self.convolutions)

    def __str__(self) -> str:
        how = f"{self.epochs} epochs, batches of {self.batch_size}"
        if self.convolutions:
            return f"{self.n_train} images of 28 × 28, CNN, {how}"
        return f"{self.n_train} images of 14 × 14, MLP 128, {how}"


SCALED = Scale()
FULL = Scale(60_000, 10_000, 50_000, 200, convolutions=True)

# As in the trace paper: EM renews its posterior a few times, each after many epochs.
METHODS: dict[str, Callable[..., learning.CCEM]] = {
    "trace": lambda **o: learning.TraceRegularized(penalty=LAMBDA, **o),
    "no trace": lambda **o: learning.TraceRegularized(penalty=0.0, **o),
    "MBEM": lambda **o: learning.MBEM(rounds=2, **o),
    "generalised EM": lambda **o: learning.AggNet(steps=max(1, o["epochs"] // 4), **o),
    "single confusion": lambda **o: learning.SingleConfusion(**o),
    "weighted doctor net": lambda **o: learning.WeightedDoctorNet(**o),
    "soft bootstrap": lambda **o: learning.SoftBootstrap(**o),
    "vanilla": lambda **o: learning.TwoStage(labels="hard", **o),
}
WITH_CONFUSION = ("trace", "no trace", "MBEM", "generalised EM", "known confusion")


def known_confusion(made: simulate.SimulatedCrowd, **options):
    """Return coupled cross entropy with the true confusion matrices, which stay as they are."""
    fixed = {"penalty": 0.0, "start": made.confusion, "crowd_lr": 1e-12, "head": "softmax"}
    return learning.TraceRegularized(**options | fixed)


@dataclass
class Found:
    """What one method reached: one number per seed."""

    accuracy: list[float]
    error: list[float]
    identity: list[float]

    def cell(self, *, confusion: bool = True) -> str:
        text = f"{np.mean(self.accuracy):.3f} ± {np.std(self.accuracy):.3f}"
        return f"{text} ({np.mean(self.error):.3f})" if confusion else text

    def data(self) -> dict[str, list[float]]:
        return {"accuracy": self.accuracy, "error": self.error, "identity": self.identity}


def confusion_error(confusion: np.ndarray, truth: np.ndarray) -> float:
    """Return the squared distance of confusion matrices, per worker and class."""
    return float(np.square(confusion - truth).sum(axis=2).mean())


def measure(
    job: Job,
    key: tuple[str, ...],
    problem: Problem,
    crowds: list[simulate.SimulatedCrowd],
    make: Callable[[simulate.SimulatedCrowd, int], learning.CCEM],
) -> Found:
    """Fit to each crowd; keep test accuracy, confusion error, and distance from the identity."""
    found = Found([], [], [])
    for seed, made in enumerate(crowds):
        one = job.once(
            lambda made=made, seed=seed: scores_of(problem, made, make(made, seed)), *key, seed
        )
        found.accuracy.append(one["accuracy"])
        found.error.append(one["error"])
        found.identity.append(one["identity"])
    return found


def scores_of(problem: Problem, made: simulate.SimulatedCrowd, method: Any) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = method.fit(problem.X, made.labels)
    identity = np.broadcast_to(np.eye(len(model.classes_)), model.confusion_.shape)
    return {
        "accuracy": model.score(problem.X_test, problem.truth_test),
        "error": confusion_error(model.confusion_, made.confusion),
        "identity": confusion_error(model.confusion_, identity),
    }


def is_dominant(made: simulate.SimulatedCrowd) -> bool:
    """Return whether the theorem holds: each label is likeliest for its class, in the mean."""
    mean = made.confusion.mean(axis=0)  # (class, label)
    others = np.where(np.eye(len(mean), dtype=bool), -np.inf, mean)
    return bool((np.diag(mean) > others.max(axis=0)).all())


def compare(
    title: str, problem: Problem, settings: dict, job: Job, options: dict,
    names: tuple[str, ...] = (*METHODS, "known confusion"),
) -> dict[str, dict[str, Found]]:  # fmt: skip
    """Run methods on several crowds; print and save a table."""
    lines = ["| crowd | " + " | ".join(names) + " | confusion at identity, generalised EM |"]
    lines.append("|---" * (len(names) + 2) + "|")
    result: dict[str, dict[str, Found]] = {}
    for setting, draw in settings.items():
        crowds = [draw(seed) for seed in job.seeds]
        result[setting] = {}
        for name in names:
            make = _maker(name, options)
            key = title.split(":")[0], setting, name
            result[setting][name] = measure(job, key, problem, crowds, make)
        cells = [result[setting][n].cell(confusion=n in WITH_CONFUSION) for n in names]
        collapsed = np.mean(result[setting]["generalised EM"].identity)
        lines.append(f"| {setting} | " + " | ".join(cells) + f" | {collapsed:.3f} |")
        print(lines[-1], flush=True)
    lines.append("")
    lines.append(
        "Accuracy on test tasks, mean ± deviation over seeds; in brackets the squared error"
    )
    lines.append("of the confusion matrices per worker and class. Last column: that of generalised")
    lines.append("EM's matrices from the identity.")
    saved = {s: {n: f.data() for n, f in d.items()} for s, d in result.items()}
    finish(title, lines, saved)
    return result


def _maker(name: str, options: dict):
    if name == "known confusion":
        return lambda made, seed: known_confusion(made, random_state=seed, **options)
    return lambda made, seed: METHODS[name](random_state=seed, **options)


# ------------------------------------------------------------------------------- the experiments


def trace_orderings(job: Job, scale: Scale) -> None:
    """Check the published order of methods where every image has one label."""
    problem = scale.mnist()
    settings = {
        f"p = {p:g}": lambda seed, p=p: feature_data.label(
            problem, feature_data.flippers(p, seed), 1, seed
        )
        for p in (0.35, 0.5)
    }
    title = f"trace orderings: five pairwise flippers, one label per image, {scale}"
    names = ("trace", "no trace", "MBEM", "generalised EM", "vanilla", "known confusion")
    found = compare(title, problem, settings, job, scale.options(), names)
    for setting, of in found.items():
        trace, free, bootstrapped, em = (np.mean(of[n].accuracy) for n in names[:4])
        error = {n: np.mean(of[n].error) for n in names[:4]}
        checks = {
            "trace ≥ no trace > MBEM > generalised EM": trace >= free > bootstrapped > em,
            "confusion error lowest for trace": min(error, key=error.get) == "trace",
            "generalised EM stays at the identity": np.mean(of["generalised EM"].identity) < 0.05,
        }
        for what, holds in checks.items():
            print(f"{setting}: {what}: {'yes' if holds else 'NO'}")


def trace_dominance(job: Job, scale: Scale) -> None:
    """Flippers of mean skill .35, split by whether the theorem's dominance holds."""
    problem = scale.mnist()
    lines = ["| graph | dominant | crowds | trace | no trace |", "|---|---|---|---|---|"]
    data: dict[str, Any] = {}
    for graph, per_task in GRAPHS.items():
        crowds = [
            feature_data.label(problem, feature_data.flippers(0.35, seed), per_task, seed)
            for seed in job.seeds
        ]
        dominant = np.array([is_dominant(made) for made in crowds])
        found = {
            name: measure(job, (graph, name), problem, crowds, _maker(name, scale.options()))
            for name in ("trace", "no trace")
        }
        data[graph] = {"dominant": dominant.tolist(), **{n: f.data() for n, f in found.items()}}
        for holds in (True, False):
            mine = dominant == holds
            if not mine.any():
                continue
            cells = [
                Found(*(np.array(v)[mine].tolist() for v in f.data().values())).cell()
                for f in found.values()
            ]
            text = f"| {graph} | {'yes' if holds else 'no'} | {mine.sum()} | "
            lines.append(text + " | ".join(cells) + " |")
    finish(f"trace dominance: five pairwise flippers of mean skill .35, {scale}", lines, data)


def trace_mnist(job: Job, scale: Scale) -> None:
    problem = scale.mnist()
    for kind in (feature_data.flippers, feature_data.hammer_spammers):
        for graph, per_task in GRAPHS.items():
            settings = {
                f"p = {p:g}": lambda seed, p=p, per_task=per_task, kind=kind: feature_data.label(
                    problem, kind(p, seed), per_task, seed
                )
                for p in SKILLS
            }
            what = kind.__name__.replace("_", "-")
            title = f"trace mnist {what} {graph}: five workers of mean skill p, {scale}"
            found = compare(title, problem, settings, job, scale.options())
            curves = {n: [np.mean(f[n].accuracy) for f in found.values()] for n in METHODS}
            plot(title, list(found), curves, "accuracy")


def trace_cifar(job: Job, scale: Scale) -> None:
    problem = feature_data.cifar(scale.n_cifar)
    settings = {
        graph: lambda seed, per_task=per_task: feature_data.label(
            problem, 4 * simulate.DiverseWorkers(), per_task, seed
        )
        for graph, per_task in reversed(GRAPHS.items())
    }
    options = scale.options(images=False)
    title = f"trace cifar: four workers who err in four ways, {len(problem.X)} images as features, "
    title += f"MLP 128, {scale.epochs} epochs, batches of {scale.batch_size}"
    compare(title, problem, settings, job, options)


def trace_sweeps(job: Job, scale: Scale) -> None:
    problem = scale.mnist()
    options = scale.options()
    stories = {
        "flippers .35, one label": (feature_data.flippers, 0.35, 1),
        "flippers .35, dense": (feature_data.flippers, 0.35, None),
    }
    crowds = {
        name: [feature_data.label(problem, kind(p, seed), per_task, seed) for seed in job.seeds]
        for name, (kind, p, per_task) in stories.items()
    }
    rows: dict[str, Callable] = {
        "known confusion": lambda made, seed: known_confusion(made, random_state=seed, **options)
    }
    for factor in (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3):
        rows[f"trace, λ = {factor:g}"] = lambda made, seed, factor=factor: (
            learning.TraceRegularized(penalty=factor, random_state=seed, **options)
        )
    for rounds in (1, 2, 4, 10, scale.epochs):
        steps = max(1, scale.epochs // rounds)
        rows[f"generalised EM, {rounds} × {steps} epochs"] = lambda made, seed, steps=steps: (
            learning.AggNet(steps=steps, random_state=seed, **options)
        )
        if 1 < rounds < scale.epochs:
            rows[f"MBEM, {rounds} × {steps} epochs"] = lambda made, seed, rounds=rounds: (
                learning.MBEM(rounds=rounds - 1, random_state=seed, **options)
            )
    for start in (0.3, 0.5, 0.7, 0.9):
        for factor in (0.0, 0.01, 0.1):
            rows[f"trace, λ = {factor:g}, diagonal starts at {start}"] = (
                lambda made, seed, factor=factor, start=start: learning.TraceRegularized(
                    penalty=factor, start=start, random_state=seed, **options
                )
            )
    lines = ["| method | " + " | ".join(crowds) + " |", "|---" * (len(crowds) + 1) + "|"]
    data = {}
    for name, make in rows.items():
        found = [measure(job, (what, name), problem, drawn, make) for what, drawn in crowds.items()]
        data[name] = [f.data() for f in found]
        lines.append(f"| {name} | " + " | ".join(f.cell() for f in found) + " |")
        print(lines[-1], flush=True)
    finish(f"trace sweeps: accuracy (confusion error), {scale}", lines, data)


def labelme_skill(job: Job, scale: Scale) -> None:
    """Compare the estimated skill of LabelMe's workers with how often they were right."""
    X, labels, _, _ = read_set("labelme")
    truth = np.array(read_truth(feature_data.folder("labelme") / "truth.csv")["label"].to_pylist())
    right = np.bincount(labels.worker, labels.classes[labels.label] == truth[labels.task])
    n_labels = labels.labels_per_worker
    skill, busy = right / np.maximum(n_labels, 1), n_labels >= 20
    options = PROTOCOL | {"epochs": 60, "batch_size": 64, "refit": True}
    makers = {
        "Dawid-Skene, no features": lambda seed: aggregation.DawidSkene(random_state=seed),
        "AggNet": lambda seed: learning.AggNet(random_state=seed, **options),
        "CCEM": lambda seed: learning.CCEM(random_state=seed, **options),
        "trace": lambda seed: learning.TraceRegularized(random_state=seed, **options),
        "GeoCrowdNet F": lambda seed: learning.GeoCrowdNet(random_state=seed, **options),
        "COINNet": lambda seed: learning.COINNet(random_state=seed, **options),
    }
    lines = [f"| method | rank correlation | mean error | of {busy.sum()} workers |", "|---" * 4]
    lines[1] += "|"
    data = {"true": skill[busy].tolist()}
    for name, make in makers.items():
        rank, error = [], []
        for seed in job.seeds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                method = make(seed)
                features = () if isinstance(method, aggregation.DawidSkene) else (X,)
                estimate = method.fit(*features, labels).worker_accuracy_[busy]
            rank.append(metrics.worker_rank_correlation(estimate, skill[busy]))
            error.append(float(np.abs(estimate - skill[busy]).mean()))
            data[name] = estimate.tolist()
        lines.append(
            f"| {name} | {np.mean(rank):.3f} | {np.mean(error):.3f} | 20 labels and more |"
        )
    finish("labelme skill: estimated against true accuracy", lines, data)


def machine_annotators(job: Job, scale: Scale) -> None:
    n_train = min(scale.n_train, 57_000)  # the machines learn from images after these
    problem = feature_data.mnist(n_train, scale.n_test, small=True)
    lessons = feature_data.mnist_after(n_train, small=True)
    makers = {
        "hard majority vote": lambda **o: learning.TwoStage(labels="hard", **o),
        "soft majority vote": lambda **o: learning.TwoStage(**o),
        "AggNet": lambda **o: learning.AggNet(**o),
        "CrowdLayer": lambda **o: learning.CrowdLayer(**o),
        "CCEM": lambda **o: learning.CCEM(**o),
        "trace": lambda **o: learning.TraceRegularized(**o),
        "GeoCrowdNet F": lambda **o: learning.GeoCrowdNet(**o),
        "GeoCrowdNet W": lambda **o: learning.GeoCrowdNet(regularize="W", **o),
        "COINNet": lambda **o: learning.COINNet(**o),
    }
    options = scale.options(images=False) | {"batch_size": 128}
    score: dict[str, list[float]] = {name: [] for name in makers}
    for seed in job.seeds:
        labels, accuracy = feature_data.machine_labels(problem, lessons, 10, 0.1, seed)
        print(f"machines of seed {seed} are right in {np.round(accuracy, 2).tolist()}", flush=True)
        tasks = labels.tasks
        for name, make in makers.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = make(random_state=seed, **options).fit(
                    problem.X[tasks], labels, tasks=tasks
                )
            score[name].append(model.score(problem.X_test, problem.truth_test))
    lines = ["| method | accuracy |", "|---|---|"]
    lines += [f"| {n} | {np.mean(v):.3f} ± {np.std(v):.3f} |" for n, v in score.items()]
    finish(f"machine annotators: ten classifiers that label 10% each, {scale}", lines, score)


def coinnet_cifar10n(job: Job, scale: Scale) -> None:
    X, labels, X_test, y_test = read_set("cifar10n")
    tasks = np.arange(scale.n_cifar)
    X, labels = X[tasks], labels[tasks]
    options = PROTOCOL | {"epochs": max(20, scale.epochs // 4), "batch_size": 512, "refit": True}
    makers = {
        "soft majority vote": lambda **o: learning.TwoStage(**o),
        "AggNet": lambda **o: learning.AggNet(**o),
        "CrowdLayer": lambda **o: learning.CrowdLayer(**o),
        "CCEM": lambda **o: learning.CCEM(**o),
        "trace": lambda **o: learning.TraceRegularized(**o),
        "GeoCrowdNet F": lambda **o: learning.GeoCrowdNet(**o),
        "COINNet": lambda **o: learning.COINNet(**o),
    }
    score: dict[str, list[float]] = {name: [] for name in makers}
    for name, make in makers.items():
        for seed in job.seeds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = make(random_state=seed, **options).fit(X, labels)
            score[name].append(model.score(X_test, y_test))
        print(name, np.round(score[name], 4).tolist(), flush=True)
    lines = ["| method | accuracy |", "|---|---|"]
    lines += [f"| {n} | {np.mean(v):.4f} ± {np.std(v):.4f} |" for n, v in score.items()]
    finish(f"coinnet cifar10n: {len(tasks)} images", lines, score)


def labelme(job: Job, scale: Scale) -> None:
    set_table("labelme", len(job.seeds))


def music(job: Job, scale: Scale) -> None:
    set_table("music_genre", len(job.seeds))


EXPERIMENTS = {
    "trace-orderings": (trace_orderings, 5),
    "trace-dominance": (trace_dominance, 10),
    "trace-mnist": (trace_mnist, 2),
    "trace-cifar": (trace_cifar, 2),
    "trace-sweeps": (trace_sweeps, 2),
    "labelme-skill": (labelme_skill, 5),
    "machine-annotators": (machine_annotators, 3),
    "coinnet-cifar10n": (coinnet_cifar10n, 3),
    "labelme": (labelme, 10),
    "music": (music, 10),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiment", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--seeds", type=int, help="how many seeds to average")
    parser.add_argument("--full", action="store_true", help="the papers' sizes: hours")
    parser.add_argument("--resume", action="store_true", help="keep what was measured before")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name, (run, n_seeds) in EXPERIMENTS.items():
        if options.experiment in (name, "all"):
            job = Job(name, range(options.seeds or n_seeds), options.full, options.resume)
            run(job.begin(), FULL if options.full else SCALED)


if __name__ == "__main__":
    main()
