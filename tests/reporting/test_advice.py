"""Advice: what a command would change, and that none is shown that does not hold."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels, CrowdNumbers, simulate
from wisecrowd.core.findings import Finding
from wisecrowd.inference.label_support import CLEAR, KnownScore, KnownScores, Support
from wisecrowd.reporting.advice import Context, effect_of, next_steps, python_call, step_of
from wisecrowd.reporting.document import study_of
from wisecrowd.reporting.study import study_crowd
from wisecrowd.reporting.trials import HARMLESS, Action, Trial, Trials, apply
from wisecrowd.reporting.verdict import COMMANDS

FILE = "answers.csv"


@pytest.fixture(scope="module")
def study():
    """A crowd with two spammers, and a worker who is always wrong in the second half."""
    made = simulate.crowd(
        200, 8 * simulate.OneCoinWorkers(8, 2) + 2 * simulate.Spammers(), simulate.Dense(),
        n_classes=3,
    )  # fmt: skip
    table = made.labels.to_dict()
    late = (table["worker"] == 3) & (table["task"] >= 100)
    wrong = (made.truth[table["task"]] + 1) % 3
    labels = CrowdLabels.from_arrays(
        table["task"], table["worker"], np.where(late, wrong, table["label"]),
        timestamp=table["task"], cost=np.full(len(late), 0.5),
    )  # fmt: skip
    return study_crowd(labels, method="dawid-skene")


def trial(**more):
    facts = {"n_changed": 50, "n_tasks": 100, "agreement": 0.5, "score_change": 0.1,
             "score_error": 0.01}  # fmt: skip
    return Trial(**(facts | more))


@pytest.mark.parametrize(
    ("more", "holds"),
    [
        ({}, True),
        ({"score_change": -0.1}, False),
        ({"score_change": 0.9 * CLEAR * 0.01}, False),
        ({"score_change": -0.005, "n_changed": 0}, True),
        ({"score_change": -0.005, "n_tasks": 1000, "n_changed": int(1000 * HARMLESS)}, True),
        ({"score_change": -0.02, "n_tasks": 1000, "n_changed": int(1000 * HARMLESS)}, False),
        ({"score_change": float("nan")}, False),
        ({"measured": (0.9, 0.8)}, False),
    ],
)
def test_what_changes_labels_must_predict_hidden_labels_better(more, holds):
    assert trial(**more).holds == holds


def test_trial_of_pruning_counts_workers_labels_and_money(study):
    action = Action.of(COMMANDS["spammers"], {}, "dawid-skene")
    found = Trials(study).of(action)
    accused = study.audit["spammers"].accused
    gone = accused[study.labels.worker]
    assert accused[[8, 9]].all()
    assert found.n_workers == accused.sum()
    assert found.n_labels == gone.sum()
    assert found.cost == pytest.approx(0.5 * found.n_labels)
    rest = study.labels.select_annotations(~gone)
    after = study.fit._for_refit()._fit_without_checks(rest)
    assert found.n_changed == int((after.labels_ != study.fit.labels_).sum())
    assert found.n_tasks == 200


def test_the_present_method_changes_nothing(study):
    found = Trials(study).of(Action(method="dawid-skene"))
    assert (found.n_changed, found.score_change) == (0, 0.0)


def test_a_bad_remedy_is_declined_and_the_command_only_shows(study):
    """A majority vote follows the random workers more than Dawid-Skene does."""
    found = Finding("drift", "medium", 1.0, (3,), "Worse.", "Set aside.")
    context = Context(study, Trials(study), [FILE], ())

    class Never(Trials):
        def of(self, action, concerned=None):
            return trial(score_change=-1.0)

    held = step_of(found, context)
    assert "--drop-after" in held["command"] or held["declined"]
    worse = step_of(found, Context(study, Never(study), [FILE], ()))
    assert worse["command"] == "wisecrowd audit answers.csv --part drift -o audit"
    assert worse["effect"]["text"] == "Changes no labels."
    assert worse["declined"][0].startswith("Dropping their later labels was tried.")
    assert worse["remedy"] != "Set aside."


def test_drift_is_mended_by_dropping_labels_after_the_change(study):
    moment = study.audit["drift"].moment[list(study.audit["drift"].workers).index(3)]
    steps = {step["id"]: step for step in next_steps(study, [FILE])}
    template = Action.of(COMMANDS["drift"], {3: moment}, "dawid-skene")
    assert template.moments == {3: moment}
    done = apply(template, study.labels, study.audit.parts)
    late = (study.labels.worker == 3) & (study.labels.columns["timestamp"] > moment)
    np.testing.assert_array_equal(done.rows, late)
    step = steps["drift"]
    assert (
        step["command"] == f"wisecrowd aggregate answers.csv --drop-after 3={moment} -o labels.csv"
    )
    assert step["effect"]["n_labels"] == int(late.sum())
    assert step["effect"]["n_changed"] <= HARMLESS * 200


def test_every_step_says_what_it_changes(study):
    for step in next_steps(study, [FILE]):
        assert step["effect"]["text"].endswith(".")
        if step["effect"]["changes"]:
            assert step["effect"]["accuracy"] is None  # no class is known, so none is measured
            assert "accuracy" not in step["effect"]["text"].lower()
            assert step["effect"]["held_out"] is None or step["effect"]["held_out"]["change"] != 0


def test_an_effect_names_money_and_spared_workers():
    effect = effect_of(
        Action(removes=("spammers",)),
        trial(n_workers=2, n_labels=40, cost=4.0, spared=("w9",), measured=(0.8, 0.9)),
    )
    assert "2 workers and 40 labels, which cost 4.00" in effect["text"]
    assert "'w9' is spared, because some tasks have no labels of other workers" in effect["text"]
    assert "80.0 % before, 90.0 % after, measured on known classes" in effect["text"]


@pytest.mark.parametrize(
    ("more", "improves"),
    [
        ({}, True),
        ({"support": Support(30, 10, 6.0)}, True),
        ({"support": Support(32, 42, 10.0)}, False),
        ({"support": Support(30, 20, 6.0)}, False),
        ({"score_change": 0.9 * CLEAR * 0.01, "support": Support(30, 10, 6.0)}, False),
        ({"n_changed": 0}, False),
        ({"score_change": float("nan")}, False),
        ({"measured": (0.9, 0.8)}, False),
    ],
)
def test_spammers_are_removed_only_if_the_changed_labels_are_better(more, improves):
    assert trial(**more).improves == improves


class Fixed(Trials):
    """Trials with a given result."""

    result = None

    def of(self, action, concerned=None):
        return self.result


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (trial(n_changed=0, score_change=0.0, score_error=0.0), "no label depends on theirs"),
        (trial(support=Support(32, 42, 10.0)), "dawid-skene already discounts them"),
        (trial(support=Support(90, 10, 10.0), n_workers=2), "Leave their labels out"),
    ],
)
def test_one_card_has_one_set_of_numbers(study, result, says):
    """The audit measured Dawid-Skene; the card shows the reported method only."""
    found = Finding("spammers", "high", 1.0, (8,), "Random.", "Prune them (how): changes 3 of 200.")
    trials = Fixed(study)
    trials.result = result
    step = step_of(found, Context(study, trials, [FILE], ()))
    assert says in step["remedy"]
    assert "3 of 200" not in str(step)
    assert "no more tasks" in step["remedy"]
    assert ("--prune-to" in step["command"]) == ("Leave" in says)
    if result.support is not None:
        shown = step["effect"]["text"] if "Leave" in says else step["declined"][0]
        assert f"new label {result.support.new} times" in shown


def test_a_vote_is_better_without_spammers_and_a_model_is_not():
    made = simulate.crowd(
        200, 12 * simulate.OneCoinWorkers(6, 3) + 8 * simulate.Spammers(), simulate.PerTask(10),
        n_classes=3, random_state=1,
    )  # fmt: skip
    action = Action.of(COMMANDS["spammers"], {}, "auto")
    vote, model = (
        Trials(study_crowd(made.labels, method=name)).of(action)
        for name in ("majority-vote", "one-coin")
    )
    assert vote.improves
    assert not model.improves


def test_scores_are_not_named_on_the_page(study):
    found = [f for f in study.audit.findings if "which is the score" in f.explanation]
    assert found
    assert "which is the score" not in str(next_steps(study, [FILE]))


def test_numbers_are_tried_too():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=60)
    task, worker = np.repeat(np.arange(60), 6), np.tile(np.arange(6), 60)
    value = truth[task] + 0.3 * rng.normal(size=360)
    value[worker == 5] = rng.normal(size=60)
    study = study_of(CrowdNumbers.from_arrays(task, worker, value))
    found = Trials(study).of(Action(method="mean"))
    assert found.n_changed == -1
    assert found.agreement < 1
    assert np.isfinite(found.score_change)


def test_python_calls():
    assert python_call("compare {file}", Action()) == "wc.compare(labels)"
    call = python_call("", Action(method="glad", parameters={"max_iter": 9}))
    assert call == 'wc.aggregate(labels, "glad", max_iter=9)'


def test_colluders_who_are_copies_are_merged():
    made = simulate.crowd(
        200, 8 * simulate.OneCoinWorkers(6, 3) + 3 * simulate.Copiers(0.99, sources=0),
        simulate.Dense(), n_classes=3,
    )  # fmt: skip
    study = study_crowd(made.labels, method="dawid-skene")
    steps = {step["id"]: step for step in next_steps(study, [FILE])}
    tried = [steps[name]["command"] for name in ("clones", "collusion")]
    assert tried == [f"wisecrowd audit {FILE} --prune clones --prune-to cleaned.csv"] * 2
    assert steps["clones"]["effect"]["n_workers"] == 3


# -------------------------------------------------------------------------------- known classes


def misleading_crowd():
    """Ten workers of different skill, whom one task in five misleads together."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 300)
    seems = np.where(rng.random(300) < 0.2, 1 - truth, truth)
    skill = np.array([0.95, 0.95, 0.9, 0.9, *[0.55] * 6])
    votes = np.where(rng.random((300, 10)) < skill, seems[:, None], 1 - seems[:, None])
    return CrowdLabels.from_matrix(votes), truth


def known_scores(loss, accuracy=(0.8, 0.8), gap=(0.05, 0.05)):
    before = KnownScore(np.full(60, 0.5), accuracy[0], gap[0])
    return KnownScores(before, KnownScore(np.asarray(loss, float), accuracy[1], gap[1]))


@pytest.mark.parametrize(
    ("known", "advised"),
    [
        (known_scores(np.full(60, 0.4)), True),
        (known_scores(np.full(60, 0.6)), False),
        (known_scores(np.full(60, 0.5)), False),  # as before is not better
        (known_scores(np.full(60, 0.4), gap=(0.05, 0.1)), False),
        (known_scores(np.full(60, 0.4), accuracy=(0.8, 0.7)), False),
        (known_scores(np.random.default_rng(0).normal(0.48, 1.0, 60)), False),
    ],
)
@pytest.mark.parametrize("held_out", [0.1, -0.1])
def test_known_classes_outrank_held_out_labels(known, advised, held_out):
    found = trial(known=known, score_change=held_out)
    assert found.holds == advised
    assert found.improves == advised


def test_a_remedy_that_makes_calibration_worse_on_gold_is_not_shown():
    labels, truth = misleading_crowd()
    gold = {task: int(truth[task]) for task in range(0, 300, 3)}
    action = Action(method="group-aware-dawid-skene")
    plain = study_crowd(labels, method="majority-vote")
    checked = study_crowd(labels, method="majority-vote", gold=gold)
    advised, declined = (Trials(one).of(action) for one in (plain, checked))
    assert advised.holds  # by held-out labels, which follow the misleading tasks
    assert not declined.holds
    assert declined.known.n == 100
    assert declined.known.after.gap > declined.known.before.gap
    found = Finding("dependent-group", "medium", 0.2, (0, 1), "They depend.", "Count them once.")
    steps = [step_of(found, Context(one, Trials(one), [FILE], ())) for one in (plain, checked)]
    assert "group-aware-dawid-skene" in steps[0]["command"]
    assert "group-aware-dawid-skene" not in steps[1]["command"]
    assert any("On 100 known classes it is not better" in one for one in steps[1]["declined"])


def test_scores_on_known_classes_are_those_of_a_fit_that_has_not_seen_them():
    labels, truth = misleading_crowd()
    gold = {task: int(truth[task]) for task in range(50)}
    study = study_crowd(labels, method="dawid-skene", gold=gold)
    found = Trials(study).of(Action(method="majority-vote")).known
    blind = study.blind.probas_[:50]
    assert found.before.accuracy == np.mean(blind.argmax(axis=1) == truth[:50])
    loss = -np.log(np.maximum(blind[np.arange(50), truth[:50]], 1e-4))
    np.testing.assert_allclose(found.before.loss, loss)
    assert found.before.accuracy < 1  # gold itself would be right
