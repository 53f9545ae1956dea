"""Checks that the result depends only on the labels, whatever order, names or former fits."""

from __future__ import annotations

import random
from contextvars import copy_context
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.saved_attributes import ANY_LENGTH
from wisecrowd.engines.threads import set_threads
from wisecrowd.inference import engine
from wisecrowd.kinds.classes.answers import ClassAnswers
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families import posteriors
from wisecrowd.testing.crowds import (
    columns_of,
    example,
    n_classes_for,
    named_columns,
    rebuilt,
    simulated,
    small_labels,
    with_names,
)
from wisecrowd.testing.foundation import (
    Make,
    assert_alike,
    assert_close,
    assert_same_bits,
    assert_same_labels,
    assert_same_numbers,
    assert_same_state,
    check,
    class_names,
    dense,
    fit_or_refusal,
    is_stochastic,
    numbers_of,
    optional,
    replaced,
    require,
    same_value,
    short_run,
    tied,
    with_both_kernels,
    with_params,
)


@check
def check_row_order(make: Make) -> None:
    """Require that shuffled annotations give the same bits."""
    data = example(make)
    columns = columns_of(data)
    order = np.random.default_rng(1).permutation(len(columns[0]))
    given = make().fit(rebuilt(data, columns))
    shuffled = make().fit(rebuilt(data, columns, order))
    assert_same_bits(given, shuffled, "when the rows are shuffled")


def _renamed(column: NDArray[Any], prefix: str, reverse: bool) -> NDArray[Any]:
    """Return other names that sort in the same or in reverse order."""
    ids, codes = np.unique(column, return_inverse=True)
    numbers = np.arange(len(ids))[::-1] if reverse else np.arange(len(ids))
    return np.array([f"{prefix}{number:05d}" for number in numbers], dtype=object)[codes]


def _compare_renamed(make: Make, which: int, reverse: bool) -> None:
    """Compare fits before and after renaming tasks (0), workers (1) or classes (2)."""
    data = example(make)
    columns = list(columns_of(data))
    first = short_run(make).fit(rebuilt(data, columns))
    columns[which] = _renamed(columns[which], "renamed-", reverse)
    second = short_run(make).fit(rebuilt(data, columns))
    when = f"when they are renamed{' in reverse order' if reverse else ''}"
    if not reverse:  # equal codes and equal seeds give equal random numbers
        assert_same_numbers(first, second, when)
        return
    turned = {"NJK"[which]: slice(None, None, -1)}
    for name, axes in numbers_of(first).items():
        if ANY_LENGTH in axes and which == 0:
            continue  # lists of all tasks: the kind's own checks compare them
        places = tuple(turned.get(axis, slice(None)) for axis in axes)
        assert_alike(make, getattr(first, name), dense(getattr(second, name))[places], name, when)
    if is_stochastic(make) or which < 2:
        return
    expected = len(first.classes_) - 1 - np.searchsorted(second.classes_, second.labels_)
    given = np.searchsorted(first.classes_, first.labels_)
    assert_same_labels(given, expected, tied(first.probas_), when)


@check
def check_renaming_tasks(make: Make) -> None:
    """Require that renaming tasks only permutes the output."""
    for reverse in (False, True):
        _compare_renamed(make, 0, reverse)


@check
def check_renaming_workers(make: Make) -> None:
    """Require that renaming workers only permutes the output."""
    for reverse in (False, True):
        _compare_renamed(make, 1, reverse)


@check
def check_renaming_classes(make: Make) -> None:
    """Require that renaming classes only permutes the output; class order breaks exact ties."""
    for reverse in (False, True):
        _compare_renamed(make, 2, reverse)


@check
def check_symmetries(make: Make) -> None:
    """Require that the symmetries of the kind change the answers as expected."""
    kind, data = make()._kind(), example(make)
    plain = short_run(make).fit(data)
    for symmetry in kind.all_symmetries():
        changed = short_run(make).fit(symmetry.change(data))
        for name, expected in symmetry.expected(vars(plain)).items():
            assert_alike(make, expected, getattr(changed, name), name, f"after {symmetry.name}")


@check
def check_input_forms(make: Make) -> None:
    """Require the same bits from a container, columns, and a pandas and a polars frame."""
    data = example(make)
    table = data.to_dict()
    columns = {name: table[name] for name in ("task", "worker", *data.roles()) if name in table}
    expected = make().fit(rebuilt(data, list(columns.values())))
    if "timestamp" in data.columns:
        columns["timestamp"] = data.columns["timestamp"]
    assert_same_bits(expected, make().fit(data), "between columns and a container")
    for library in ("pandas", "polars"):
        frame = optional(library).DataFrame(columns)
        fitted = make().fit(frame)
        assert_same_bits(expected, fitted, f"between columns and {library}")
        predicted = make().fit_predict(frame)
        ids, answers, *_ = expected._answer_columns().values()
        same = np.array_equal(np.asarray(predicted), answers)
        require(same, f"fit_predict differs for {library}")
        if library == "pandas":
            same = np.array_equal(predicted.index.to_numpy(), ids)
            require(same, "fit_predict's index is not that of the table of answers")


@check
def check_matrix(make: Make) -> None:
    """Require the same bits from integer columns and from a matrix of tasks × workers."""
    labels = simulated(40, 7, n_classes_for(make), 4).labels
    wide = np.full((labels.n_tasks, labels.n_workers), np.nan)
    wide[labels.task, labels.worker] = labels.label
    columns = [codes.astype(np.int64) for codes in (labels.task, labels.worker, labels.label)]
    expected = make().fit(tuple(columns))
    assert_same_bits(expected, make().fit(labels), "between columns and CrowdLabels")
    assert_same_bits(expected, make().fit(wide), "between columns and a matrix")


@check
def check_input_untouched(make: Make) -> None:
    """Require that the data, the options and the global random state do not change."""
    labels = small_labels(make)
    k = labels.n_classes
    columns = [column.copy() for column in named_columns(labels)]
    gold = {labels.tasks[0]: labels.classes[-1]}
    prior = np.random.default_rng(0).dirichlet(np.full(k, 20.0), labels.n_tasks)
    start = np.random.default_rng(1).dirichlet(np.ones(k), labels.n_tasks)
    copies = [column.copy() for column in columns], dict(gold), prior.copy(), start.copy()
    before_numpy, before_python = _global_state(), random.getstate()
    with_params(make, n_init=2).fit(tuple(columns), gold=gold, task_prior=prior, init=start)
    for before, after in zip(copies[0], columns, strict=True):
        require(np.array_equal(before, after), "a column of the input was changed")
    require(gold == copies[1], "the gold was changed")
    require(np.array_equal(prior, copies[2]), "the task prior was changed")
    require(np.array_equal(start, copies[3]), "the start was changed")
    require(random.getstate() == before_python, "Python's global random state was used")
    require(_global_state() == before_numpy, "NumPy's global random state was used")


def _global_state() -> tuple[bytes, int]:
    state = np.random.get_state(legacy=False)["state"]  # noqa: NPY002 - it is what is checked
    return state["key"].tobytes(), state["pos"]


@check
def check_same_seed(make: Make) -> None:
    """Require that fits with the same seed, and a second fit of one object, give the same bits."""
    labels = example(make)
    method = with_params(make, n_init=3, random_state=5)
    first = method.fit(labels)
    again = with_params(make, n_init=3, random_state=5).fit(labels)
    assert_same_bits(first, again, "with the same seed")
    other = with_params(make, n_init=3, random_state=5)
    other.fit(example(make, 1))
    assert_same_bits(first, other.fit(labels), "after a fit to other data")


@check
def check_fit_twice(make: Make) -> None:
    """Require that a fit does not depend on a previous fit to other tasks, workers and classes."""
    labels = example(make)
    fresh, method = make().fit(labels), make()
    fit_or_refusal(method, _others(make))
    again, when = method.fit(labels), "after a fit to other workers"
    assert_same_bits(fresh, again, when)
    assert_same_state(fresh, again, when)
    if fresh.tags().inductive or fresh.tags().predicts:
        new = example(make, 2)
        one, two = (vars(method._predicted(new, None, None)) for method in (fresh, again))
        require(same_value(one, two), f"predictions of new tasks differ {when}")


def _others(make: Make) -> Any:
    """Return other data: with two other classes or, for other kinds, with fewer tasks."""
    if issubclass(make()._kind().answers, ClassAnswers):
        return with_names(simulated(25, 4, 2, 3, random_state=1).labels)
    data = example(make, 1)
    return data[: data.n_tasks // 2]


@check
def check_thread_count(make: Make) -> None:
    """Require that one, two and three threads give the same bits, with several blocks of tasks."""
    labels = simulated(240, 3, n_classes_for(make)).labels
    with replaced(engine, "SMALLEST_SHARD", 1):
        one = _fit_with_threads(make, labels, 1)
        for threads in (2, 3):
            several = _fit_with_threads(make, labels, threads)
            assert_same_bits(one, several, f"between 1 and {threads} threads")
    whole = short_run(make).fit(labels)
    assert_close(one.probas_, whole.probas_, "probas_", "between block sizes")


def _fit_with_threads(make: Make, labels: CrowdLabels, threads: int) -> Aggregator:
    def fit() -> Aggregator:
        set_threads(threads)
        return short_run(make).fit(labels)

    return copy_context().run(fit)  # the user's setting is kept


@check
def check_kernels_agree(make: Make) -> None:
    """Require that the compiled kernels and the reference give the same results."""
    optional("numba")
    labels = small_labels(make)
    prior = np.random.default_rng(0).dirichlet(np.full(labels.n_classes, 20.0), labels.n_tasks)
    for options in ({}, {"task_prior": prior, "gold": {labels.tasks[0]: labels.classes[0]}}):
        reference, fast = with_both_kernels(partial(short_run, make), labels, **options)
        when = "between the reference and the compiled kernels"
        assert_close(reference.probas_, fast.probas_, "probas_", when)
        assert_close(reference.worker_accuracy_, fast.worker_accuracy_, "worker_accuracy_", when)
        assert_same_labels(reference.labels_, fast.labels_, tied(reference.probas_), when)


def _declared(labels: CrowdLabels, **options: Any) -> CrowdLabels:
    return CrowdLabels.from_arrays(
        *named_columns(labels), classes=class_names(labels.n_classes), **options
    )


@check
def check_unlabelled_worker(make: Make) -> None:
    """Require that adding a worker without labels changes nothing else."""
    labels = small_labels(make)
    workers = [*labels.workers.tolist(), "worker-9999"]
    alone = short_run(make).fit(_declared(labels))
    beside = short_run(make).fit(_declared(labels, workers=workers))
    when = "when a worker without labels is added"
    assert_close(alone.probas_, beside.probas_, "probas_", when)
    assert_same_labels(alone.labels_, beside.labels_, tied(alone.probas_), when)
    accuracy = beside.worker_accuracy_
    require(len(accuracy) == len(workers), "worker_accuracy_ lacks the worker without labels")
    assert_close(alone.worker_accuracy_, accuracy[:-1], "worker_accuracy_", when)
    require(np.isfinite(accuracy).all(), "the worker without labels has no finite accuracy")


@check
def check_unlabelled_task(make: Make) -> None:
    """Require that adding a task without labels changes nothing else; the task gets a posterior."""
    labels = small_labels(make)
    tasks = [*labels.tasks.tolist(), "task-99999"]
    alone = short_run(make).fit(_declared(labels))
    beside = short_run(make).fit(_declared(labels, tasks=tasks))
    when = "when a task without labels is added"
    probas = dense(beside.probas_)
    require(len(probas) == len(tasks), "probas_ lacks the task without labels")
    assert_alike(make, alone.probas_, probas[:-1], "probas_", when)
    accuracy = beside.worker_accuracy_
    assert_alike(make, alone.worker_accuracy_, accuracy, "worker_accuracy_", when)
    require(np.isfinite(probas[-1]).all(), "the task without labels has no finite posterior")


@check
def check_disjoint_copy(make: Make) -> None:
    """Require that adding an equal second crowd on other tasks does not change the labels."""
    task, worker, label = named_columns(small_labels(make))
    alone = short_run(make).fit((task, worker, label))
    both = short_run(make).fit((
        np.concatenate([task, np.array([f"z{x}" for x in task], dtype=object)]),
        np.concatenate([worker, np.array([f"z{x}" for x in worker], dtype=object)]),
        np.concatenate([label, label]),
    ))  # fmt: skip
    n, probas = len(alone.tasks_), dense(both.probas_)
    unsure = tied(alone.probas_)
    if is_stochastic(make) or make().tags().pooled:
        unsure |= dense(alone.probas_).max(axis=1) < 0.9
    assert_same_labels(alone.labels_, both.labels_[:n], unsure, "when a disjoint copy is added")
    assert_alike(make, probas[:n], probas[n:], "probas_", "between two equal crowds")


@check
def check_integer_weights(make: Make) -> None:
    """Require that a weight of three equals three equal annotations."""
    if not make().tags().exact_replication:
        return
    data = example(make)
    columns, build = columns_of(data), type(data).from_arrays
    times = np.random.default_rng(3).integers(1, 4, size=len(columns[0]))
    weighted = build(*columns, weight=times.astype(np.float64))
    repeated = build(*(np.repeat(column, times) for column in columns), duplicates="keep")
    first, second = short_run(make).fit(weighted), short_run(make).fit(repeated)
    # Belief propagation has other standard errors where a worker repeats a task: not compared.
    names = [name for name in numbers_of(first) if name != "worker_accuracy_error_"]
    for name in names:
        numbers = getattr(first, name), getattr(second, name)
        assert_alike(make, *numbers, name, "between weights and repetition")
    plain = short_run(make).fit(columns)
    for name in names[:1]:
        moved = np.abs(dense(getattr(plain, name)) - dense(getattr(first, name))).max()
        require(moved > 1e-6, "weights of two and three change nothing at all")


@check
def check_sparse_posterior(make: Make) -> None:
    """Require that sparse posteriors, used for very many classes, equal dense ones."""
    labels = small_labels(make)
    gold = {labels.tasks[0]: labels.classes[-1]}
    plain = short_run(make).fit(labels, gold=gold)
    with replaced(posteriors, "DENSE_LIMIT", 0):
        kept = short_run(make).fit(labels, gold=gold)
        again = kept.predict_proba(labels, gold=gold) if kept.tags().inductive else kept.probas_
        score = kept.score(labels, dict(zip(labels.tasks, plain.labels_, strict=True)))
    if not hasattr(kept.probas_, "tocsr"):
        return  # its posteriors are always dense
    when = "between sparse and dense posteriors"
    stored = dense(kept.probas_)
    assert_close(np.where(stored > 0, dense(plain.probas_), 0.0), stored, "probas_", when)
    assert_close(plain.confidence_, kept.confidence_, "confidence_", when)
    assert_same_labels(plain.labels_, kept.labels_, tied(plain.probas_), when)
    assert_close(stored, again, "predict_proba", "from a sparse fit")
    require(score >= 1 - 1 / labels.n_tasks - tied(plain.probas_).mean(), "score of a sparse fit")
