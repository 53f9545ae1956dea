from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from wisecrowd.cli.options.group import command


@dataclass(frozen=True, kw_only=True)
class Size:
    """A group of two options."""

    width: Annotated[int, typer.Option("--width", help="How wide.")] = 3
    tall: Annotated[bool, typer.Option("--tall")] = False


SMALL = Size(width=1)


@command
def draw(name: str, *, colour: str = "red", size: Size) -> None:
    """Draw something."""
    typer.echo(f"{name} {colour} {size}")


@command
def sketch(name: str, size: Size = SMALL) -> None:
    """Sketch something."""
    typer.echo(f"{name} {size}")


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A group with a group inside, and an option that must be given."""

    title: Annotated[str, typer.Option("--title")]
    size: Size
    frame: Annotated[bool, typer.Option("--frame")] = False


@command
def paint(name: str, picture: Picture) -> None:
    """Paint something."""
    typer.echo(f"{name} {picture}")


@pytest.fixture
def run():
    app = typer.Typer(rich_markup_mode=None)
    app.command()(draw)
    app.command()(sketch)
    app.command()(paint)
    return lambda *words: CliRunner().invoke(app, list(words))


def test_a_group_becomes_options_and_arrives_as_one(run):
    assert run("draw", "cat").stdout == f"cat red {Size()}\n"
    given = run("draw", "cat", "--tall", "--width", "7", "--colour", "blue")
    assert given.stdout == f"cat blue {Size(width=7, tall=True)}\n"


def test_the_defaults_of_a_command_are_those_of_its_instance(run):
    assert run("sketch", "cat").stdout == f"cat {SMALL}\n"


def test_groups_may_be_nested(run):
    given = run("paint", "cat", "--title", "A", "--frame", "--width", "5")
    assert given.stdout == f"cat {Picture(title='A', size=Size(width=5), frame=True)}\n"
    shown = run("paint", "--help").stdout
    assert shown.index("--title") < shown.index("--width") < shown.index("--frame")


def test_an_option_without_a_default_must_be_given(run):
    assert run("paint", "cat").exit_code == 2


def test_help_has_the_text_of_the_command_and_of_each_option(run):
    shown = run("draw", "--help").stdout
    assert "Draw something." in shown
    assert "How wide." in shown
    assert "[default: 3]" in shown


def test_a_wrong_value_is_a_usage_error(run):
    assert run("draw", "cat", "--width", "wide").exit_code == 2
