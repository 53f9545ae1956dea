"""Moment methods: exact moments, sampled moments, real crowds, and the cost of pair statistics."""

from __future__ import annotations

import resource
import sys
import warnings
from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np

import wisecrowd as wc
from benchmarks.accuracy.real_data import data_folder, read_set
from benchmarks.rows import Row, cpu_seconds, random_crowd
from wisecrowd.core.registry import get_method
from wisecrowd.kinds.classes.families.moments.pair_moments import pair_moments, population_moments

METHODS = (
    "MultiSPA", "CoupledNMF", "SymmetricNMF", "SpectralDawidSkene", "CoupledTensor", "RankOne",
    "SpectralMetaLearner",
)  # fmt: skip
ONE_COIN = ("RankOne", "SpectralMetaLearner")  # no full confusion matrices to recover
N_WORKERS, N_CLASSES, OBSERVED = 25, 3, 0.3
CLASS_PRIOR = np.array([0.4, 0.35, 0.25])

# Errors of the authors' MATLAB code on bluebird, dog and rte, alone and as a start of EM.
PUBLISHED = {
    "MultiSPA": ((0.1389, 0.1772, 0.0838), (0.1111, 0.1599, 0.0700)),
    "CoupledNMF": ((0.1296, 0.1747, 0.0875), (None, None, None)),
    "SymmetricNMF": ((0.1204, 0.1648, 0.0688), (0.1019, 0.1586, 0.0713)),
    "SpectralDawidSkene": ((None, None, None), (0.1019, None, 0.0713)),
}


def expert_confusions(rng: np.random.Generator, n_workers: int, n_classes: int) -> np.ndarray:
    """Return confusion matrices; each class has two strict experts, who come first."""
    confusion = rng.dirichlet(np.ones(n_classes), (n_workers, n_classes)) + 0.7 * np.eye(n_classes)
    for j in range(2 * n_classes):
        confusion[j, :, j // 2] = 0.0
        confusion[j, j // 2, j // 2] = 0.6
    return confusion / confusion.sum(axis=2, keepdims=True)


def with_spammers(rng: np.random.Generator, share: float) -> np.ndarray:
    """Return an expert crowd of which a share says anything, each with label rates of their own."""
    confusion = expert_confusions(rng, N_WORKERS, N_CLASSES)
    spammers = rng.permutation(N_WORKERS)[: round(share * N_WORKERS)]
    confusion[spammers] = rng.dirichlet(np.full(N_CLASSES, 5.0), len(spammers))[:, None]
    return confusion


def with_lazy_spammers(rng: np.random.Generator, share: float) -> np.ndarray:
    """Return workers who are right 5 to 7 times in 10, and spammers who nearly always say the last.

    The vote then is the last class, whatever the task.
    """
    right = rng.uniform(0.5, 0.7, N_WORKERS)
    confusion = np.repeat(((1 - right) / (N_CLASSES - 1))[:, None], N_CLASSES, axis=1)
    confusion = np.repeat(confusion[:, None], N_CLASSES, axis=1)
    confusion[:, np.arange(N_CLASSES), np.arange(N_CLASSES)] = right[:, None]
    spammers = rng.permutation(N_WORKERS)[: round(share * N_WORKERS)]
    confusion[spammers] = np.append(np.full(N_CLASSES - 1, 0.02), 1 - 0.02 * (N_CLASSES - 1))
    return confusion


# What the crowd is, who draws it, how EM then runs, and whether a start must do better than the
# vote. Run to the very end, EM from any of these starts finds one and the same optimum; at its
# default tolerance it stops at different distances from it, which both kinds of rows show.
CONVERGED = {"tol": 1e-10, "max_iter": 3000}
STORIES = (
    ("no spammers, EM to the end", lambda rng: with_spammers(rng, 0.0), CONVERGED, False),
    ("70% spammers", lambda rng: with_spammers(rng, 0.7), {}, False),
    ("70% spammers, EM to the end", lambda rng: with_spammers(rng, 0.7), CONVERGED, False),
    (
        "70% spammers with one label, EM to the end",
        lambda rng: with_lazy_spammers(rng, 0.7),
        CONVERGED,
        False,
    ),
    ("70% spammers with one label", lambda rng: with_lazy_spammers(rng, 0.7), {}, True),
    (
        "70% spammers with one label, 10 plain rounds of EM",  # as published code has it
        lambda rng: with_lazy_spammers(rng, 0.7),
        {"max_iter": 10, "accelerate": False},
        True,
    ),
)
NO_WORSE = 0.002  # 20 of 10⁴ tasks; the standard error of an accuracy is .0045


def draw(rng: np.random.Generator, confusion: np.ndarray, n_tasks: int):
    """Return (CrowdLabels, truth codes) with each label observed with probability 0.3."""
    J, K = confusion.shape[:2]
    truth = rng.choice(K, n_tasks, p=CLASS_PRIOR)
    task, worker = np.nonzero(rng.random((n_tasks, J)) < OBSERVED)
    steps = np.cumsum(confusion[worker, truth[task]], axis=1)
    label = np.minimum((rng.random(len(task))[:, None] > steps).sum(axis=1), K - 1)
    ids = np.arange(n_tasks), np.arange(J), np.arange(K)
    codes = (x.astype(np.int32) for x in (task, worker, label))
    return wc.CrowdLabels(*codes, *ids), truth


def best_order(found: np.ndarray, confusion: np.ndarray, measure: Callable) -> float:
    orders = permutations(range(confusion.shape[1]))
    return min(float(measure(found[:, list(order)] - confusion)) for order in orders)


def exact_estimates() -> dict[str, Callable]:
    """Return, by method, its map from population moments to confusion matrices."""
    from wisecrowd.kinds.classes.families.moments.moment_method import inner_start
    from wisecrowd.kinds.classes.families.moments.third_moments import (
        GroupMoments,
        TripleMoments,
        group_means,
        worker_confusions,
    )
    from wisecrowd.kinds.classes.methods.coupled_nmf import fit_pairs
    from wisecrowd.kinds.classes.methods.coupled_tensor import coupled_cpd, joint_tables
    from wisecrowd.kinds.classes.methods.multi_spa import multi_spa
    from wisecrowd.kinds.classes.methods.symmetric_nmf import (
        fitted_factor,
        imputed_factor,
        nonnegative_rotation,
        parameters_of,
    )

    def cold(confusion):
        J, K = confusion.shape[:2]
        return np.repeat(inner_start(np.eye(K), 0.4)[None], J, axis=0), np.full(K, 1 / K)

    def coupled(confusion, prior):
        pairs = population_moments(confusion, prior)
        return fit_pairs(pairs, *cold(confusion), max_iter=5000).confusion

    def symmetric(confusion, prior):
        start, uniform = cold(confusion)
        pairs = population_moments(confusion, prior)
        factor = fitted_factor(pairs, start.transpose(0, 2, 1) * np.sqrt(uniform))
        return parameters_of(nonnegative_rotation(factor.blocks), np.ones(len(confusion)))[0]

    def imputed(confusion, prior):
        factor = imputed_factor(population_moments(confusion, prior))
        return parameters_of(nonnegative_rotation(factor.blocks), np.ones(len(confusion)))[0]

    def tensor(confusion, prior):
        J, K = confusion.shape[:2]
        trios = np.array(list(combinations(range(J), 3)), dtype=np.int32)
        a, b, c = (confusion[trios[:, place]] for place in range(3))
        tables = np.einsum("k,tkl,tkm,tkn->tlmn", prior, a, b, c)
        triples = TripleMoments(trios, tables, np.ones(len(trios)), J, K)
        tables = joint_tables(population_moments(confusion, prior), triples, np.ones(J))
        return coupled_cpd(tables, *cold(confusion), max_iter=2000, tol=1e-10).confusion

    def spectral(confusion, prior):
        group = np.arange(len(confusion)) % 3
        means = np.stack([confusion[group == g].sum(axis=0) for g in range(3)])  # (3, K, L)
        pairs = np.einsum("k,gkl,hkm->ghlm", prior, means, means)
        triple = np.einsum("k,kl,km,kn->lmn", prior, *means)
        tables = np.einsum("k,jkl,gkm->jglm", prior, confusion, means)
        found = group_means(GroupMoments(pairs, triple), np.random.default_rng(0))
        return worker_confusions(tables, group, *found)[0]

    return {
        "CoupledTensor": tensor,
        "SpectralDawidSkene": spectral,
        "MultiSPA": lambda c, p: multi_spa(population_moments(c, p)).confusion,
        "CoupledNMF": coupled,
        "SymmetricNMF": symmetric,
        "SymmetricNMF, imputed": imputed,
    }


def exact_rows() -> list[Row]:
    rows = []
    for name, estimate in exact_estimates().items():
        errors = []
        for n_classes in (2, 3, 4):
            rng = np.random.default_rng(n_classes)
            confusion = expert_confusions(rng, 3 * n_classes, n_classes)
            prior = rng.dirichlet(np.full(n_classes, 5.0))
            found = estimate(confusion, prior)
            errors.append(best_order(found, confusion, lambda gap: np.abs(gap).max()))
        what = f"exact moments, two strict experts per class, K = 2, 3, 4: {name}"
        rows.append(Row(what, "≤ 1e-6", f"{max(errors):.1e}", max(errors) <= 1e-6))
    return rows


def quiet_fit(model, labels, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(labels, **options)


def rate_rows(names: list[str], n_seeds: int) -> list[Row]:
    sizes = (2_500, 10_000, 40_000)
    rows = []
    for name in names:
        errors = np.zeros((n_seeds, len(sizes)))
        for seed in range(n_seeds):
            for column, n_tasks in enumerate(sizes):
                rng = np.random.default_rng(seed)
                confusion = expert_confusions(rng, N_WORKERS, N_CLASSES)
                labels, _ = draw(rng, confusion, n_tasks)
                found = quiet_fit(get_method(name)(), labels).confusion_
                errors[seed, column] = best_order(found, confusion, lambda g: (g**2).mean()) ** 0.5
        mean = errors.mean(axis=0)
        slope = np.polyfit(np.log(sizes), np.log(mean), 1)[0]
        figures = " ".join(f"{x:.4f}" for x in mean)
        what = f"root mean square error at N = 2500, 10⁴, 4·10⁴: {name}"
        rows.append(Row(what, "as N^-0.5", f"{figures}, as N^{slope:.2f}", slope <= -0.4))
    return rows


def start_rows(names: list[str], n_seeds: int) -> list[Row]:
    """Compare EM from each method with EM from the vote, on accuracy."""
    rows = []
    for story, population, options, must_gain in STORIES:
        accuracy = {name: np.zeros(n_seeds) for name in ("vote", *names)}
        for seed in range(n_seeds):
            rng = np.random.default_rng(1000 + seed)
            labels, truth = draw(rng, population(rng), 10_000)
            for name in accuracy:
                start = None if name == "vote" else quiet_fit(get_method(name)(), labels)
                em = quiet_fit(get_method("DawidSkene")(**options), labels, init=start)
                accuracy[name][seed] = em.score(labels, truth)
        for name in names:
            gain = accuracy[name] - accuracy["vote"]
            good = np.mean(gain >= -NO_WORSE)
            measured = (
                f"{accuracy[name].mean():.4f} against {accuracy['vote'].mean():.4f}; not worse in "
                f"{good:.0%}, better by a point in {np.mean(gain > 0.01):.0%}, "
                f"gain {gain.min():+.4f} to {gain.max():+.4f}"
            )
            bar, met = f"no worse than EM from the vote (by {NO_WORSE}) in 95%", bool(good >= 0.95)
            if must_gain:
                bar, met = f"{bar}, better on average", met and bool(gain.mean() > NO_WORSE)
            what = f"accuracy of EM from {name}, {story}, {n_seeds} seeds, N = 10⁴"
            rows.append(Row(what, bar, measured, met))
    return rows


def real_rows(names: list[str]) -> list[Row]:
    folder = data_folder()
    if folder is None:
        return []
    rows = []
    for column, data in enumerate(("bluebird", "dog", "rte")):
        labels, truth = read_set(folder / data)
        slack = 2 / 108 if data == "bluebird" else 0.01
        for name in names:
            if get_method(name)().tags().binary and labels.n_classes > 2:
                continue
            model = quiet_fit(get_method(name)(), labels)
            em = quiet_fit(get_method("DawidSkene")(), labels, init=model)
            pair = PUBLISHED.get(name, ((None,) * 3, (None,) * 3))
            for what, fitted, published in (
                (name, model, pair[0][column]),
                (f"{name} then EM", em, pair[1][column]),
            ):
                error = 1 - fitted.score(labels, truth)
                bar = "–" if published is None else f"published {published:.4f}"
                met = None if published is None else bool(error <= published + slack + 1e-4)
                rows.append(Row(f"error on {data}: {what}", bar, f"{error:.4f}", met))
    return rows


def cost_rows() -> list[Row]:
    rows = []
    pair_moments(random_crowd(200_000, 3)[0])  # compiles
    for per_task in (5, 100, 1000):
        labels, _ = random_crowd(1_000_000, 3, per_task=per_task)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        pairs = []
        seconds = cpu_seconds(lambda labels=labels, pairs=pairs: pairs.append(pair_moments(labels)))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
        tables = pairs[0].counts.nbytes / 1e6
        what = f"pair statistics, 1000 workers, 10⁶ labels, {per_task} per task"
        measured = (
            f"{seconds:.1f} s; {pairs[0].n_pairs} pairs, tables {tables:.0f} MB, "
            f"peak grew {grown:.0f} MB"
        )
        rows.append(Row(what, "≤ 10 s CPU, memory as pairs", measured, seconds <= 10))
    return rows


def run(n_seeds: int = 50, only: tuple[str, ...] = ()) -> list[Row]:
    names = list(only or METHODS)
    full = [name for name in names if name not in ONE_COIN]
    rows = cost_rows() + exact_rows() + real_rows(names)
    rows += rate_rows(full, n_seeds=5)
    multiclass = [name for name in names if not get_method(name)().tags().binary]
    return rows + start_rows(multiclass, n_seeds)


if __name__ == "__main__":
    seeds = [int(x) for x in sys.argv[1:] if x.isdigit()]
    names = tuple(x for x in sys.argv[1:] if not x.isdigit())
    print("\n".join(row.line() for row in run(*seeds, only=names)))
