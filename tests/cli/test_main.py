from __future__ import annotations

import pytest

import wisecrowd
from wisecrowd.cli import main
from wisecrowd.core.exceptions import DataError, MissingDependencyError, ParameterError


def test_version(cli):
    assert cli("--version") == (0, f"wisecrowd {wisecrowd.__version__}\n", "")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_the_commands_and_exit_codes(cli, flag):
    code, out, err = cli(flag)
    assert (code, err) == (0, "")
    for command in (
        "aggregate", "compare", "evaluate", "methods", "simulate", "convert", "inspect", "audit",
        "train", "predict", "report", "judges", "agreement", "estimate", "plan", "check",
    ):  # fmt: skip
        assert f"\n  {command} " in out
    assert "Exit codes" in out


@pytest.mark.parametrize(
    "command",
    [
        "aggregate",
        "compare",
        "evaluate",
        "agreement",
        "methods",
        "simulate",
        "convert",
        "inspect",
        "judges",
        "versions",
        "estimate",
        "plan",
    ],
)
def test_every_command_has_help(cli, command):
    code, out, err = cli(command, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: wisecrowd {command}")


def test_nothing_given_shows_help_and_is_a_usage_error(cli):
    code, out, err = cli()
    assert (code, out) == (2, "")
    assert err.startswith("Usage: wisecrowd")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["agregate"], "No such command 'agregate'"),
        (["aggregate"], "Missing argument"),
        (["aggregate", "x.csv", "--sed", "1"], "No such option: --sed"),
        (["aggregate", "x.csv", "--seed", "one"], "--seed"),
        (["aggregate", "x.csv", "--seed", "-1"], "--seed"),
        (["aggregate", "x.csv", "--threads", "0"], "--threads"),
        (["evaluate", "x.csv"], "Missing option '--truth'"),
        (["estimate", "x.csv"], "Missing option '--known'"),
        (["estimate", "x.csv", "--known", "y.csv", "--gold", "y.csv"], "No such option: --gold"),
    ],
)
def test_usage_errors_are_one_line_with_code_2(cli, arguments, message):
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("wisecrowd: ")
    assert message in err
    assert err.endswith("--help.\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (ParameterError("No such thing."), 2, "No such thing."),
        (DataError("Row 7 is empty."), 3, "Row 7 is empty."),
        (MissingDependencyError("Install it."), 3, "Install it."),
        (OSError(5, "Input/output error", "x.csv"), 3, "x.csv: Input/output error."),
        (OSError("unnamed"), 3, "unnamed."),
        (MemoryError(), 3, "not enough memory"),
        (MemoryError("8 GB"), 3, "not enough memory for this (8 GB)"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 8"), 3, "not enough memory"),
        (KeyboardInterrupt(), 130, "Interrupted."),
    ],
)
def test_errors_become_one_sentence_and_a_code(capsys, monkeypatch, error, code, sentence):
    def fail(arguments):
        raise error

    monkeypatch.setattr(main, "_invoke", fail)
    assert main.run([]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("wisecrowd: ")
    assert sentence in captured.err
    assert captured.err.count("\n") == 1


def test_closed_pipe_is_quiet(capsys, monkeypatch):
    def fail(arguments):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(main, "_invoke", fail)
    monkeypatch.setattr(main, "forget_output", lambda: None)
    assert main.run([]) == 141
    assert capsys.readouterr() == ("", "")


def test_a_bug_is_not_hidden(monkeypatch):
    def fail(arguments):
        raise ZeroDivisionError

    monkeypatch.setattr(main, "_invoke", fail)
    with pytest.raises(ZeroDivisionError):
        main.run([])


def test_control_characters_in_errors_are_shown_not_sent(cli):
    code, _, err = cli("aggregate", "no\x1b[2Jfile.csv")
    assert code == 3
    assert "\x1b" not in err
    assert r"no\x1b[2Jfile.csv" in err
