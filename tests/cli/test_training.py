"""What train shows and keeps: progress, the log of epochs, checkpoints, and the summary."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.cli.run import progress
from wisecrowd.cli.run.training import TrainingLog, best_and_worst, next_command
from wisecrowd.cli.terminal import Notes
from wisecrowd.inference.monitor import Progress, followed_by_refit, report, reporting, stage

FAST = ("-m", "ccem", "-p", "module=linear", "-p", "lr=0.1")


@pytest.fixture
def problem(tmp_path, monkeypatch):
    """Forty tasks in two clouds, labelled by eight workers of falling quality."""
    rng = np.random.default_rng(0)
    z = np.arange(40) % 2
    np.save(tmp_path / "x.npy", rng.normal(size=(40, 3)) + 3 * np.eye(3)[z])
    rows = [
        f"{i},w{j},{'dog' if z[i] ^ (rng.random() < 0.06 * j) else 'cat'}"
        for i in range(40)
        for j in range(8)
    ]
    (tmp_path / "answers.csv").write_text("task,worker,label\n" + "\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stopped_after(monkeypatch):
    """Press Ctrl-C when an epoch of training ends."""

    def press(epoch):
        plain = TrainingLog.update

        def update(self, progress):
            plain(self, progress)
            if progress.iteration == epoch:
                raise KeyboardInterrupt

        monkeypatch.setattr(TrainingLog, "update", update)
        return lambda: monkeypatch.setattr(TrainingLog, "update", plain)

    return press


def train(cli, *options):
    pytest.importorskip("torch")
    return cli("train", "x.npy", "answers.csv", "-o", "model", *FAST, *options)


def logged(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


# ---------------------------------------------------------------------------------------- progress


def test_without_a_terminal_epochs_are_lines_once_it_takes_long(cli, problem, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 1e9)
    assert "epoch 3 of 4" not in train(cli, "--epochs", "4", "--valid-from-crowd").err
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "PERIOD", 0.0)
    lines = train(cli, "--epochs", "4", "--valid-from-crowd").err.splitlines()
    shown = [line for line in lines if line.startswith("training ccem: epoch")]
    assert len(shown) == 4
    assert shown[2].startswith("training ccem: epoch 3 of 4, loss 0.")
    assert "held-out score -" in shown[2]
    assert shown[2].endswith(" s left")
    assert any(line.startswith("training ccem: refit: epoch 1 of ") for line in lines)
    assert train(cli, "--epochs", "4", "-q").err == ""


def test_lines_are_seconds_apart_and_only_about_epochs(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.working("training", Notes()):
        for epoch in range(1, 11):
            now[0] += 1.0
            report(Progress(epoch, 10, 0.5, unit="epoch"))
            report(Progress(epoch, 100, -1.0))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "training: epoch 2 of 10, loss 0.5, 8 s left",
        "training: epoch 7 of 10, loss 0.5, 3 s left",
    ]


def test_time_left_counts_from_the_first_epoch_of_this_run_and_includes_the_refit():
    pace = progress.Pace("training")
    pace.update(Progress(41, 60, 0.5, unit="epoch"))  # resumed
    pace._start -= 10.0
    now = Progress(51, 60, 0.5, unit="epoch", score=-0.25, best=30, later=30)
    assert pace._facts(now) == "epoch 51 of 60, loss 0.5, held-out score -0.25, 40 s left"


def test_fits_say_their_stage_and_what_follows():
    seen = []
    with reporting(seen.append), stage("auto"), stage("refit"):
        report(Progress(1, 2))
    with reporting(seen.append), followed_by_refit():
        report(Progress(5, 9, 0.5, best=3))
    assert (seen[0].stage, seen[1].later) == ("auto: refit", 3)


# --------------------------------------------------------------------------------------------- log


def test_every_epoch_is_logged(cli, problem):
    assert train(cli, "--epochs", "3", "--valid-from-crowd").code == 0
    lines = logged(problem / "model.log.jsonl")
    first = [line for line in lines if "stage" not in line]
    assert [line["epoch"] for line in first] == [1, 2, 3]
    assert {"epoch", "epochs", "loss", "score", "time"} == set(first[0])
    assert [line["stage"] for line in lines[3:]] == ["refit"] * (len(lines) - 3)
    assert len(lines) > 3
    assert train(cli, "--epochs", "2", "-q").code == 0  # a new training has a new log
    assert [line["epoch"] for line in logged(problem / "model.log.jsonl")] == [1, 2]


def test_a_method_without_epochs_leaves_no_log_of_an_earlier_one(cli, problem):
    (problem / "model.log.jsonl").write_text('{"epoch": 1}\n')
    assert cli("train", "x.npy", "answers.csv", "-o", "model", "-m", "raykar").code == 0
    assert not (problem / "model.log.jsonl").exists()


def test_a_repeated_epoch_replaces_its_line_and_a_cut_line_is_dropped(tmp_path):
    path = tmp_path / "model.log.jsonl"
    old = [{"stage": "clip", "epoch": 1}, {"epoch": 1}, {"epoch": 2}, {"epoch": 3}]
    path.write_text("".join(json.dumps(line) + "\n" for line in old) + '{"epo')
    log = TrainingLog(path, resumed=True)
    for epoch in (2, 3):
        log.update(Progress(epoch, 3, 0.5, unit="epoch"))
    log.update(Progress(1, 1, float("nan"), "refit", unit="epoch"))
    found = [(line.get("stage"), line["epoch"]) for line in logged(path)]
    assert found == [("clip", 1), (None, 1), (None, 2), (None, 3), ("refit", 1)]
    assert "loss" not in logged(path)[-1]


def test_training_goes_on_if_the_log_cannot_be_written(cli, problem):
    (problem / "model.log.jsonl").mkdir()
    found = train(cli, "--epochs", "2")
    assert found.code == 0
    assert "The log model.log.jsonl is incomplete: Cannot write" in found.err
    assert (problem / "model" / "network.safetensors").exists()


# ------------------------------------------------------------------------------------- checkpoints


def test_unfinished_training_is_not_overwritten_silently(cli, problem, stopped_after):
    released = stopped_after(3)
    first = train(cli, "--epochs", "5")
    assert first.code == 130
    assert "next: wisecrowd train" in first.err
    assert "--resume" in first.err.splitlines()[-1]
    assert [line["epoch"] for line in logged(problem / "model.log.jsonl")] == [1, 2, 3]
    released()
    before = (problem / "model.checkpoint").read_bytes()
    for options, reason in (
        ((*FAST, "--epochs", "5"), "of the same data and parameters, which reached epoch 1 of 5"),
        ((*FAST, "--epochs", "6"), "with other parameters (epochs 5, now 6)"),
        (("-m", "agg-net"), "with another method (CCEM, now AggNet)"),
        ((*FAST, "--epochs", "5", "--gold", "gold.csv"), "with other data"),
        (("-m", "raykar"), "another method than raykar"),
    ):
        (problem / "gold.csv").write_text("task,label\n0,cat\n")
        found = cli("train", "x.npy", "answers.csv", "-o", "model", *options)
        assert found.code == 2, options
        assert reason in found.err
        assert "--restart" in found.err
    assert "continue it with --resume" in train(cli, "--epochs", "5").err
    assert (problem / "model.checkpoint").read_bytes() == before


def test_resumed_training_appends_to_the_log_and_equals_an_undisturbed_one(
    cli, problem, stopped_after
):
    released = stopped_after(3)
    train(cli, "--epochs", "5")
    released()
    found = train(cli, "--epochs", "5", "--resume")
    assert (found.code, "no checkpoint" in found.err) == (0, False)
    lines = logged(problem / "model.log.jsonl")
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4, 5]
    assert not list(problem.glob("*.checkpoint*"))
    resumed = (problem / "model" / "network.safetensors").read_bytes()
    assert train(cli, "--epochs", "5").code == 0
    assert (problem / "model" / "network.safetensors").read_bytes() == resumed
    assert [line["loss"] for line in logged(problem / "model.log.jsonl")] == [
        line["loss"] for line in lines
    ]


def test_restart_discards_what_was_begun(cli, problem, stopped_after):
    released = stopped_after(2)
    train(cli, "--epochs", "5")
    released()
    both = train(cli, "--epochs", "5", "--restart", "--resume")
    assert both.code == 2
    assert "exclude each other" in both.err
    assert train(cli, "--epochs", "4", "--restart").code == 0
    assert [line["epoch"] for line in logged(problem / "model.log.jsonl")] == [1, 2, 3, 4]
    assert not (problem / "model.checkpoint").exists()


def test_resuming_nothing_is_said_and_a_wrong_checkpoint_is_named(cli, problem, stopped_after):
    (problem / "model.checkpoint-of-mine").write_text("mine")
    found = train(cli, "--epochs", "2", "--resume")
    assert found.code == 0
    assert "no checkpoint model.checkpoint to resume from" in found.err
    assert (problem / "model.checkpoint-of-mine").exists()
    released = stopped_after(2)
    train(cli, "--epochs", "4")
    released()
    wrong = train(cli, "--epochs", "3", "--resume")
    assert wrong.code == 3
    assert "belongs to a fit with other parameters (epochs 4, now 3)" in wrong.err


# ----------------------------------------------------------------------------------------- summary


def test_the_summary_names_the_epoch_the_score_the_workers_and_the_next_command(cli, problem):
    found = train(cli, "--epochs", "4", "--valid-from-crowd", "--json")
    summary = json.loads(found.out)
    chosen = next(one for one in summary["history"] if one["epoch"] == summary["best_epoch"])
    assert summary["held_out_score"] == chosen["score"]
    assert summary["held_out_score"] == max(one["score"] for one in summary["history"])
    assert summary["selection"] == "crowd"
    assert (summary["log"], summary["findings"]) == ("model.log.jsonl", [])
    workers = summary["workers"]
    rates = [one["agreement_with_result"] for one in [*workers["best"], *workers["worst"]]]
    assert len(rates) == 6
    assert rates == sorted(rates, reverse=True)
    every = wc.load("model").worker_accuracy_
    assert (rates[0], rates[-1]) == (every.max(), every.min())
    assert f"(score {summary['held_out_score']:.4f})" in found.err
    assert "3 best and 3 worst of 8 workers by agreement with the result:" in found.err
    assert summary["next"] == "wisecrowd predict model NEW_FEATURES -o predictions.csv"
    assert found.err.splitlines()[-1] == f"next: {summary['next']}"


class Fitted:
    findings_ = ()

    def __init__(self, **columns):
        self.columns = columns

    def worker_columns(self):
        return {name: np.array(values) for name, values in self.columns.items()}


def test_workers_of_numbers_are_ordered_by_noise_and_unrated_ones_are_left_out():
    model = Fitted(worker=["a", "b", "c"], n_labels=[3, 2, 1], noise=[0.5, np.nan, 0.1])
    found = best_and_worst(model)
    assert [one["worker"] for one in found["best"]] == ["c", "a"]
    assert found["worst"] == []
    assert best_and_worst(Fitted(worker=["a"], n_labels=[1])) is None


def test_the_next_command_can_be_pasted():
    assert next_command(Fitted(), "my model", [], "own:embed") == (
        "wisecrowd predict 'my model' NEW_FEATURES --embed own:embed -o predictions.csv"
    )
