"""Files whose columns or options a newcomer names in an unexpected way."""

from __future__ import annotations

import itertools
import json
import shlex

import pytest

from wisecrowd.core.kinds import KINDS

VOTES = "".join(f"{a},{b},{max(a, b)},w{j}\n" for j in range(4)
                for a, b in itertools.permutations("xyz", 2))  # fmt: skip


@pytest.fixture
def votes(tmp_path):
    def write(header):
        path = tmp_path / "votes.csv"
        path.write_text(f"{header}\n{VOTES}")
        return str(path)

    return write


def test_voters_are_workers(cli, votes):
    result = cli("inspect", votes("left,right,winner,voter"))
    assert "worker = voter" in result.out
    assert "by 4 workers" in result.out


def test_an_unused_column_may_be_the_worker(cli, votes):
    result = cli("inspect", votes("left,right,winner,colour"))
    assert "by unknown workers" in result.out
    assert "repeats" not in result.out
    assert "not used: 'colour'" in result.out
    assert "--worker NAME" in result.out
    assert "by 4 workers" in cli("inspect", votes("left,right,winner,colour"),
                                       "--worker", "colour").out  # fmt: skip


def test_an_audit_does_not_blame_unknown_workers(cli, votes):
    result = cli("audit", votes("left,right,winner,colour"), "--json")
    skipped = " ".join(json.loads(result.out)["skipped"].values())
    assert "Contradictions cannot be counted: the workers are unknown" in skipped
    assert "Voters cannot be compared: the workers are unknown" in skipped


def test_a_report_does_not_list_unknown_workers(cli, votes, tmp_path):
    page = tmp_path / "page.html"
    assert cli("report", votes("left,right,winner,colour"), "-o", str(page)).code == 0
    assert 'id="worker-table"' not in page.read_text()
    cli("report", votes("left,right,winner,voter"), "-o", str(page))
    assert 'id="worker-table"' in page.read_text()


@pytest.mark.parametrize("sides", [("model_left", "model_right"), ("answer_a", "answer_b")])
def test_columns_of_sides_are_suggested(cli, votes, sides):
    path = votes(f"{sides[0]},{sides[1]},winner,judge")
    result = cli("inspect", path)
    assert result.code == 3
    assert f"--left {sides[0]} and --right {sides[1]}" in result.err
    assert cli("inspect", path, "--left", sides[0], "--right", sides[1]).code == 0


@pytest.fixture
def spans(tmp_path):
    path = tmp_path / "spans.csv"
    lines = [f"t{t},w{w},{5 * k},{5 * k + 3},{'AB'[k]}\n" for t in range(5) for w in range(3)
             for k in range(2)]  # fmt: skip
    path.write_text("task,worker,start,end,label\n" + "".join(lines))
    return str(path)


def test_rows_of_spans_are_sequences(cli, spans):
    result = cli("aggregate", spans)
    assert result.code == 3
    assert "'start' and 'end' look like the ends of spans: --type sequences" in result.err
    assert "--type sequences" in cli("inspect", spans).out
    assert cli("aggregate", spans, "--type", "sequences").code == 0


def test_times_of_labels_are_not_spans(cli, table):
    rows = [(f"t{t}", f"w{w}", "AB"[t % 2], 10 * t, 10 * t + 5) for t in range(4) for w in range(2)]
    path = table("timed.csv", ["task", "worker", "label", "start", "end"], rows)
    assert "spans" not in cli("inspect", path).out
    assert cli("aggregate", path).code == 0


def test_several_labels_may_be_a_set(cli, table):
    rows = [(f"t{t}", f"w{w}", label) for t in range(5) for w in range(3) for label in "AB"]
    result = cli("aggregate", table("many.csv", ["task", "worker", "label"], rows))
    assert "--type sets" in result.err
    joined = table("joined.csv", ["task", "worker", "label"], [(*row[:2], "A|B") for row in rows])
    assert cli("aggregate", joined, "--type", "sets", "-q").code == 0


def test_next_is_for_classes(cli, table):
    rows = [("t1", "w1", x, 1, 5, 5, "AB"[x % 2]) for x in range(12)]
    names = ["task", "worker", "x", "y", "width", "height", "label"]
    tasks = table("tasks.csv", ["task"], [("t1",)])
    result = cli("next", table("boxes.csv", names, rows), "--tasks", tasks)
    assert "next is for classes" in result.err.splitlines()[-1]
    assert "boxes" in result.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("word", "kind"),
    [("spans", "sequences"), ("NER", "sequences"), ("classes", "labels"), ("ranking", "rankings"),
     ("text", "texts"), ("pairwise", "pairs"), ("likert", "ordered")],
)  # fmt: skip
def test_another_name_of_a_type(cli, spans, word, kind):
    result = cli("aggregate", spans, "--type", word)
    assert result.code == 2
    assert f"did you mean --type {kind}?" in result.err


def test_other_names_of_kinds_are_distinct():
    names = [name for kind in KINDS.values() for name in kind.also_called]
    assert len(set(names)) == len(names)
    assert not set(names) & set(KINDS)


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "batch.csv"
    status = ["Approved", "Approved", "Rejected"]
    rows = [f"h{t},a{t}{w},w{w},{status[w]},{'xy'[t % 2]},{'pq'[t % 2]}\n"
            for t in range(3) for w in range(3)]  # fmt: skip
    path.write_text(
        "HITId,AssignmentId,WorkerId,AssignmentStatus,Answer.category,Answer.mood\n" + "".join(rows)
    )
    return str(path)


@pytest.mark.parametrize(
    "given", [["--label", "category", "--label", "mood"], ["--label=category", "--label=mood"],
              ["--label", "category,mood"]],
)  # fmt: skip
def test_a_run_answers_one_question(cli, questions, given):
    result = cli("aggregate", questions, *given)
    assert result.code in (2, 3)
    assert "a run answers one question" in result.err
    assert cli("aggregate", questions, "--label", "category").code == 0


def test_an_option_with_one_value_is_given_once(cli, questions):
    result = cli("aggregate", questions, "--label", "mood", "--seed", "1", "--seed", "2")
    assert (result.code, result.err) == (2, "wisecrowd: --seed is given 2 times; give it once.\n")
    assert cli("aggregate", questions, "--label", "mood", "--abstain", "p", "--abstain", "r",
               "-q", "-q").code == 0  # fmt: skip


def test_rejected_answers_are_counted_beside_several_questions(cli, questions):
    result = cli("inspect", questions)
    assert "questions 2" in result.out
    assert "left out  3 rejected or not submitted" in result.out


def test_a_doubled_column_of_attributes(cli, table, answers):
    path = table("groups.csv", ["task", "task", "race"], [("t1", "t2", "a"), ("t2", "t1", "b")])
    result = cli("audit", answers, "--attributes", path)
    assert result.code == 3
    assert "There are 2 columns named 'task'" in result.err


def test_parts_of_an_audit_are_those_of_the_data(cli, votes):
    result = cli("audit", votes("left,right,winner,voter"), "--part", "nonsense")
    assert result.code == 2
    assert "there are voters, sides, ties" in result.err


def test_tasks_without_spans_are_not_called_answers(cli, table):
    names = ["task", "start", "end", "label"]
    found = table("found.csv", names, [("a", 0, 3, "X"), ("b", 0, 3, "X"), ("z", 0, 3, "X")])
    truth = table("truth.csv", names, [("a", 0, 3, "X"), ("b", 0, 3, "X"), ("c", 0, 3, "X")])
    result = cli("evaluate", found, "--truth", truth)
    assert "2 of 3 tasks with spans have a truth" in result.err
    assert "1 tasks of" in result.err


@pytest.mark.parametrize("header", ["left,right,winner,voter", "left,right,winner,colour"])
def test_the_command_of_a_table(cli, votes, header, monkeypatch, tmp_path):
    result = cli("inspect", votes(header))
    monkeypatch.chdir(tmp_path)
    command = shlex.split(result.out.split("command   wisecrowd ")[1])
    assert command[-2:] == ["-o", "ranking.csv"]
    assert cli(*command).code == 0


def test_the_command_of_spans_keeps_the_file(cli, spans, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    command = shlex.split(cli("inspect", spans).out.split("command   wisecrowd ")[1])
    assert command[2:] == ["--type", "sequences", "-o", "aggregated_spans.csv"]
    assert cli(*command).code == 0


def test_a_refused_table_has_no_command(cli, table):
    rows = [(f"t{t}", f"w{w}", label) for t in range(5) for w in range(3) for label in "AB"]
    result = cli("inspect", table("many.csv", ["task", "worker", "label"], rows))
    assert "15 of 15 (task, worker) pairs have different labels" in result.out
    assert "command" not in result.out


@pytest.mark.parametrize(("lowest", "scale"), [(1, "1..5"), (0, "0..4"), (3, None)])
def test_grades_are_suspected(cli, table, lowest, scale):
    rows = [(f"t{t}", f"w{w}", lowest + t % 5) for t in range(10) for w in range(2)]
    path = table("grades.csv", ["task", "worker", "label"], rows)
    result = cli("inspect", path)
    assert ("may be grades" in result.out) == (scale is not None)
    if scale is not None:
        assert f"give --scale {scale}" in result.out
        graded = cli("inspect", path, "--scale", scale).out
        assert "5 ordered classes" in graded
        assert "may be grades" not in graded
        assert f"grades.csv --scale {scale} -o labels.csv" in graded


def test_a_question_without_a_name(cli, tmp_path):
    for worker in ("ann", "bob"):
        (tmp_path / f"{worker}.jsonl").write_text(
            '{"id": 1, "text": "Ada met Bob", "label": [[0, 3, "PER"]]}\n'
        )
    result = cli("aggregate", *sorted(tmp_path.glob("*.jsonl")), "--format", "doccano")
    assert result.code == 0
    assert "the question has the form spans" in result.err
