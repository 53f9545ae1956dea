from __future__ import annotations

import json

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.aggregation import Auto, DawidSkene, GaussianEM, MajorityVote, OneCoin, StudentEM
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.registry import get_method
from wisecrowd.kinds.classes.families.updating import one_by_one, state_of, updatable
from wisecrowd.storage.models import load_state, save_state

pytestmark = pytest.mark.filterwarnings("ignore::wisecrowd.core.exceptions.WisecrowdWarning")
NAMES = updatable()
every_method = pytest.mark.parametrize("name", [name for name in NAMES if name != "auto"])
# From a first half of the labels these may converge to another of their optima.
LOOSE = {"fast-dawid-skene": 0.97, "community-bcc": 0.97}


@pytest.fixture(scope="module")
def crowd():
    made = wc.simulate.crowd(
        120, 12 * wc.simulate.OneCoinWorkers(8, 2), "per-task:5", n_classes=3, random_state=3
    )
    return made.labels, made.truth


def halves(labels):
    first = np.random.default_rng(0).random(labels.n_annotations) < 0.5
    return labels.select_annotations(first), labels.select_annotations(~first)


def numbers():
    rng = np.random.default_rng(0)
    truth = rng.normal(10, 3, 60)
    task = np.repeat(np.arange(60), 4)
    worker = np.concatenate([rng.permutation(7)[:4] for _ in range(60)])
    bias, noise = rng.normal(0, 1, 7), np.linspace(0.3, 2, 7)
    value = truth[task] + bias[worker] + noise[worker] * rng.normal(0, 1, len(task))
    return wc.CrowdNumbers.from_arrays(task, worker, value)


def test_methods_that_iterate_can_be_updated():
    assert {"auto", "dawid-skene", "one-coin", "zen-crowd", "hierarchical-dawid-skene", "mace",
            "glad", "mean-field", "majority-vote"} <= set(NAMES)  # fmt: skip
    assert updatable("numbers") == ["gaussian-em", "student-em"]


@every_method
def test_sweeps_reach_the_batch_labels(name, crowd):
    labels, truth = crowd
    first, rest = halves(labels)
    make = get_method(name)
    batch = make().fit(labels)
    swept = make().fit(first).update(rest, sweeps=100)
    assert (swept.labels_ == batch.labels_).mean() >= LOOSE.get(name, 0.99)
    once = make().fit(first).update(rest)
    assert (once.labels_ == truth).mean() >= (batch.labels_ == truth).mean() - 0.03
    assert once.n_iter_ <= 1  # it continued and did not start again


@pytest.mark.parametrize("name", ["hierarchical-dawid-skene", "mean-field", "mace", "glad"])
def test_an_update_continues_from_the_previous_posterior(name, crowd):
    labels, _ = crowd
    make = get_method(name)
    all_but_one = np.arange(labels.n_annotations) > 0
    batch = make().fit(labels)
    updated = make().fit(labels.select_annotations(all_but_one))
    updated.update(labels.select_annotations(~all_but_one))
    again = make(max_iter=1).fit(labels)  # one pass from the vote
    distance = [np.abs(one.probas_ - batch.probas_).mean() for one in (updated, again)]
    assert distance[0] < 0.3 * distance[1]


@every_method
def test_new_tasks_workers_and_classes_join(name):
    made = get_method(name)().fit((["t1", "t1"], ["ann", "bob"], ["cat", "cat"]))
    made.update((["t1", "t2", "t2"], ["cem", "cem", "ann"], ["cat", "owl", "owl"]))
    assert made.tasks_.tolist() == ["t1", "t2"]
    assert made.workers_.tolist() == ["ann", "bob", "cem"]
    assert made.classes_.tolist() == ["cat", "owl"]
    assert made.labels_.tolist() == ["cat", "owl"]
    made.update((["t1"], ["bob"], ["owl"]))  # a repeated pair: the last counts
    assert made.labels_per_task_.tolist() == [3, 2]


@pytest.mark.parametrize("name", ["one-coin", "hierarchical-dawid-skene", "bwa"])
def test_gold_stays_known(name, crowd):
    labels, _ = crowd
    first, rest = halves(labels)
    task, other = labels.tasks[0], labels.classes[2]
    made = get_method(name)().fit(first, gold={task: other}).update(rest)
    assert made.labels_[made.tasks_.tolist().index(task)] == other


@pytest.mark.parametrize("name", ["dawid-skene", "one-coin", "hierarchical-dawid-skene", "glad"])
def test_saving_between_updates_changes_no_bit(name, crowd, tmp_path):
    labels, _ = crowd
    first, rest = halves(labels)
    then = np.arange(rest.n_annotations) < 100
    parts = [first, rest.select_annotations(then), rest.select_annotations(~then)]
    options = {"forget": 0.9} if one_by_one(get_method(name)) else {}
    gold = {labels.tasks[3]: labels.classes[1]}
    straight = get_method(name)().fit(parts[0], gold=gold)
    stored = get_method(name)().fit(parts[0], gold=gold)
    for part in parts[1:]:
        straight.update(part, **options)
        stored.save(tmp_path / "model", labels=True)
        stored = wc.load(tmp_path / "model").update(part, **options)
    assert (stored.probas_ == straight.probas_).all()
    assert stored.tasks_.tolist() == straight.tasks_.tolist()


def test_saving_a_stream_changes_no_bit(crowd, tmp_path):
    labels, _ = crowd
    parts = [labels[slice(0, 40)], labels[slice(40, 80)], labels[slice(80, 120)]]
    straight = DawidSkene().fit(parts[0]).update(parts[1], stepwise=True)
    straight.save(tmp_path / "model", labels=True)
    stored = wc.load(tmp_path / "model").update(parts[2], stepwise=True)
    straight.update(parts[2], stepwise=True)
    assert (stored.probas_ == straight.probas_).all()
    assert (stored.confusion_ == straight.confusion_).all()


def test_labels_of_a_changed_file_are_refused(crowd, tmp_path):
    fitted = OneCoin().fit(crowd[0])
    fitted.save(tmp_path / "model", labels=True)
    saved = load_state(tmp_path / "model")
    kept = saved.state.pop("kept")
    for change in (
        {"worker": kept["worker"] + np.int32(50)},
        {"task": -kept["task"]},
        {"value": kept["value"].astype(np.int64)},
        {"task": kept["task"][::-1].copy()},
        {"gold": np.zeros(3, np.int32)},
        {"weight": np.ones(3)},
        {"weight": -np.ones(len(kept["task"]))},
        {"gold": np.full(120, 7, np.int32)},
    ):
        state = {**saved.state, "kept": {**kept, **change}}
        save_state(tmp_path / "changed", saved.kind, state)
        with pytest.raises(DataError, match="Cannot load"):
            wc.load(tmp_path / "changed")


def test_labels_are_saved_only_on_request(crowd, tmp_path):
    fitted = MajorityVote().fit(crowd[0])
    fitted.save(tmp_path / "plain")
    assert "kept" not in json.loads((tmp_path / "plain" / "model.json").read_text())["state"]
    assert set(state_of(fitted)) == {"task", "worker", "value", "given"}


def test_auto_keeps_its_choice(crowd):
    labels, truth = crowd
    first, rest = halves(labels)
    made = Auto(candidates=("one-coin", "dawid-skene")).fit(first)
    chosen, scores = made.chosen_, made.scores_
    made.update(rest)
    assert made.chosen_ == chosen
    assert made.scores_ == scores
    assert [len(member.tasks_) for member in made.members_] == [120] * 3
    assert (made.labels_ == truth).mean() > 0.9
    assert made.n_iter_ == 1


@pytest.mark.parametrize("make", [GaussianEM, StudentEM])
def test_numbers(make, tmp_path):
    labels = numbers()
    first, rest = halves(labels)
    fixed = {"nu": 4.0} if make is StudentEM else {}
    batch = make(**fixed).fit(labels)
    made = make(**fixed).fit(first)
    made.save(tmp_path / "model", labels=True)
    stored = wc.load(tmp_path / "model").update(rest, sweeps=300)
    made.update(rest, sweeps=300)
    assert (stored.values_ == made.values_).all()
    np.testing.assert_allclose(made.values_, batch.values_, atol=1e-4)
    known = make(**fixed).fit(first, gold={0: 5.0}).update(rest)
    assert known.values_[known.tasks_.tolist().index(0)] == 5.0
    made.update(([999], [77], [3.0]))
    assert made.tasks_[-1] == 999
    assert np.isfinite(made.values_).all()


def test_an_update_keeps_the_degrees_of_freedom():
    first, rest = halves(numbers())
    made = StudentEM(nu="auto").fit(first)
    nu = made.nu_
    assert made.update(rest).nu_ == nu
    assert made.nu == "auto"
    assert made.n_iter_ == 1


def test_numbers_have_questions_in_both_or_in_neither():
    plain = GaussianEM().fit(numbers())
    asked = wc.CrowdNumbers.from_arrays([1, 2], [1, 1], [1.0, 2.0], question=["size", "size"])
    with pytest.raises(DataError, match="question"):
        plain.update(asked)
