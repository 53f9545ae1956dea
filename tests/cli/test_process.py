"""What only a process of its own can show: signals, pipes, a full disk, and what is imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

import wisecrowd

COMMAND = [sys.executable, "-m", "wisecrowd"]
# Buffered, as it is for users: what is left in a buffer must not fail once more at exit.
BUFFERED = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
HEAVY = {"sklearn", "numba", "pandas", "polars", "torch", "scipy", "narwhals"}
# Runs the command as the script does, then tells which of the heavy modules it has loaded.
PROBE = """
import sys
from wisecrowd.cli.main import run
code = run()
print(code, sorted(%r & {name for name, module in sys.modules.items() if module}), file=sys.stderr)
"""


@pytest.fixture
def many_answers(table):
    """1000 rows, with column names that make the command say so before it fits."""
    rows = [(e // 5, (e * 7) % 31, (e // 5 + (e % 5 == 0)) % 3) for e in range(1000)]
    return table("many.csv", ["item", "worker", "label"], rows)


def probe(*arguments: object, heavy: set[str] = HEAVY) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROBE % heavy, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr.splitlines()[-1]


def test_help_imports_nothing_heavy(tmp_path):
    code = "import sys; from wisecrowd.cli.main import run; run(); print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("\nFalse\n")
    assert probe("--help") == "0 []"


def test_small_aggregation_imports_nothing_heavy(many_answers, tmp_path):
    target = tmp_path / "labels.csv"
    given = ["aggregate", many_answers, "-o", target, "--workers", tmp_path / "w.csv"]
    assert probe(*given, heavy=HEAVY - {"scipy"}) == "0 []"  # the default method needs scipy
    assert probe(*given, "-m", "dawid-skene") == "0 []"
    assert len(target.read_text().splitlines()) == 201


def test_commands_load_without_torch():
    code = """
import importlib, pkgutil, sys
sys.modules["torch"] = None
import wisecrowd.cli.run as package
for found in pkgutil.iter_modules(package.__path__, "wisecrowd.cli.run."):
    importlib.import_module(found.name)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_code_of_the_user_finds_pandas():
    pytest.importorskip("pandas")
    code = """
import sys
from wisecrowd.cli.accidental_imports import leave_out_pandas, take_up_pandas
leave_out_pandas()
from wisecrowd.core.arrow import as_arrow
as_arrow([1.5, 2.5], "value")
print("pandas" in sys.modules)
take_up_pandas()
import pandas, pyarrow
print(pyarrow.array(pandas.array([1, None], "Int64")).null_count)
print(pyarrow.Table.from_pandas(pandas.DataFrame({"a": [1]})).num_rows)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "1", "1"]


def test_module_and_script_are_the_same():
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"wisecrowd {wisecrowd.__version__}\n"


@pytest.mark.skipif(os.name == "nt", reason="signals are different there")
def test_ctrl_c_is_quiet_and_leaves_nothing(many_answers, tmp_path):
    command = [
        *COMMAND, "aggregate", str(many_answers), "-o", str(tmp_path / "labels.csv"),
        "-m", "dawid-skene", "-p", "n_init=10000", "-p", "tol=0",
    ]  # fmt: skip
    # A shell that runs the tests in the background lets its children ignore Ctrl-C.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    signal.signal(signal.SIGINT, former)
    with process:
        assert process.stderr is not None
        # The note on the columns comes after reading and before the fit, which takes minutes.
        assert b"columns recognised" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == (b"", b"wisecrowd: Interrupted.\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["many.csv"]


@pytest.mark.skipif(os.name == "nt", reason="pipes are different there")
@pytest.mark.parametrize("command", ["aggregate", "methods", "--help"])
def test_closed_pipe_is_quiet(many_answers, command):
    arguments = [command, str(many_answers)] if command == "aggregate" else [command]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, *arguments, *(["-q"] if command == "aggregate" else [])],
        stdout=writer,
        stderr=subprocess.PIPE,
        env=BUFFERED,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("command", ["aggregate", "methods", "--version"])
def test_full_disk_behind_standard_output(many_answers, command):
    arguments = [command, str(many_answers), "-q"] if command == "aggregate" else [command]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=BUFFERED,
        )
    assert done.returncode == 3
    assert done.stderr.startswith("wisecrowd: ")
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr or "disk is full" in done.stderr


def test_standard_input(many_answers):
    done = subprocess.run(
        [*COMMAND, "aggregate", "-", "-q"],
        input=many_answers.read_bytes(),
        capture_output=True,
        check=True,
    )
    assert done.stdout.count(b"\n") == 201
    assert done.stderr == b""


def test_unknown_characters_do_not_stop_a_narrow_terminal(table):
    path = table("a.csv", ["task", "worker", "label"], [("漢", "a", "x"), ("字", "a", "y")])
    done = subprocess.run(
        [*COMMAND, "aggregate", str(path), "--task", "宿"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 3
    assert b"\\u5bbf" in done.stderr
