"""Commands about wisecrowd itself: its methods, its versions, its script for Spark."""

from __future__ import annotations

from dataclasses import asdict

from wisecrowd.api import show_versions
from wisecrowd.cli.options.about import MethodsOptions
from wisecrowd.cli.run.outputs import print_json, print_text
from wisecrowd.cli.spark_submit import wisecrowd_on_spark
from wisecrowd.cli.terminal import indented, terminal_width
from wisecrowd.core.registry import methods as all_methods


def methods(asked: MethodsOptions) -> None:
    """Run ``wisecrowd methods``."""
    found = all_methods("learning" if asked.learning else "aggregation", type=asked.type)
    if asked.as_json:
        print_json({"methods": [asdict(method) for method in found]})
        return
    if asked.long:
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
        if asked.type is None and kind not in kinds[:number]:
            lines[number] = f"{chr(10) if number else ''}[{kind}]\n{lines[number]}"
    print_text("".join(f"{line}\n" for line in lines))


def versions(as_json: bool) -> None:
    """Run ``wisecrowd versions``."""
    found = show_versions()
    if as_json:
        print_json(found)
    else:
        print_text(f"{found!r}\n")


def spark_script() -> None:
    """Run ``wisecrowd spark-script``."""
    print_text(f"{wisecrowd_on_spark.__file__}\n")


def _cut(line: str, width: int | None) -> str:
    """Shorten a line to the width of the terminal."""
    fits = width is None or len(line) <= width
    return line if fits else line[: max(width or 0, 20) - 1].rstrip() + "…"


def _described(name: str, sentences: list[str]) -> str:
    """Return a method's name and, indented below it, one paragraph per sentence."""
    lines = [name]
    for sentence in filter(None, sentences):
        lines += indented(sentence, 4)
    return "\n".join(lines) + "\n"
