"""Ids, labels and file names that would steer a terminal: no command lets them through."""

from __future__ import annotations

import json
import re
import sys

import pytest

# What a terminal obeys, and what turns or hides text; line ends are the command's own.
STEERING = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
EVIL = "x\x1b[2J\x1b]0;title\x07\x9b31m\u202egpj\u2066\u061c\xad\U000e0041"


@pytest.fixture
def crowd(table):
    rows = [
        (f"t{i}{EVIL}", f"w{j}{EVIL}", f"{'ab'[(i * j) % 2]}{EVIL}")
        for i in range(12)
        for j in range(4)
    ]
    return table(f"answers{EVIL}.csv".replace("/", ""), ["task", "worker", "label"], rows)


@pytest.fixture
def on_terminal(monkeypatch):
    """Pretend that standard output is a terminal; the bar, which moves its cursor, stays away."""
    monkeypatch.setattr("wisecrowd.cli.run.progress.DELAY", 3600.0)
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)


@pytest.mark.parametrize(
    "command",
    [
        ["aggregate", "--soft"],
        ["aggregate", "--json"],
        ["compare", "--methods", "majority-vote,one-coin"],
        ["inspect"],
        ["inspect", "--json"],
        ["audit", "--part", "spammers", "--part", "agreement"],
        ["audit", "--part", "spammers", "--json"],
        ["report", "-o", "-"],
    ],
    ids=" ".join,
)
def test_on_a_terminal(cli, crowd, on_terminal, command):
    if command[0] == "report":
        pytest.importorskip("jinja2")
    done = cli(command[0], crowd, *command[1:])
    assert done.code == 0, done.err
    assert not STEERING.search(done.out)
    assert not STEERING.search(done.err)


@pytest.mark.parametrize("command", ["aggregate", "audit"])
def test_json_is_the_same_data_everywhere(cli, crowd, command):
    done = cli(command, crowd, "--json", "-q")
    assert not STEERING.search(done.out)
    assert EVIL in json.dumps(json.loads(done.out), ensure_ascii=False) or any(
        EVIL in text for text in strings(json.loads(done.out))
    )


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in (*value, *value.values()):
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def test_a_pipe_gets_the_data(cli, crowd):
    assert EVIL in cli("aggregate", crowd, "-q").out


@pytest.mark.parametrize(
    "arguments",
    [
        ["aggregate", f"gone{EVIL}.csv"],
        ["aggregate", "{crowd}", "--task", EVIL],
        ["aggregate", "{crowd}", "-m", EVIL],
        ["aggregate", "{crowd}", "--classes", f"a{EVIL}"],
        ["aggregate", "{crowd}", "-o", f"gone{EVIL}/x.csv"],
        ["aggregate", "{crowd}", f"--{EVIL}"],
        ["aggregate", "{crowd}", "-p", f"{EVIL}=3"],
        [EVIL],
        ["predict", f"gone{EVIL}", "x.npy"],
        ["--limit", EVIL, "inspect", "{crowd}"],
    ],
)
def test_errors(cli, crowd, arguments):
    done = cli(*(str(crowd) if word == "{crowd}" else word for word in arguments))
    assert done.code in (2, 3)
    assert done.err
    assert not STEERING.search(done.out + done.err)


def test_progress(monkeypatch):
    from wisecrowd.cli.run.progress import ProgressBar

    shown = []

    class Recorder:
        def __init__(self, *columns, **options):
            pass

        def add_task(self, text, **fields):
            shown.append(text)

        def start(self):
            pass

        stop = start

    monkeypatch.setattr("rich.progress.Progress", Recorder)
    bar = ProgressBar(f"reading {EVIL}", delay=3600)
    bar._show()
    bar.stop()
    assert len(shown) == 1
    assert not STEERING.search(shown[0])
