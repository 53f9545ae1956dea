"""``wisecrowd label-studio`` against a small server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.support.fake_label_studio import TOKEN, FakeLabelStudio, serving

import wisecrowd
from wisecrowd.acquire import label_studio_api as api
from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.label_studio_mirror import ACTIONS, leave_hint, webhook_secret
from wisecrowd.cli.run.label_studio import HINT_SECONDS, _interruptible, _wait


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(api, "FIRST_WAIT", 0.0)
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", TOKEN)
    monkeypatch.delenv("LABEL_STUDIO_URL", raising=False)
    return FakeLabelStudio(n_tasks=4)


@pytest.fixture
def where(fake):
    with serving(fake) as url:
        yield ("--url", url, "--project", 7)


def test_pull_writes_what_counts(cli, fake, where, tmp_path, rows):
    for task, user, label in [(101, 5, "good"), (101, 5, "bad"), (102, 6, None), (103, 6, "=1+1")]:
        fake.annotate(task, user, label)
    place = tmp_path / "answers.csv"
    done = cli("label-studio", "pull", *where, "-o", place)
    assert done.code == 0, done.err
    assert "2 answers about 4 tasks of project 7" in done.err
    assert [list(row.values())[:3] for row in rows(place.read_text())] == [
        ["101", "5", "bad"], ["103", "6", "'=1+1"],
    ]  # fmt: skip
    document = json.loads(cli("label-studio", "pull", *where, "--json").out)
    assert [answer["label"] for answer in document["answers"]] == ["bad", "=1+1"]
    read = wisecrowd.read(place)
    assert (read.n_annotations, "timestamp" in read.columns) == (2, True)


def test_pull_of_nothing(cli, where):
    assert cli("label-studio", "pull", *where, "-q") == (0, "task,worker,label,timestamp\n", "")


def test_pull_into_a_campaign(cli, fake, where, tmp_path):
    folder = tmp_path / "campaign"
    fake.annotate(101, 5, "good")
    for new in (1, 0):
        done = cli("label-studio", "pull", *where, "--campaign", folder, "-o", tmp_path / "a.csv")
        assert done.code == 0
        assert f"{new} new answers" in done.err
    with Campaign.open(folder / "campaign.db") as campaign:
        assert campaign.labels.n_annotations == 1


def test_push_starts_a_campaign_and_remembers_its_project(cli, fake, where, tmp_path):
    folder = tmp_path / "campaign"
    done = cli("label-studio", "push", folder, *where, "-n", 2, "--max-labels", 1, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["version"] == fake.project["model_version"]
    assert (found["open"], len(found["order"])) == (2, 2)
    assert "changed the project's maximum_annotations, which was 3" in done.err
    for task in fake.tasks:
        fake.annotate(task, 5, "good")
    done = cli("label-studio", "push", folder, *where[:2])
    assert done.code == 4  # as next
    assert "stop: every task has its maximum of labels" in done.err
    other = cli("label-studio", "push", folder, *where[:2], "--project", 8)
    assert (other.code, other.err.count("\n")) == (3, 1)


def test_watch_until_the_budget_is_spent(cli, fake, where, tmp_path, monkeypatch):
    monkeypatch.setenv("LOOP_SECRET", "a long enough secret")
    for task in (101, 102):
        fake.annotate(task, 5, "good")
    hook = "http://127.0.0.1:9/webhooks/label-studio"
    done = cli("label-studio", "watch", tmp_path / "c", *where, "--every", 0.1, "--budget", 2,
               "--json", "--webhook", hook, "--secret", "env:LOOP_SECRET")  # fmt: skip
    assert done.code == 0, done.err
    looks = [json.loads(line) for line in done.out.splitlines()]
    assert [(one["answers"], one["stop"]) for one in looks] == [(2, "budget")]
    assert [(one["url"], tuple(one["actions"])) for one in fake.webhooks] == [(hook, ACTIONS)]
    sent = fake.webhooks[0]["headers"]["X-Wisecrowd-Secret"]
    assert sent == webhook_secret("a long enough secret")
    assert sent not in done.err
    assert fake.webhooks[0]["send_payload"] is False  # it is a hint only


def test_a_hint_ends_the_wait_for_the_next_look():
    stop, started = threading.Event(), time.monotonic()
    _wait(stop, 60.0, lambda: True)
    assert HINT_SECONDS <= time.monotonic() - started < 30
    stop.set()
    _wait(stop, 60.0, lambda: False)  # returns at once


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_watch_looks_when_a_webhook_came(fake, where, tmp_path):
    folder = tmp_path / "c"
    command = [sys.executable, "-m", "wisecrowd", "label-studio", "watch", folder,
               *where, "--every", "600", "--json"]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(Path(wisecrowd.__file__).parents[1])}
    watch = subprocess.Popen(
        [str(part) for part in command], env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert json.loads(watch.stdout.readline())["answers"] == 0
        fake.annotate(101, 5, "good")
        with Campaign.open(folder / "campaign.db") as campaign:
            leave_hint(campaign)
        assert json.loads(watch.stdout.readline())["answers"] == 1
    finally:
        watch.send_signal(signal.SIGINT)
        watch.communicate(timeout=30)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_watch_waits_for_the_server_and_stops_gracefully(fake, where, tmp_path):
    command = [sys.executable, "-m", "wisecrowd", "label-studio", "watch", tmp_path / "c",
               *where, "--every", "0.1", "--json"]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(Path(wisecrowd.__file__).parents[1])}
    watch = subprocess.Popen(
        [str(part) for part in command], env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    first = json.loads(watch.stdout.readline())
    assert first["answers"] == 0
    fake.failures[:] = [500]  # one look fails
    fake.annotate(101, 5, "good")
    while json.loads(watch.stdout.readline())["answers"] == 0:
        pass
    watch.send_signal(signal.SIGINT)
    _, notes = watch.communicate(timeout=30)
    assert watch.returncode == 0
    assert "Trying again" in notes
    assert notes.endswith("stopped; nothing is lost\n")


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_ends_a_look_and_the_second_one_interrupts(number):
    before = signal.signal(number, signal.default_int_handler)
    try:
        with _interruptible() as stop:
            os.kill(os.getpid(), number)
            assert stop.wait(5)
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


def test_a_second_watch_is_refused(cli, where, tmp_path):
    from wisecrowd.acquire.loop_folder import only_loop

    folder = tmp_path / "c"
    assert cli("label-studio", "push", folder, *where).code == 0
    with only_loop(folder / "label-studio", lambda note: None):
        done = cli("label-studio", "watch", folder, *where)
    assert done.code == 3
    assert "Another loop works on" in done.err


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--url", "http://127.0.0.1:1"], 2, "Give --project N"),
        (["--project", "7"], 2, "Give --url URL"),
        (["--url", "nonsense", "--project", "7"], 2, "is not the address of a server"),
        (["--url", "http://127.0.0.1:1", "--project", "7"], 3, "No Label Studio answers"),
        (["--url", "U", "--project", "8"], 3, "correct the number of the project"),
        (["--url", "U", "--project", "7", "--label", "moos"], 3, "did you mean 'mood'"),
        (["--url", "U", "--project", "7", "--task", "nothing", "-n", "1"], 3, "name a key"),
        (["--url", "U", "--project", "7", "--token", "env:WRONG"], 3, "refuses the token"),
        (["--url", "U", "--project", "7", "--token", "env:UNSET"], 2, "--token names an environ"),
        (["--url", "U", "--project", "7", "--token", TOKEN], 2, "--token names an environ"),
        (["--url", "U", "--project", "7", "--policy", "uncertian"], 2, "did you mean 'uncertain'"),
        (["--url", "U", "--project", "7", "--budget", "-1"], 2, "budget"),
    ],
)
def test_bad_input_is_one_sentence(cli, where, tmp_path, monkeypatch, options, code, words):
    monkeypatch.setenv("WRONG", "c" * 40)
    given = [where[1] if part == "U" else part for part in options]
    done = cli("label-studio", "push", tmp_path / "campaign", *given)
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert len(done.err.splitlines()) == 1
    assert TOKEN not in done.err
    assert not (tmp_path / "campaign").exists()


@pytest.mark.parametrize("command", ["push", "watch"])
def test_an_empty_folder_name(cli, command):
    assert cli("label-studio", command, "").err == (
        "wisecrowd: FOLDER is empty; give the name of a file or a folder.\n"
    )


def test_help(cli):
    assert cli("label-studio").code == 2
    shown = cli("label-studio", "--help").out
    assert all(name in shown for name in ("pull", "push", "watch"))
