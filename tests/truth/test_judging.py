"""Judges beside people: roles, verdicts, what else is said of them, and data without an answer."""

from __future__ import annotations

import numpy as np
import pytest
from tests.truth.judge_crowds import as_classes, as_numbers, judged_crowd

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.truth import judges


@pytest.fixture(scope="module")
def rows():
    return judged_crowd(0, n_tasks=120, n_people=4, share=0.95, judges=(0.8, 0.3))[0]


@pytest.fixture(scope="module")
def found(rows):
    return judges(as_classes(rows), epsilon=0.2)


def row_of(found, judge, table="judges"):
    columns = found.tables[table]
    n = columns["judge"].tolist().index(judge)
    return {name: values[n] for name, values in columns.items()}


def test_tables_have_the_promised_columns(found):
    first = {name: [*columns] for name, columns in found.tables.items()}
    assert first["judges"][:10] == [
        "judge", "passes", "omega", "rho", "score", "ceiling", "leniency", "low", "high", "power",
    ]  # fmt: skip
    assert first["judge_people"] == ["judge", "person", "n", "rho", "p", "beaten"]
    assert {"first", "second", "phi", "difference", "low", "high", "p"} <= {*first["judge_pairs"]}
    assert {"judge", "class", "given", "true", "difference", "p"} == {*first["judge_classes"]}
    assert {"judge", "n", "consistent", "flips", "first"} <= {*first["judge_sides"]}
    assert first["judge_power"] == ["n_tasks", "power"]
    assert found.table("judge_people", "pyarrow").num_rows == 8
    assert repr(found) == "JudgeResults of 2 judges and 4 people"


def test_verdicts_are_one_sentence(found):
    good, bad = (verdict.text for verdict in found.verdicts)
    one = row_of(found, "model0")
    assert good == (
        f"model0 may replace one of 4 people at epsilon 0.2: it agrees with the others in "
        f"{one['score']:.0%} (people {one['ceiling']:.0%}), and beats 4 of 4."
    )
    assert bad.startswith("model1 may not replace one of 4 people at epsilon 0.2: it agrees with")
    assert [verdict.outcome for verdict in found.verdicts] == ["may", "may not"]
    assert row_of(found, "model1")["verdict"] == bad
    assert found.columns["passes"].tolist() == [True, False]


def test_a_judge_is_undecided_if_a_person_would_fail(rows):
    few = [row for row in rows if int(row[0][1:]) < 60]
    text = judges(as_classes(few), epsilon=0.02).verdicts[1].text
    power = judges(as_classes(few), epsilon=0.02).columns["power"][1]
    assert power < 0.8
    assert text.startswith("model1 is undecided at epsilon 0.02: with ")
    assert f"a person would pass only in {power:.0%} of the cases; " in text


def test_named_judges_outrank_kinds(rows):
    labels = as_classes(rows)
    named = judges(labels, judges=["human0"])
    assert named.columns["judge"].tolist() == ["human0"]
    assert set(named.tables["judge_people"]["person"]) == {"human1", "human2", "human3"}
    some = judges(labels, judges="model0", people=["human0", "human1", "model1"])
    assert set(some.tables["judge_people"]["person"]) == {"human0", "human1", "model1"}


def test_without_humans_the_others_are_people(rows):
    labels = as_classes([(task, worker, label, "model") for task, worker, label, _ in rows])
    assert judges(labels, judges=["model0"]).n_people == 5


def test_order_of_rows_and_names_of_classes_do_not_matter(rows, found):
    other = judges(as_classes(rows[::-1]), epsilon=0.2)
    np.testing.assert_array_equal(other.columns["omega"], found.columns["omega"])
    np.testing.assert_allclose(other.columns["rho"], found.columns["rho"], atol=1e-12)


def test_known_answers_outrank_people(rows):
    _, truth = judged_crowd(0, n_tasks=120, n_people=4, share=0.95, judges=(0.8, 0.3))
    known = {task: chr(97 + code) for task, code in list(truth.items())[:80]}
    found = judges(as_classes(rows), known=known)
    assert found.against_known
    for judge in ("model0", "model1"):
        own = {task: chr(97 + label) for task, who, label, _ in rows if who == judge}
        both = [task for task in known if task in own]
        one = row_of(found, judge)
        assert one["n_known"] == len(both)
        right = np.mean([own[task] == known[task] for task in both])
        assert one["on_known"] == pytest.approx(right)
        assert one["known_low"] < right < one["known_high"]
    pair = {name: values[0] for name, values in found.tables["judge_pairs"].items()}
    assert (pair["first"], pair["second"]) == ("model0", "model1")
    assert pair["n"] < 80
    assert pair["low"] < pair["difference"] < pair["high"]


def test_weights_of_check_lists_enter(rows):
    _, truth = judged_crowd(0, n_tasks=120, n_people=4, share=0.95, judges=(0.8, 0.3))
    tasks = list(truth)[:60]
    weight = np.where(np.arange(60) < 30, 1.0, 3.0)
    import pyarrow as pa

    names = [chr(97 + truth[task]) for task in tasks]
    frame = pa.table({"task": tasks, "label": names, "weight": weight})
    own = {task: chr(97 + label) for task, who, label, _ in rows if who == "model1"}
    some = [n for n, task in enumerate(tasks) if task in own]
    right = [own[tasks[n]] == names[n] for n in some]
    found = row_of(judges(as_classes(rows), known=frame), "model1")
    assert found["on_known"] == pytest.approx(np.average(right, weights=weight[some]))


def test_classes_that_judges_favour():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    rows = [(f"t{n}", f"p{k}", int(truth[n]), "human") for n in range(300) for k in range(3)]
    rows += [(f"t{n}", "j", int(truth[n] | (n % 4 == 0)), "model") for n in range(300)]
    found = judges(as_classes(rows))
    table = found.tables["judge_classes"]
    off = np.mean((truth == 0) & (np.arange(300) % 4 == 0))
    np.testing.assert_allclose(table["difference"].astype(float), [-off, off])
    assert (table["p"] < 1e-6).all()
    one = next(one for one in found.findings() if one.id == "favoured-class")
    assert f"j gives {'b' if off > 0 else 'a'} {off * 100:.0f} points too" in one.explanation


def test_leniency_of_numbers_and_grades():
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 4, 100)
    rows = [
        (f"t{n}", f"p{k}", int(truth[n] + rng.integers(-1, 2)), "human")
        for n in range(100) for k in range(3)
    ]  # fmt: skip
    rows += [(f"t{n}", "j", int(truth[n] + 1), "model") for n in range(100)]
    for data in (as_numbers(rows), as_classes(rows, ordered=True, classes=list("abcdef"))):
        one = row_of(judges(data), "j")
        people = {}
        for task, _, label, kind in rows:
            if kind == "human":
                people.setdefault(task, []).append(label)
        off = [label - np.mean(people[task]) for task, _, label, kind in rows if kind == "model"]
        assert one["leniency"] == pytest.approx(np.mean(off))
        assert one["low"] < one["leniency"] < one["high"]
        assert "lenient-judge" in [finding.id for finding in judges(data).findings()]
        assert "away from the others (people " in one["verdict"] or "undecided" in one["verdict"]


def votes_in_both_orders(stubborn=True):
    """Pairs by three people and a judge who takes the first side of each second pair."""
    rng = np.random.default_rng(0)
    columns = [[], [], [], [], []]
    for n in range(60):
        left, right = f"a{n}", f"b{n}"
        better = rng.random() < 0.5
        for person in ("ann", "bob", "cem"):
            row = ("q", person, left, right, "left" if better else "right")
            for column, value in zip(columns, row, strict=True):
                column.append(value)
        for one, other in ((left, right), (right, left)):
            takes_first = stubborn and n % 2
            chosen = one if takes_first else (left if better else right)
            row = ("q", "judge", one, other, "left" if chosen == one else "right")
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    kinds = ["model" if who == "judge" else "human" for who in columns[1]]
    return wc.CrowdPairs.from_arrays(*columns, worker_kind=kinds)


def test_pairs_in_both_orders():
    found = judges(votes_in_both_orders(), epsilon=0.2)
    one = row_of(found, "judge", "judge_sides")
    assert (one["n"], one["flips"], one["consistent"], one["first"]) == (60, 30, 0.5, 1.0)
    assert one["low"] > 0.85
    assert one["p"] < 1e-6
    assert row_of(found, "judge")["rho"] == pytest.approx(0.5)  # a change counts as a tie
    assert "one-sided-judge" in [finding.id for finding in found.findings()]
    steady = judges(votes_in_both_orders(stubborn=False), epsilon=0.2)
    assert row_of(steady, "judge")["rho"] == 1.0
    assert row_of(steady, "judge", "judge_sides")["consistent"] == 1.0


def test_pairs_do_not_depend_on_the_sides():
    votes = votes_in_both_orders()
    np.testing.assert_allclose(
        judges(votes.mirrored()).columns["rho"].astype(float),
        judges(votes).columns["rho"].astype(float),
    )


def test_known_outcomes_of_pairs():
    votes = wc.CrowdPairs.from_arrays(
        ["t1", "t1", "t2", "t2"], ["ann", "gpt", "ann", "gpt"], list("xyxx"), list("yxzz"),
        ["left", "left", "left", "right"], worker_kind=["human", "model"] * 2,
    )  # fmt: skip
    for known in ({"t1": "y", "t2": "z"}, {"t1": "right", "t2": "right"}):
        one = row_of(judges(votes, known=known), "gpt")
        assert (one["n_known"], one["on_known"]) == (2, 1.0)


def test_exchanged_sides_of_two_workers():
    tasks = [f"t{n}" for n in range(40)]
    rows = [(task, f"p{k}", 0, "human") for task in tasks for k in range(3)]
    rows += [(task, "gpt", 0, "model") for task in tasks]
    rows += [(task, "gpt-turned", int(n < 10), "model") for n, task in enumerate(tasks)]
    found = judges(as_classes(rows), swap={"gpt": "gpt-turned"})
    assert found.columns["judge"].tolist() == ["gpt"]
    one = row_of(found, "gpt", "judge_sides")
    assert (one["n"], one["flips"], one["consistent"], one["first"]) == (40, 10, 0.75, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 2}, "epsilon"),
        ({"judges": ["model7"]}, "did you mean 'model1'"),
        ({"judges": []}, "judges is empty"),
        ({"judges": ["model0"], "people": ["model0", "human1"]}, "judge and person at once"),
        ({"swap": ["a"]}, "swap is not a mapping"),
        ({"swap": {"model0": "model0"}}, "names a worker twice"),
        ({"swap": {"model0": "model1"}}, "two classes"),
        ({"cluster": "text"}, "no column of the tasks"),
    ],
)
def test_wrong_parameters_are_one_sentence(rows, options, message):
    with pytest.raises((ParameterError, DataError), match=message) as caught:
        judges(as_classes(rows), **options)
    assert str(caught.value).count(". ") == 0


def test_wrong_data_are_one_sentence(rows):
    labels = as_classes(rows)
    with pytest.raises(DataError, match="cluster has 3 entries"):
        judges(labels, cluster=[1, 2, 3])
    with pytest.raises(DataError, match="cluster names none of the tasks"):
        judges(labels, cluster={"x": 1})
    plain = wc.CrowdLabels.from_arrays(["t", "t"], ["a", "b"], ["x", "y"])
    with pytest.raises(ParameterError, match="No worker is known to be a model"):
        judges(plain)
    texts = wc.CrowdTexts.from_arrays(["t", "t"], ["a", "b"], ["x y", "y"])
    with pytest.raises(ParameterError, match="Judges are compared on labels, ordered"):
        judges(texts, judges=["a"])
    with pytest.raises(ParameterError, match="Numbers have no sides"):
        judges(as_numbers(rows), swap={"model0": "model1"})


def test_one_person_leaves_only_the_rest(rows):
    some = [row for row in rows if row[1] in ("human0", "model0", "model1")]
    found = judges(as_classes(some), known={"t0": "a", "t1": "b"})
    assert [verdict.outcome for verdict in found.verdicts] == ["untested"] * 2
    assert "there is one person only, and the test needs two" in found.verdicts[0].text
    assert found.columns["passes"].tolist() == [None, None]
    assert np.isnan(found.columns["omega"]).all()
    assert len(found.tables["judge_people"]["judge"]) == 0
    assert found.columns["n_known"].tolist() == [2, 2]
    lenient = judges(as_numbers(some)).columns["leniency"]
    assert np.isfinite(lenient).all()


def test_no_people_leave_known_answers(rows):
    some = [row for row in rows if row[3] == "model"]
    found = judges(as_classes(some), judges=["model0", "model1"], known={"t0": "a", "t1": "b"})
    assert "there are no people" in found.verdicts[0].text
    assert found.tables["judge_pairs"]["n"].tolist() == [2]


def test_two_people_are_fragile(rows):
    some = [row for row in rows if row[1] in ("human0", "human1", "model0", "model1")]
    found = judges(as_classes(some), epsilon=0.3)
    assert all("two people only, so that this is fragile" in v.text for v in found.verdicts)
    assert np.isnan(found.columns["power"].astype(float)).all()


def test_nobody_with_30_tasks(rows):
    found = judges(as_classes([row for row in rows if int(row[0][1:]) < 25]))
    assert found.verdicts[0].text.startswith("model0 was not tested: nobody has 30 tasks with")
    with pytest.raises(ParameterError, match="is empty"):
        found.table("judge_people")


def test_one_class_says_nothing(rows):
    same = [(task, worker, 0, kind) for task, worker, _, kind in rows]
    task, worker, _, kind = zip(*same, strict=True)
    labels = wc.CrowdLabels.from_arrays(
        task, worker, ["a"] * len(same), worker_kind=kind, classes=["a", "b"]
    )
    found = judges(labels)
    assert found.columns["omega"].tolist() == [1.0, 1.0]  # nobody is closer to the others
    assert any("all answers are equal" in note for note in found.notes)


def test_missing_answers_are_said(rows, found):
    assert any("did not answer all tasks of people" in note for note in found.notes)
    assert 0.9 < row_of(found, "model0")["answered"] < 1


def test_repeated_answers_count_once(rows):
    labels = as_classes([*rows, *rows], duplicates="keep")
    twice, once = judges(labels), judges(as_classes(rows))
    np.testing.assert_allclose(twice.columns["rho"], once.columns["rho"])
    assert twice.tables["judge_people"]["n"].tolist() == once.tables["judge_people"]["n"].tolist()


def test_a_frame_is_taken(rows):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows, columns=["task", "worker", "label", "worker_kind"])
    frame["label"] = frame["label"].map(lambda code: chr(97 + code))
    found = judges(frame, epsilon=0.2)
    assert found.columns["judge"].tolist() == ["model0", "model1"]
    assert isinstance(found.table(), pd.DataFrame)


def test_published_dependence_and_class_bias(data_directory):
    for name, expected in (("judges_framing", 2.1), ("judges_cebab_aspects", 1.6)):
        labels = wc.read(data_directory / name / "answers.csv", kinds="all")
        found = judges(labels, epsilon=0.15)
        table = found.tables["judge_effective"]
        assert round(table["effective"][0], 1) == expected
        assert table["low"][0] < expected + 0.05 < table["high"][0] + 0.1
        if name == "judges_framing":
            shares = found.tables["judge_classes"]
            flash = (shares["judge"] == "gemini_flash") & (shares["class"] == "yes")
            assert shares["difference"][flash][0] == pytest.approx(0.18, abs=0.005)
            one = row_of(found, "llama-31")
            assert (round(one["score"], 2), round(one["ceiling"], 2)) == (0.65, 0.79)
