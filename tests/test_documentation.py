"""The documentation tells the truth: its commands and its Python run, and print what it shows."""

from __future__ import annotations

import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.printed_numbers import NumberChecker, same_output

import wisecrowd
from wisecrowd.cli.app import GROUPS
from wisecrowd.cli.main import run
from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.kinds import KINDS
from wisecrowd.core.registry import PACKAGES, method_names

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
every_page = pytest.mark.parametrize(
    "page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES]
)


class Block(NamedTuple):
    """A fenced block: its language, its text, and the line on which the text begins."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        yield Block(found[1], found[2], text.count("\n", 0, found.start(2)))


def without_times(text: str) -> str:
    """Mask the seconds of a comparison, which differ from run to run."""
    return re.sub(r"\d+\.\d{4}$", "(time)", text, flags=re.M) if "seconds" in text else text


def is_ours(command: str) -> bool:
    """Tell whether a line is one command of ours: without a shell it takes a second less."""
    bare = re.sub(r"'[^']*'|\"[^\"$`]*\"", "", command)
    return command.startswith("wisecrowd ") and not re.search(r"[][|&;<>*?$`~{}()#\\\"']", bare)


def run_here(arguments: list[str]) -> tuple[int, str]:
    """Run the command line in this process: exit code, and all that it printed."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with warnings.catch_warnings(), redirect_stdout(output), redirect_stderr(output):
        code = run(arguments)
    return code, output.buffer.getvalue().decode()


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Return a function that runs a command in a new folder, where Python works too."""
    script = tmp_path / ".bin" / "wisecrowd"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m wisecrowd "$@"\n')
    script.chmod(0o755)
    source = Path(wisecrowd.__file__).parents[1]
    environment = {
        **os.environ,
        "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{source}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    monkeypatch.chdir(tmp_path)

    def call(command: str) -> str:
        if is_ours(command):
            code, printed = run_here(shlex.split(command)[1:])
        else:
            done = subprocess.run(
                command, shell=True, env=environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            code, printed = done.returncode, done.stdout
        assert code == 0, f"{command}\n{printed}"
        return printed

    return call


def check_console(block: Block, shell) -> None:
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        printed = shell(command)
        assert same_output(without_times(shown), without_times(printed)), f"{command}\n{printed}"


def check_python(block: Block, names: dict[str, object], page: Path) -> dict[str, object]:
    """Run a block after those before it, and return all names that are then known."""
    assert ">>> " in block.text, f"line {block.line} of {page}: write it as a session, with >>>"
    test = doctest.DocTestParser().get_doctest(block.text, names, page.name, str(page), block.line)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(NumberChecker(), optionflags=flags)
    out: list[str] = []
    runner.run(test, out=out.append, clear_globs=False)
    assert runner.summarize(verbose=False).failed == 0, "".join(out)
    return test.globs


@pytest.mark.skipif(os.name == "nt", reason="the pages speak to a POSIX shell")
@every_page
def test_blocks_print_what_is_shown(page, shell):
    if page.parent.name in ("guides", "recipes"):  # troubled crowds, about which fits warn
        warnings.simplefilter("ignore", WisecrowdWarning)
    names: dict[str, object] = {}
    for block in blocks(page):
        if block.language == "console":
            check_console(block, shell)
        elif block.language == "python":
            names = check_python(block, names, page)


@every_page
def test_fences_are_known(page):
    """Nothing escapes the tests by a misspelt language."""
    assert {block.language for block in blocks(page)} <= {"", "bash", "console", "python", "text"}


@every_page
def test_commands_have_their_options(page, capsys):
    """Commands that are only shown, for files that are the reader's, exist as they are written."""
    for block in blocks(page):
        if block.language in ("python", "text"):
            continue
        for line in re.findall(r"^(?:\$ )?wisecrowd (.*)$", block.text, re.M):
            command, *words = line.partition("#")[0].split()
            members = words[:1] if command in GROUPS else []
            assert run([command, *members, "--help"]) == 0
            shown = capsys.readouterr().out
            for option in filter(re.compile(r"--?[a-z][a-z-]*$").match, words):
                assert re.search(rf"{option}\b", shown), f"{command} {option}"


@every_page
def test_links_lead_somewhere(page):
    """Files that are there, or pages of methods, which are made when the site is built."""
    made = {f"methods/{name}.md" for kind in PACKAGES for name in method_names(kind, None)}
    made |= {"methods/index.md", "methods/shared-parameters.md", "methods/auto-learner.md"}
    made |= {"api/index.md"}
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        target = Path(os.path.normpath(page.parent / link))
        assert target.exists() or target in {ROOT / "docs" / path for path in made}, link


def test_the_readme_begins_with_the_two_commands():
    first = next(blocks(README))
    assert re.findall(r"^make \w+", first.text, re.M) == ["make demo", "make test"]


def test_every_method_that_the_guide_to_methods_groups_is_there():
    text = (ROOT / "docs" / "which-method.md").read_text(encoding="utf-8")
    for heading, kind in (("All methods for classes", "aggregation"), ("All learners", "learning")):
        section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        listed = re.findall(r"`([a-z-]+)`", "\n".join(re.findall(r"^[- ] .*", section, re.M)))
        assert len(listed) > 20
        assert set(listed) <= set(method_names(kind, None))


def accuracy_rows(page: Path) -> dict[str, str]:
    """Return the lines of the table of published data sets, by method."""
    text = page.read_text(encoding="utf-8").partition("| bluebird |")[2].partition("\n\n")[0]
    return {line.split()[1]: line for line in text.splitlines()[2:] if line.startswith("| ")}


def test_the_readme_shows_rows_of_the_full_table():
    full, shown = (accuracy_rows(page) for page in (ROOT / "docs" / "accuracy.md", README))
    assert next(iter(shown)) == "auto"
    assert len(shown) == 7
    assert shown.items() <= full.items()


def test_the_readme_is_short_and_names_every_kind():
    text = README.read_text(encoding="utf-8")
    assert text.count("\n") < 150
    assert set(KINDS) <= set(re.findall(r"`([a-z]+)`", text))


def test_the_glossary_is_in_alphabetical_order():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = [term.lower() for term in re.findall(r"^\*\*([^*]+)\*\*", text, re.M)]
    assert len(terms) > 40
    assert terms == sorted(terms)


RECIPES = sorted(set((ROOT / "docs" / "recipes").glob("*.md")) - {ROOT / "docs/recipes/index.md"})


def test_every_recipe_goes_from_a_file_to_an_answer():
    assert len(RECIPES) >= 10
    index = (ROOT / "docs" / "recipes" / "index.md").read_text(encoding="utf-8")
    for page in RECIPES:
        text = page.read_text(encoding="utf-8")
        for part in ("**You have**", "**You want**", "**Look at**", "**Next**", "$ wisecrowd "):
            assert part in text, (page.name, part)
        assert f"]({page.name})" in index


def test_pictures_of_recipes_are_small():
    pictures = list((ROOT / "docs" / "recipes").glob("*.svg"))
    assert pictures
    assert all(picture.stat().st_size < 60_000 for picture in pictures)
