"""Where a command reads and writes: empty names, links, devices, closed streams, JSON files."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from wisecrowd.cli.app import PLACES, build_command
from wisecrowd.storage.manifest import manifest_path, read_manifest

COMMAND = f"{sys.executable} -m wisecrowd"


def shell(line: str, folder) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        line.replace("wisecrowd ", f"{COMMAND} ", 1), shell=True, cwd=folder, capture_output=True,
        text=True, check=False,
    )  # fmt: skip


# ------------------------------------------------------------------------------------ empty names


def file_parameters():
    for name, command in build_command().commands.items():
        for parameter in command.params:
            if parameter.metavar in PLACES:
                yield pytest.param(name, parameter, id=f"{name} {parameter.name}")


@pytest.mark.parametrize("empty", ["", " "])
@pytest.mark.parametrize(("command", "parameter"), list(file_parameters()))
def test_an_empty_name_is_refused(cli, answers, written, command, parameter, empty):
    named = parameter.opts[-1].startswith("-")
    given = [parameter.opts[-1], empty] if named else []
    for other in build_command().commands[command].params:
        if other.opts[-1].startswith("-"):
            if other.required and other.name != parameter.name:
                given += [other.opts[-1], "x"]
        else:
            given.append(empty if other.name == parameter.name else str(answers))
    code, out, err = cli(command, *given)
    assert (code, out) == (2, "")
    called = parameter.opts[-1] if named else parameter.metavar
    assert err == f"wisecrowd: {called} is empty; give the name of a file or a folder.\n"
    assert written(answers) == set()


# ------------------------------------------------------------------------------ JSON into a file


@pytest.mark.parametrize(
    ("command", "key"),
    [
        (("aggregate", "answers.csv"), "labels"),
        (("compare", "answers.csv", "--methods", "majority-vote"), "methods"),
        (("evaluate", "truth.csv", "--truth", "truth.csv"), "accuracy"),
        (("report", "answers.csv"), "verdict"),
        (("audit", "answers.csv"), "findings"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_json_goes_to_a_json_file(
    cli, answers, truth, tmp_path, monkeypatch, written, command, key
):
    monkeypatch.chdir(tmp_path)
    printed = cli(*command, "--json")
    assert printed.code == 0, printed.err
    code, out, err = cli(*command, "--json", "-o", "x.json")
    assert (code, out) == (0, "")
    assert "wrote x.json" in err
    document = json.loads((tmp_path / "x.json").read_text())
    assert key in document
    assert document.keys() == json.loads(printed.out).keys()
    assert read_manifest(tmp_path / "x.json").output_sha256
    assert written(answers, truth) == {"x.json", "x.json.manifest.json"}


def test_a_table_and_json_are_both_given(cli, answers, tmp_path):
    target = tmp_path / "labels.csv"
    code, out, _ = cli("aggregate", answers, "--json", "-o", target)
    assert code == 0
    assert json.loads(out)["labels"] == str(target)
    assert target.read_text().startswith("task,label")


def test_a_json_file_needs_the_option(cli, answers, tmp_path, written):
    code, _, err = cli("aggregate", answers, "-o", tmp_path / "x.json")
    assert code == 2
    assert "--json" in err
    assert written(answers) == set()


# ----------------------------------------------------------------------------------------- links


def test_a_link_without_a_directory_is_said_before_any_work(cli, answers, tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to("nowhere/x.csv")
    code, _, err = cli("aggregate", answers, "-o", link)
    assert code == 3
    assert err.count("\n") == 1
    assert f"Cannot write {link}: it is a link to nowhere/x.csv, whose directory does not" in err
    code, _, err = cli("aggregate", link)
    assert code == 3
    assert f"{link} is a link to nowhere/x.csv, which does not exist" in err


def test_a_link_to_itself_is_neither_read_nor_written(cli, answers, tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to("link.csv")
    for arguments in (
        [link], [answers, "-o", link], [answers, "--save", link],
        [answers, "--soft-labels", tmp_path / "link.csv" / "a.jsonl"], [link / "a.csv"],
    ):  # fmt: skip
        code, out, err = cli("aggregate", *arguments)
        assert (code, out) == (3, "")
        assert err.count("\n") == 1
        assert "leads back to itself" in err
    assert link.is_symlink()


def test_a_plain_file_named_gz_is_read_as_it_is(cli, answers, tmp_path):
    plain = tmp_path / "plain.csv.gz"
    plain.write_bytes(answers.read_bytes())
    assert cli("aggregate", plain).out == cli("aggregate", answers).out


# --------------------------------------------------------------------------- devices and streams

RESULT = "task,label,confidence,tie,n_labels"
posix = pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no /dev/fd")


@posix
@pytest.mark.parametrize("output", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_by_its_path(answers, tmp_path, output, written):
    done = shell(f"wisecrowd aggregate answers.csv -q -o {output}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(RESULT)
    assert written(answers) == set()


@posix
def test_another_descriptor_keeps_what_is_there(answers, tmp_path, written):
    (tmp_path / "log.txt").write_text("old\n")
    line = "wisecrowd aggregate answers.csv -q -o"
    done = shell(f"{line} /dev/stderr 2>> log.txt", tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    done = shell(f"{line} /dev/fd/5 5>> log.txt", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = (tmp_path / "log.txt").read_text()
    assert text.startswith(f"old\n{RESULT}")
    assert text.count(RESULT) == 2
    assert written(answers) == {"log.txt"}


@posix
def test_a_page_has_no_tables_beside_a_stream(answers, tmp_path, written):
    done = shell("wisecrowd report answers.csv -q -o /dev/fd/5 5>page.txt", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "page.txt").read_text().startswith("<!")
    assert written(answers) == {"page.txt"}


@posix
def test_a_descriptor_that_is_not_open(cli, answers, written):
    code, _, err = cli("aggregate", answers, "-q", "-o", "/dev/fd/977")
    assert code == 3
    assert "Cannot write /dev/fd/977: nothing is open there" in err
    assert written(answers) == set()


@posix
def test_a_folder_is_not_a_stream(cli, answers, written):
    for place in ("-", "/dev/stdout", "/dev/null"):
        for arguments in (["aggregate", answers, "--save", place], ["audit", answers, "-o", place],
                          ["simulate", place]):  # fmt: skip
            code, _, err = cli(*arguments)
            assert code == 2
            assert f"{place} cannot hold a folder" in err
    assert written(answers) == set()


@posix
def test_streams_that_are_closed_and_not_needed(cli, answers, tmp_path):
    done = shell("wisecrowd aggregate answers.csv <&- 2>&-", tmp_path)
    assert done.returncode == 0
    assert done.stdout == cli("aggregate", answers).out
    done = shell("wisecrowd aggregate answers.csv -o out.csv <&- >&- 2>&-", tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "out.csv").read_text().startswith(RESULT)
    assert manifest_path(tmp_path / "out.csv").exists()


@posix
@pytest.mark.parametrize(
    "line",
    ["aggregate answers.csv -q", "methods", "--help", "aggregate answers.csv -q -o /dev/stdout"],
)
def test_a_closed_standard_output_is_an_error(answers, tmp_path, line):
    done = shell(f"wisecrowd {line} >&-", tmp_path)
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("\n") == 1
    assert "tandard output" in done.stderr


@posix
def test_a_closed_standard_input_is_an_error(answers, tmp_path):
    done = shell("wisecrowd aggregate - <&-", tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "wisecrowd: Standard input is closed; pipe the data in, or name a file.\n"
    )


@posix
def test_annotations_from_a_descriptor(cli, answers, tmp_path):
    expected = cli("aggregate", answers).out
    for line in ("/dev/stdin < answers.csv", "/dev/fd/0 < answers.csv", "/dev/fd/7 7< answers.csv"):
        done = shell(f"wisecrowd aggregate -q {line}", tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == expected
