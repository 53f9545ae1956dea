"""``wisecrowd methods``: list of methods with purpose and reference."""

from __future__ import annotations

from typing import Annotated

import typer

from wisecrowd.cli import options

Learning = Annotated[
    bool, typer.Option("--learning", help="List the methods that train a classifier on features.")
]
Type = Annotated[
    str | None,
    typer.Option(
        "--type", metavar="TYPE", help="Only methods for this type of labels, such as sets."
    ),
]
Long = Annotated[bool, typer.Option("--long", help="Add when to use each method, and its paper.")]


def methods(
    learning: Learning = False,
    type: Type = None,
    long: Long = False,
    as_json: options.PrintJson = False,
) -> None:
    """List the methods, one line each: name and summary, below the type of labels they take."""
    from dataclasses import asdict

    from wisecrowd.cli.outputs import print_json, print_text
    from wisecrowd.cli.terminal import terminal_width
    from wisecrowd.core.registry import methods as all_methods

    found = all_methods("learning" if learning else "aggregation", type=type)
    if as_json:
        print_json({"methods": [asdict(method) for method in found]})
        return
    if long:
        blocks = [
            _described(method.name, [method.summary, method.use, method.reference])
            for method in found
        ]
        print_text("\n".join(blocks))
        return
    width = terminal_width()
    longest = max((len(method.name) for method in found), default=0)
    lines = [_cut(f"{method.name:<{longest}}  {method.summary}", width) for method in found]
    kinds = [method.type for method in found]
    for number, kind in enumerate(kinds):
        if type is None and kind not in kinds[:number]:
            lines[number] = f"{chr(10) if number else ''}[{kind}]\n{lines[number]}"
    print_text("".join(f"{line}\n" for line in lines))


def _cut(line: str, width: int | None) -> str:
    """Shorten a line to the width of the terminal."""
    fits = width is None or len(line) <= width
    return line if fits else line[: max(width or 0, 20) - 1].rstrip() + "…"


def _described(name: str, sentences: list[str]) -> str:
    """Return a method's name and, indented below it, one paragraph per sentence."""
    from wisecrowd.cli.terminal import indented

    lines = [name]
    for sentence in filter(None, sentences):
        lines += indented(sentence, 4)
    return "\n".join(lines) + "\n"
