"""The README tells the truth: its commands and its Python run, and print what it shows."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import wisecrowd
from wisecrowd.core.registry import method_names

README = Path(__file__).parents[1] / "README.md"


def blocks(language: str) -> list[str]:
    text = README.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def without_times(text: str) -> str:
    """Mask the seconds of a comparison, which differ from run to run."""
    return re.sub(r"\d\.\d{4}$", "(time)", text, flags=re.M) if "seconds" in text else text


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """Run the commands in a new folder; return it, and what was shown and printed for each."""
    folder = tmp_path_factory.mktemp("readme")
    script = folder / "wisecrowd"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m wisecrowd "$@"\n')
    script.chmod(0o755)
    source = Path(wisecrowd.__file__).parents[1]
    environment = {
        **os.environ,
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{source}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    found = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            done = subprocess.run(
                command, shell=True, cwd=folder, env=environment, text=True, check=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            found.append((command, shown, done.stdout))
    return folder, found


@pytest.mark.skipif(os.name == "nt", reason="the README speaks to a POSIX shell")
def test_commands_print_what_is_shown(session):
    _, found = session
    assert len(found) >= 5
    for command, shown, printed in found:
        assert without_times(printed) == without_times(shown), command


@pytest.mark.skipif(os.name == "nt", reason="needs the files of the commands")
def test_python_prints_what_is_shown(session, monkeypatch):
    folder, _ = session
    monkeypatch.chdir(folder)
    source = "\n".join(blocks("python"))
    test = doctest.DocTestParser().get_doctest(source, {}, "README.md", str(README), 0)
    assert len(test.examples) >= 10
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    out: list[str] = []
    runner.run(test, out=out.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(out)


def test_every_method_it_names_is_there():
    text = README.read_text(encoding="utf-8")
    section = text.partition("## Methods")[2].partition("\n## ")[0]
    listed = re.findall(r"`([a-z-]+)`", "\n".join(re.findall(r"^[- ] .*", section, re.M)))
    assert len(listed) > 5
    assert set(listed) <= set(method_names())


def test_every_file_it_links_to_is_there():
    links = re.findall(r"\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    assert links
    for link in links:
        assert (README.parent / link).exists(), link
