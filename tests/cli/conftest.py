from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import pytest

from wisecrowd.cli.main import run

# Ann and bob are careful, cem is not; task t4 is a tie between cat and dog.
ANSWERS = [
    ("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t1", "cem", "dog"),
    ("t2", "ann", "dog"), ("t2", "bob", "dog"), ("t2", "cem", "dog"),
    ("t3", "ann", "cat"), ("t3", "bob", "cat"), ("t3", "cem", "cat"),
    ("t4", "ann", "dog"), ("t4", "bob", "cat"),
    ("t5", "ann", "dog"), ("t5", "bob", "dog"), ("t5", "cem", "cat"),
]  # fmt: skip
TRUTH = {"t1": "cat", "t2": "dog", "t3": "cat", "t4": "dog", "t5": "dog"}


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def cli(capsys):
    """Run the command line in this process and return exit code, standard output and error."""

    def call(*arguments: object) -> Outcome:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def table(tmp_path):
    """Write a csv file into the test's folder."""

    def write(name: str, header: list[str], rows) -> Path:
        path = tmp_path / name
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)
        return path

    return write


@pytest.fixture
def rows():
    """Read csv text as one mapping per row."""

    def read(text: str | Path) -> list[dict[str, str]]:
        text = text.read_text(encoding="utf-8") if isinstance(text, Path) else text
        return list(csv.DictReader(text.splitlines()))

    return read


@pytest.fixture
def answers(table) -> Path:
    return table("answers.csv", ["task", "worker", "label"], ANSWERS)


@pytest.fixture
def truth(table) -> Path:
    return table("truth.csv", ["task", "label"], TRUTH.items())


@pytest.fixture
def written(tmp_path):
    """Name everything in the test's folder besides the given inputs."""

    def names(*inputs: Path) -> set[str]:
        return {entry.name for entry in tmp_path.iterdir()} - {path.name for path in inputs}

    return names
