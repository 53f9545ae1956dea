"""Groups of copies, complete or not, found and counted once."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.audit import audit_crowd, clean, collapse_clones, find_clones
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.classes.audit.clones import Clones, find_dependent_groups


def plot(seed=0, n_tasks=1000, per_task=8):
    """18 honest workers, and 12 who give the labels of one random sheet, with slips."""
    workers = 18 * simulate.OneCoinWorkers(6, 2) + 1 * simulate.Spammers()
    workers = workers + 11 * simulate.Copiers(0.95, sources=18)
    return simulate.crowd(n_tasks, workers, simulate.PerTask(per_task), random_state=seed)


def right(labels, truth):
    return float(np.mean(DawidSkene()._fit_without_checks(labels).labels_ == truth))


@pytest.mark.parametrize("seed", range(3))
def test_copies_with_slips_on_some_tasks_are_one_group(seed):
    made = plot(seed)
    found = find_clones(made.labels)
    assert [group.tolist() for group in found.groups] == [list(range(18, 30))]
    assert found.findings()[0].affected == tuple(range(18, 30))
    assert found.agreement[0] == pytest.approx(0.95, abs=0.02)  # .95² + .05² + half of the rest
    assert found.expected[0] == pytest.approx(0.5, abs=0.05)  # two random sheets


@pytest.mark.parametrize("seed", range(3))
def test_counting_them_once_saves_the_labels(seed):
    made = plot(seed)
    vote = float(np.mean(MajorityVote()._fit_without_checks(made.labels).labels_ == made.truth))
    after = collapse_clones(made.labels)
    assert after.removed.tolist() == list(range(19, 30))
    assert right(made.labels, made.truth) < vote < right(after.labels, made.truth)
    assert right(after.labels, made.truth) > 0.88


@pytest.mark.parametrize(
    "workers",
    [
        20 * simulate.OneCoinWorkers(6, 2),
        12 * simulate.OneCoinWorkers(3, 2) + 8 * simulate.OneCoinWorkers(60, 1),  # experts
        12 * simulate.OneCoinWorkers(6, 2) + 8 * simulate.Spammers(),
    ],
)
def test_nobody_else_is_accused(workers):
    for seed in range(3):
        labels = simulate.crowd(600, workers, simulate.PerTask(6), random_state=seed).labels
        assert find_clones(labels).groups == []


def test_a_group_says_what_most_of_it_say():
    labels = CrowdLabels.from_arrays(
        ["a", "a", "a", "a", "b", "b", "c"], [0, 1, 2, 3, 1, 2, 3], [0, 1, 1, 0, 0, 1, 1],
        timestamp=[7, 6, 5, 4, 3, 2, 1],
    )  # fmt: skip
    some = np.ones(1)
    clones = Clones(labels.workers, np.array([0, 0, 0, -1], np.int32), some, some, some)
    after = collapse_clones(labels, clones).labels
    assert after.to_dict()["task"].tolist() == ["a", "a", "b", "c"]
    assert after.to_dict()["worker"].tolist() == [0, 3, 0, 3]
    assert after.to_dict()["label"].tolist() == [1, 0, 0, 1]  # two of three; a draw: the first
    assert after.to_dict()["timestamp"].tolist() == [6, 4, 3, 1]


def test_clean_takes_copies_before_colluders():
    made = plot(2, 2000)
    after = clean(made.labels, ["collusion", "clones"])
    assert set(after.removed.tolist()) >= set(range(19, 30))
    assert right(after.labels, made.truth) > 0.88


def test_nothing_to_compare():
    with pytest.raises(NotApplicable, match="share 5 tasks"):
        find_clones(CrowdLabels.from_matrix([[0, 1], [1, 0]]))


@pytest.mark.parametrize("others", ["6*spammers", "3*spammers + 3*colluders", "8*colluders"])
@pytest.mark.parametrize("seed", range(3))
def test_experts_are_no_copies_whoever_else_there_is(others, seed):
    crowd = simulate.crowd(
        200, f"8*one-coin:20,1 + {others}", simulate.PerTask(8), n_classes=3, random_state=seed
    )
    accused = np.concatenate([[], *find_clones(crowd.labels).groups])
    assert not np.isin(accused, np.arange(8)).any()


def test_groups_and_their_findings():
    crowd = (
        6 * simulate.OneCoinWorkers()
        + 4 * simulate.DependentGroup()
        + 3 * simulate.DependentGroup()
    )
    made = simulate.crowd(600, crowd, simulate.Dense(), n_classes=3)
    report = find_dependent_groups(made.labels)
    np.testing.assert_array_equal(report.group, [-1] * 6 + [0] * 4 + [1] * 3)
    np.testing.assert_array_equal(report.size, [4, 3])
    assert report.n_effective == 8
    votes = made.labels.label.reshape(600, 13)
    pairs = [np.mean(votes[:, a] == votes[:, b]) for a in range(6, 10) for b in range(a + 1, 10)]
    assert report.agreement[0] == pytest.approx(np.mean(pairs))
    exact = [np.einsum("kl,kl->", made.confusion[a], made.confusion[b]) / 3
             for a in range(6, 10) for b in range(a + 1, 10)]  # fmt: skip
    assert report.expected[0] == pytest.approx(np.mean(exact), abs=0.05)
    found = report.findings()
    assert [f.id for f in found] == ["dependent-group"] * 2
    assert found[0].affected == (6, 7, 8, 9)
    assert found[0].severity == "medium"
    assert found[0].score == pytest.approx(report.agreement[0] - report.expected[0])
    assert report.to_dict()["size"] == [4, 3]
    for table in report.tables().values():
        assert len({len(column) for column in table.values()}) == 1


def test_independent_workers_have_no_findings():
    made = simulate.crowd(400, 15 * simulate.OneCoinWorkers(), simulate.Dense(), n_classes=3)
    report = find_dependent_groups(made.labels)
    assert report.findings() == []
    assert report.n_effective == 15


def test_what_cannot_be_done():
    with pytest.raises(NotApplicable, match="share 5 tasks"):
        find_dependent_groups(CrowdLabels.from_matrix([[0, 1], [1, 0]]))
    with pytest.raises(NotApplicable, match="one class"):
        find_dependent_groups(CrowdLabels.from_matrix([["a", "a"]] * 9))
    with pytest.raises(ParameterError, match="least_excess"):
        find_dependent_groups(CrowdLabels.from_matrix([[0, 1], [1, 0]]), least_excess=-1)


MODELS = ["gpt-4o", "claude-3", "gemini_pro"]


def judged(workers, **columns):
    truth = np.random.default_rng(0).integers(0, 2, 40)
    rows = [(i, w, "ab"[truth[i] if i % 5 else j % 2]) for i in range(40)
            for j, w in enumerate(workers)]  # fmt: skip
    return CrowdLabels.from_arrays(*map(list, zip(*rows, strict=True)), **columns)


def found_in(labels, **options):
    audit = audit_crowd(labels, parts=["models"], **options)
    return [finding for finding in audit.findings if finding.id == "model-workers"]


def test_models_only_are_a_finding_that_asks_for_known_answers():
    (finding,) = found_in(judged(MODELS))
    assert (finding.severity, finding.affected) == ("medium", tuple(sorted(MODELS)))
    for words in ("depend on each other", "1.6 to 3", "6 to 44 points lower"):
        assert words in finding.explanation
    assert "about 60 tasks" in finding.remedy


@pytest.mark.parametrize("workers", [["ann", *MODELS], ["ann", "bob"], ["gpt-4o"]])
def test_a_person_among_them_or_one_model_is_none(workers):
    assert found_in(judged(workers)) == []


def test_known_answers_need_no_finding():
    assert found_in(judged(MODELS), gold={0: "a", 1: "b"}) == []


def test_the_kind_of_worker_decides():
    assert found_in(judged(["x", "y"], worker_kind=["model"] * 80))
    assert not found_in(judged(MODELS, worker_kind=["human"] * 120))
