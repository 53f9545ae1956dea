"""Assembly of the commands; their modules import heavy libraries only when they run."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from wisecrowd._version import __version__
from wisecrowd.cli.options.about import methods, spark_script, versions
from wisecrowd.cli.options.aggregate import aggregate
from wisecrowd.cli.options.agreement import agreement
from wisecrowd.cli.options.audit import audit
from wisecrowd.cli.options.campaigns import loop, next_queries, pull, push, replay, watch
from wisecrowd.cli.options.check import check
from wisecrowd.cli.options.estimate import estimate
from wisecrowd.cli.options.evaluate import compare, evaluate
from wisecrowd.cli.options.files import convert, inspect, pack
from wisecrowd.cli.options.judges import judges
from wisecrowd.cli.options.plan import plan
from wisecrowd.cli.options.report import report
from wisecrowd.cli.options.simulate import simulate
from wisecrowd.cli.options.train import predict, train

COMMANDS = (
    aggregate, compare, evaluate, methods, simulate, convert, inspect, audit, report, check,
    estimate, judges, agreement, plan, train, predict, next_queries, replay, loop, pack,
    spark_script, versions,
)  # fmt: skip
# Commands of two words, with the help of the first one.
GROUPS = {
    "label-studio": ("Answers from a Label Studio project, and our order into it.",
                     (pull, push, watch)),
}  # fmt: skip
NAMES = {"next_queries": "next"}  # commands whose names Python has taken
# Placeholders in the help for parameters that name a file or a folder.
PLACES = frozenset({"FILE", "FOLDER", "IN", "OUT", "LABELS", "MODEL", "FEATURES", "KEY"})
# Former names of outputs, which read like inputs. They are still understood, but replace nothing
# that wisecrowd did not write.
_RENAMED = {
    "aggregate": ("workers", "soft-labels", "predictions", "preferences", "assignments", "coco"),
    "train": ("labels", "workers", "preferences"),
    "predict": ("soft-labels", "predictions"),
    "convert": ("gold",),
}
EXIT_CODES = (
    "Exit codes: 0 success, 1 findings (--fail-on) or too little agreement (--floor), 2 wrong "
    "option or parameter, 3 unusable data or file, 4 nothing more to ask (next, label-studio "
    "push), 130 Ctrl-C."
)


class PanelledCommand(TyperCommand):
    """A command whose help shows groups of options under headings of their own."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options under the headings of their groups."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
                panel = getattr(parameter, "rich_help_panel", None) or usual
                panels.setdefault(panel, []).append(record)
        for panel, records in panels.items():
            with formatter.section(panel):
                formatter.write_dl(records)


def build_command() -> Any:
    """Return the complete command line as a typer app."""
    app = typer.Typer(
        help="Trusted labels and worker quality from noisy crowd annotations.",
        epilog=EXIT_CODES,
        add_completion=False,
        rich_markup_mode=None,  # plain help halves the start-up time and can be searched
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(root)
    for command in COMMANDS:
        app.command(NAMES.get(command.__name__), cls=PanelledCommand)(command)
    for name, (words, members) in GROUPS.items():
        group = typer.Typer(help=words, rich_markup_mode=None)
        for command in members:
            group.command(cls=PanelledCommand)(command)
        app.add_typer(group, name=name)
    built: Any = typer.main.get_command(app)
    _check_values(built)
    return built


def current_names(arguments: list[str]) -> list[str]:
    """Return a command line with the current names of options that were renamed.

    Examples
    --------
    >>> current_names(["convert", "a.json", "b.csv", "--gold=g.csv"])
    ['convert', 'a.json', 'b.csv', '--gold-to=g.csv']
    """
    from wisecrowd.core.exceptions import ParameterError

    start = next((i for i, word in enumerate(arguments) if word in _RENAMED), len(arguments))
    names = {f"--{name}" for name in _RENAMED.get("".join(arguments[start : start + 1]), ())}
    end = arguments.index("--") if "--" in arguments else len(arguments)
    made = list(arguments)
    for place in range(start, end):
        name, sign, value = arguments[place].partition("=")
        if name not in names:
            continue
        if "--overwrite" in arguments:
            raise ParameterError(
                f"{name} is an output and is called {name}-to; give that name with --overwrite."
            )
        made[place] = f"{name}-to{sign}{value}"
    return made


def _check_values(group: Any) -> None:
    """Have parameters refuse an empty name of a file or a folder, and options a second value."""
    for made in group.commands.values():
        if hasattr(made, "commands"):
            _check_values(made)
        for parameter in made.params:
            if parameter.metavar in PLACES:
                parameter.callback = _require_name
            elif parameter.callback is None and _takes_one(parameter):
                parameter.callback = _require_once


def _takes_one(parameter: Any) -> bool:
    """Return whether a parameter is an option that takes a single value."""
    flag = getattr(parameter, "is_flag", True)  # arguments have no such attribute
    return not (flag or parameter.multiple or getattr(parameter, "count", False))


def _require_once(context: Any, parameter: Any, value: Any) -> Any:
    """Refuse an option that is given twice, of which only the last value would count."""
    from wisecrowd.core.exceptions import ParameterError

    given = context.obj or []
    given = given[: given.index("--")] if "--" in given else given
    names = [name for word in given for name in parameter.opts if _names(word, name)]
    if len(names) > 1:
        why = "a run answers one question; " if names[0] == "--label" else ""
        raise ParameterError(f"{names[0]} is given {len(names)} times; {why}give it once.")
    return value


def _names(word: str, option: str) -> bool:
    """Return whether a word of the command line is an option, with or without its value."""
    return word == option or (option.startswith("--") and word.startswith(f"{option}="))


def _require_name(context: Any, parameter: Any, value: Any) -> Any:
    """Refuse an empty file name, which a shell passes for an unset variable."""
    from wisecrowd.core.exceptions import ParameterError

    for name in value if isinstance(value, list | tuple) else [value]:
        if name is not None and not name.strip():
            called = parameter.opts[-1] if parameter.opts[-1][:1] == "-" else parameter.metavar
            raise ParameterError(f"{called} is empty; give the name of a file or a folder.")
    return _require_once(context, parameter, value) if _takes_one(parameter) else value


def root(
    context: typer.Context,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME=NUMBER",
            help="Raise a limit on decoded files: rows, columns, bytes, or ratio to the size on "
            "disk; repeatable.",
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            is_eager=True,
            callback=lambda wanted: _print_version(wanted),
        ),
    ] = False,
) -> None:
    """Trusted labels and worker quality from noisy crowd annotations."""
    if limit:
        from wisecrowd.io.limits import limits, parse_limits

        context.with_resource(limits(**parse_limits(limit)))


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"wisecrowd {__version__}")
        raise typer.Exit
