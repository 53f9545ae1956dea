"""Audit of sequences: silence on clean crowds, and what is planted is found."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from wisecrowd import audit, simulate
from wisecrowd.audit.crowd_audit import audit_crowd
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.sequences.audit.agreement import (
    find_sequence_copies,
    measure_sequence_agreement,
    one_token_each,
)
from wisecrowd.kinds.sequences.audit.view import sequence_view
from wisecrowd.kinds.sequences.audit.workers import HABITS, find_span_habits
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.methods.bsc import previous_tag
from wisecrowd.kinds.sequences.methods.tag_chains import TagChains
from wisecrowd.kinds.sequences.metrics import span_table_scores
from wisecrowd.metrics import krippendorff_alpha

ODD = 1  # the worker who is changed


def crowd(seed=0, n_tasks=120, n_workers=10, per_task=4):
    made = simulate.sequences(
        n_tasks, n_workers, simulate.PerTask(per_task), alike=60, random_state=seed
    )
    return made.data


def with_spans(data, worker, change):
    """Return the data with other spans of one worker: change(start, end, type, length) → spans."""
    tags = data.tags.copy()
    for e in np.flatnonzero(data.worker == worker):
        first, last = data.pointer[e : e + 2]
        own = data.tag_scheme.spans(data.tags[first:last], np.array([0, last - first]))
        new = np.zeros(last - first, dtype=np.int32)
        for start, end, kind in change(own, int(last - first)):
            new[start] = 1 + 2 * kind
            new[start + 1 : end] = 2 + 2 * kind
        tags[first:last] = new
    return replace(data, tags=tags)


def each(change):
    """Return a change of all spans, one by one."""

    def changed(own, length):
        rows = zip(own.start.tolist(), own.end.tolist(), own.kind.tolist(), strict=True)
        return [span for row in rows for span in change(*row, length)]

    return changed


RNG = np.random.default_rng(0)
SPAMMERS = {
    "marks-nothing": lambda own, length: [],
    "marks-everything": lambda own, length: [(0, length, 2)],
    "random-spans": lambda own, length: [
        (t, t + 1, int(RNG.integers(3))) for t in range(length) if RNG.random() < 0.2
    ],
}
BAD_HABITS = {
    "short-spans": each(lambda a, b, k, n: [(a, max(b - 1, a + 1), k)]),
    "long-spans": each(lambda a, b, k, n: [(a, min(b + 1, n), k)]),
    "split-spans": each(lambda a, b, k, n: [(a, a + 1, k), (a + 1, b, k)] if b > a + 1
                        else [(a, b, k)]),
    "type-confusion": each(lambda a, b, k, n: [(a, b, (k + 1) % 3)]),
    "missed-spans": lambda own, length: [],
    "phantom-spans": lambda own, length: [(t, t + 1, 0) for t in range(0, length, 3)],
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_reported_on_clean_crowds(seed):
    found = audit_crowd(crowd(seed)).findings
    assert [one.id for one in found] == ["agreement"]


@pytest.mark.parametrize("name", SPAMMERS)
def test_spammers_are_found_and_nobody_else(name):
    data = with_spans(crowd(), ODD, SPAMMERS[name])
    found = audit_crowd(data, parts=["spammers", "habits"])  # a spammer has no habits besides
    assert [(one.id, one.affected) for one in found.findings] == [(name, (ODD,))]
    assert np.flatnonzero(found["spammers"].accused).tolist() == [ODD]


@pytest.mark.parametrize("name", ["short-spans", "long-spans", "split-spans", "type-confusion"])
def test_habits_are_found_and_nobody_else(name):
    data = with_spans(crowd(n_tasks=250), ODD, BAD_HABITS[name])
    found = audit_crowd(data, parts=["spammers", "habits"]).findings
    assert [(one.id, one.affected) for one in found] == [(name, (ODD,))]
    if name == "type-confusion":
        assert "LOC' as 'ORG'" in found[0].explanation


def test_a_type_that_is_always_taken_for_another_is_found():
    change = each(lambda a, b, k, n: [(a, b, 2 if k == 0 else k)])
    report = find_span_habits(with_spans(crowd(n_tasks=400), ODD, change))
    assert [(one.id, one.affected) for one in report.findings()] == [("type-confusion", (ODD,))]
    assert report.confusion[ODD, 0, 2] > 5 * report.confusion[ODD, 0, 0]


def test_missed_and_phantom_spans_are_habits_of_workers_who_are_not_spammers():
    half = each(lambda a, b, k, n: [(a, b, k)] if a % 4 == 0 else [])
    report = find_span_habits(with_spans(crowd(n_tasks=250), ODD, half))
    assert [(one.id, one.affected) for one in report.findings()] == [("missed-spans", (ODD,))]
    keep = each(lambda a, b, k, n: [(a, b, k)])
    more = lambda own, n: [*((t, t + 1, 0) for t in range(0, n, 3)), *keep(own, n)]  # noqa: E731
    report = find_span_habits(with_spans(crowd(n_tasks=250), ODD, more))
    assert [(one.id, one.affected) for one in report.findings()] == [("phantom-spans", (ODD,))]


def test_a_small_team_needs_a_rate_above_one_half():
    data = crowd(n_tasks=60, n_workers=4)
    assert find_span_habits(data).findings() == []
    data = with_spans(data, ODD, BAD_HABITS["type-confusion"])
    assert [one.affected for one in find_span_habits(data).findings()] == [(ODD,)]


def test_the_view_is_decoded_without_the_worker_s_own_tags():
    data = crowd(n_tasks=12, n_workers=4, per_task=3)
    unknown = np.full(int(data.token_pointer[-1]), -1)
    model = TagChains(data, unknown, previous_tag(data.tag_scheme), variational=True)
    run = model.run(60, 1e-3)
    start, step = run.counts.expected()
    view = sequence_view(data)
    for e in range(data.n_annotations):
        rest = replace(model, data=data.select_annotations(np.arange(data.n_annotations) != e))
        evidence = model.kernels.evidence_without_own(
            rest.labels, run.counts.tags, model.context.table, run.posterior.marginals
        )
        with np.errstate(divide="ignore"):
            path = model.kernels.best_path(
                evidence, data.token_pointer, np.log(start), np.log(step)
            )
        token = slice(*data.token_pointer[data.task[e] : data.task[e] + 2])
        np.testing.assert_array_equal(view.path[slice(*data.pointer[e : e + 2])], path[token])
    assert (view.others == 2).all()


def test_large_data_are_decoded_in_blocks(monkeypatch):
    data = crowd(n_tasks=12)
    whole = sequence_view(data).path
    monkeypatch.setattr("wisecrowd.kinds.sequences.audit.view.BLOCK", 50)
    np.testing.assert_array_equal(sequence_view(data).path, whole)


def test_one_label_per_task_is_said():
    data = crowd(per_task=1)
    found = audit_crowd(data)
    assert set(found.skipped) == {"spammers", "habits", "clones", "agreement"}
    with pytest.raises(NotApplicable, match="No task has two labels"):
        measure_sequence_agreement(data)
    several = audit_crowd(data, parts=["spammers"])
    assert "fewer than two have 8 sequences" in several.skipped["spammers"]


def test_copies_are_found_and_honest_workers_are_not():
    data = crowd(n_tasks=100, n_workers=8, per_task=8)
    assert find_sequence_copies(data).groups == []
    tags = data.tags.copy()
    tags[data.token_worker == 5] = data.tags[data.token_worker == 2]
    copied = find_sequence_copies(replace(data, tags=tags))
    assert [group.tolist() for group in copied.groups] == [[2, 5]]
    assert "remove the rows of the others" in copied.findings()[0].remedy


def test_experts_are_not_copies():
    made = simulate.sequences(
        100, 8, simulate.Dense(), miss=0.02, cut=0.02, stretch=0.01, mistype=0.01, invent=0.001
    )
    assert find_sequence_copies(made.data).groups == []


def test_copies_are_compared_on_one_token_of_each_sequence():
    data = crowd(n_tasks=30)
    labels = one_token_each(data)
    assert labels.labels_per_task.max() == 4
    assert np.all(np.diff(labels.task) >= 0)
    with pytest.raises(NotApplicable, match="nobody marked anything"):
        one_token_each(replace(data, tags=np.zeros_like(data.tags)))


def test_agreement_is_that_of_all_pairs_of_workers():
    data = crowd(n_tasks=20, n_workers=5)
    found = measure_sequence_agreement(data)
    spans = data.tag_scheme.spans(data.tags, data.pointer)
    rows = list(zip(*(column.tolist() for column in spans), strict=True))
    both, near, total = 0.0, 0.0, 0.0
    for a, b in combinations(range(data.n_annotations), 2):
        if data.task[a] != data.task[b]:
            continue
        one, other = ([(0, *row[1:]) for row in rows if row[0] == e] for e in (a, b))
        scores, n = span_table_scores(one, other), len(one) + len(other)
        both, near, total = both + n * scores["span_f1"], near + n * scores["relaxed_f1"], total + n
    assert found.span_f1[0] == pytest.approx(both / total)
    assert found.relaxed_f1[0] == pytest.approx(near / total)
    assert found.same_limits_f1[0] >= found.span_f1[0]
    kind = data.tag_scheme.type_of[data.tags]
    assert found.alpha[0] == pytest.approx(krippendorff_alpha(data.token, kind))
    assert found.span_f1[1] < found.span_f1[0] < found.span_f1[2]


def test_pruning_removes_the_spammers():
    data = with_spans(crowd(), ODD, lambda own, length: [])
    pruned = audit.clean(data, ["spammers"])
    assert pruned.removed.tolist() == [ODD]
    assert pruned.labels.n_workers == data.n_workers - 1
    assert set(pruned.changes) == {"task", "tags_before", "tags_after"}


def test_tables_name_every_worker_and_confusion():
    tables = audit_crowd(crowd()).tables()
    assert {"span_habits", "type_confusions", "spammers", "worker_agreement"} <= set(tables)
    assert set(HABITS) <= set(tables["span_habits"])


def test_plain_tags_are_audited_too():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, (40, 9))
    tags, task, worker = [], [], []
    for i in range(40):
        for j in range(5):
            own = np.where(rng.random(9) < 0.15, rng.integers(0, 3, 9), truth[i])
            tags.append(" ".join(np.array(["N", "V", "A"])[own]))
            task.append(i)
            worker.append(j)
    found = audit_crowd(CrowdSequences.from_arrays(task, worker, tags))
    assert found.findings.at_least("medium") is not None
    assert not found["spammers"].accused.any()
