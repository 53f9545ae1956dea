"""One page per method, from its docstring and its benchmark row; none of them is kept in a file."""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from docstrings import Docstring, Entry, Link, parse, to_markdown
from signatures import defaults, signature, types

from wisecrowd.core.registry import PACKAGES, get_method, kebab_case, method_names, methods

ROOT = Path(__file__).parents[2]
HEADINGS = {"aggregation": "From labels alone", "learning": "With features"}
YARDSTICKS = {
    "aggregation": "majority-vote", "learning": "two-stage", "numbers": "mean",
    "ordered": "thresholds", "pairs": "bradley-terry", "sequences": "token-wise",
    "texts": "text-medoid",
}  # fmt: skip
TYPES = {
    "labels": "classes", "ordered": "ordered classes", "numbers": "numbers", "pairs": "pairs",
    "rankings": "rankings", "sequences": "spans in texts", "sets": "sets of classes",
    "boxes": "boxes in images", "same": "same or different", "texts": "texts",
    "masks": "masks of images",
}  # fmt: skip
# Options that declare the type, and the main file that comes out.
READING = {
    "labels": ("", "labels.csv"), "ordered": (" --scale 1..5", "labels.csv"),
    "numbers": (" --type numbers", "values.csv"), "pairs": ("", "ranking.csv"),
    "rankings": (" --type rankings", "ranking.csv"),
    "sequences": (" --type sequences", "spans.csv"),
    "sets": (" --type sets", "sets.csv"),
    "boxes": ("", "boxes.csv"),
    "same": (" --type same", "clusters.csv"),
    "texts": (" --type texts", "texts.csv"),
    "masks": (" --type masks", "consensus.csv"),
}  # fmt: skip
INDEX, SHARED = "methods/index.md", "methods/shared-parameters.md"
# Base classes whose parameters several methods inherit and refer to.
BASES = (
    "wisecrowd.kinds.classes.families.confusion:ConfusionEM",
    "wisecrowd.kinds.classes.families.variational:VariationalConfusion",
    "wisecrowd.kinds.classes.families.moments.moment_method:PairMethod",
    "wisecrowd.learning.training.neural_classifier:NeuralClassifier",
    "wisecrowd.learning.training.alternating:AlternatingClassifier",
)


@dataclass(frozen=True)
class Method:
    """A method, its docstring, and where its page is."""

    kind: str
    name: str
    cls: type[Any]
    type: str

    @property
    def measured(self) -> str:
        """The key of its benchmark rows."""
        return self.kind if self.type == "labels" else self.type

    @property
    def path(self) -> str:
        """The page's file."""
        return f"methods/{page_of(self.kind, self.name)}"

    @property
    def docstring(self) -> Docstring:
        """The class's own docstring, taken apart."""
        return parse(inspect.getdoc(self.cls) or "")


@cache
def all_methods() -> tuple[Method, ...]:
    """Return every registered method, aggregators first."""
    return tuple(
        Method(kind, info.name, get_method(info.name, kind), info.type)
        for kind in PACKAGES
        for info in methods(kind)
    )


def pages() -> dict[str, str]:
    """Return all pages of the chapter: file in docs to Markdown."""
    made = {INDEX: index_page(), SHARED: shared_page()}
    return made | {method.path: method_page(method) for method in all_methods()}


def navigation() -> list[Any]:
    """Return the chapter's entries of the site's navigation."""
    groups = []
    for kind, type in groups_of_methods():
        found = [{m.name: m.path} for m in all_methods() if (m.kind, m.type) == (kind, type)]
        groups.append({heading(kind, type): found})
    return [INDEX, *groups, SHARED]


def groups_of_methods() -> list[tuple[str, str]]:
    """Return the groups of methods: what they learn from, and the type of labels."""
    return list(dict.fromkeys((method.kind, method.type) for method in all_methods()))


def heading(kind: str, type: str) -> str:
    """Return the heading of a group of methods."""
    return HEADINGS[kind] if type == "labels" else f"{HEADINGS[kind]}: {TYPES[type]}"


def page_of(kind: str, name: str) -> str:
    """Return the file of a method's page; a learner may have the name of an aggregator."""
    taken = kind == "learning" and name in method_names("aggregation", None)
    return f"{name}-learner.md" if taken else f"{name}.md"


def link(target: str) -> str | None:
    """Return the address of a class's page, seen from a method's page."""
    module, _, name = target.rpartition(".")
    ours = r"wisecrowd\.(aggregation|learning|kinds\.\w+\.(methods|families))\b"
    if module and not re.match(ours, module):
        return None
    if name in (base.partition(":")[2] for base in BASES):
        return f"shared-parameters.md#{name.lower()}"
    page = f"{kebab_case(name)}.md"
    return (
        page if page in {f"{m.name}.md" for m in all_methods() if m.cls.__name__ == name} else None
    )


# -------------------------------------------------------------------------------------- a method


def method_page(method: Method) -> str:
    """Return the page of one method."""
    docstring = method.docstring
    parts = [
        f"# {method.name}",
        f"**{to_markdown(docstring.summary, link)}**",
        to_markdown(docstring.description, link),
        usage(method),
        *benchmarks(method),
        "## Parameters",
        f"```python\n{signature(method.cls)}\n```",
        definitions(docstring.entries("Parameters"), link, defaults(method.cls), types(method.cls)),
        *changed_defaults(method),
    ]
    if "Attributes" in docstring.sections:
        parts += ["## After the fit", definitions(docstring.entries("Attributes"), link, {}, {})]
    if "Notes" in docstring.sections:
        parts += ["## Notes", to_markdown(docstring.sections["Notes"], link)]
    parts += ["## References", to_markdown(docstring.sections["References"], link)]
    parts += ["## Example", f"```python\n{example(method)}\n```"]
    return "\n\n".join(parts) + "\n"


def usage(method: Method) -> str:
    """Return how it is called, on the command line and in Python, and what it is limited to."""
    name = method.cls.__name__
    reading, output = READING[method.type]
    if method.kind == "learning":
        command = (
            f"wisecrowd train features.npy answers.csv{reading} --method {method.name} -o model"
        )
        call = f"wc.learning.{name}().fit(X, labels)"
    else:
        command = f"wisecrowd aggregate answers.csv{reading} --method {method.name} -o {output}"
        call = f"wc.aggregation.{name}().fit(labels)"
    lines = f"```bash\n{command}\n```\n\n```python\n{call}\n```"
    if method.kind == "aggregation" and method.cls().tags().binary:
        lines += "\n\nTwo classes only; [one-vs-rest](one-vs-rest.md) takes it further."
    return lines


def definitions(
    entries: list[Entry], link: Link, default: dict[str, Any], declared: dict[str, str]
) -> str:
    """Return a definition list of parameters, with defaults and types, or of attributes."""
    items = []
    for entry in entries:
        names = ", ".join(
            f"`{name}={default[name]!r}`" if name in default else f"`{name}`"
            for name in entry.names
        )
        written = ", ".join(dict.fromkeys(f"`{declared[n]}`" for n in entry.names if n in declared))
        kind, text = to_markdown(entry.kind, link) or written, to_markdown(entry.text, link)
        term, body = (f"{names} · {kind}", text) if kind and text else (names, text or kind or "—")
        body = body.replace("\n", "\n    ")
        items.append(f"{term}\n:   {body}")
    return "\n\n".join(items) or "None."


def changed_defaults(method: Method) -> Iterator[str]:
    """Say which inherited defaults a learner changes without a word in its own parameters."""
    if method.kind != "learning":
        return
    own = {name for entry in method.docstring.entries("Parameters") for name in entry.names}
    usual: dict[str, Any] = {}
    for base in (_load(each) for each in BASES):
        if issubclass(method.cls, base):
            usual |= defaults(base)
    mine = defaults(method.cls)
    changed = [f"`{k}={mine[k]!r}`" for k, v in usual.items() if k not in own and mine[k] != v]
    if changed:
        yield f"Other than in most methods: {', '.join(changed)}."


def example(method: Method) -> str:
    """Return the example with the imports that it takes for granted in its module."""
    code = method.docstring.sections["Examples"].strip()
    name = method.cls.__name__
    lines = [f">>> from wisecrowd.{method.kind} import {name}"]
    if "np" in undefined_names(code):
        lines.insert(0, ">>> import numpy as np")
    return "\n".join([*lines, code])


def undefined_names(code: str) -> set[str]:
    """Return the names that the statements of a doctest use and nothing in them defines."""
    statements = re.findall(r"^(?:>>>|\.\.\.) ?(.*)$", code, re.MULTILINE)
    nodes = list(ast.walk(ast.parse("\n".join(statements))))
    used = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    made = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            made |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.add(node.name)
        elif isinstance(node, ast.arg):
            made.add(node.arg)
    return used - made - set(dir(builtins))


# ------------------------------------------------------------------------------------ benchmarks


@cache
def simulated() -> dict[str, Any]:
    """Return what ``python -m benchmarks.accuracy.method_rows`` measured."""
    text = (ROOT / "docs" / "benchmark_rows.json").read_text(encoding="utf-8")
    measured: dict[str, Any] = json.loads(text)
    return measured


@cache
def published() -> dict[str, dict[str, str]]:
    """Return the table of real data sets: method → data set → accuracy."""
    text = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    table = text.partition("<!-- benchmarks: begin -->\n")[2].partition("<!-- benchmarks: end")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()]
    return {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[2:]}


def benchmarks(method: Method) -> Iterator[str]:
    """Return the method's rows beside those of the yardstick, where it has been measured."""
    if method.type != "labels":
        yield from benchmarks_of_kind(method)
        return
    measured, yardstick = simulated()[method.kind], YARDSTICKS[method.kind]
    row = measured["rows"].get(method.name)
    real = published().get(method.name) if method.kind == "aggregation" else None
    if row or real:
        yield "## Measured"
    if row:
        what = "of the labels" if method.kind == "aggregation" else "on digits that nobody labelled"
        seeds = measured["seeds"]
        yield f"Accuracy {what}, with the defaults, mean of {seeds} simulated crowds each."
        beside = measured["rows"][yardstick]
        lines = [
            f"| crowd | accuracy | log loss | CPU seconds | accuracy of {yardstick} |",
            "|---|---|---|---|---|",
        ]
        for crowd, text in measured["crowds"].items():
            cells = numbers(row[crowd], ("accuracy", "log_loss", "seconds"))
            lines.append(
                f"| **{crowd}**: {text} | {cells} | {numbers(beside[crowd], ('accuracy',))} |"
            )
        yield "\n".join(lines)
    if real:
        vote = published()[YARDSTICKS["aggregation"]]
        yield (
            "Accuracy of the labels on published data sets, in brackets crowd-kit 1.4.2 ([what the "
            "dashes mean](../accuracy.md))."
        )
        lines = ["| data set | accuracy | majority-vote |", "|---|---|---|"]
        yield "\n".join([*lines, *(f"| {k} | {v} | {vote[k]} |" for k, v in real.items())])


def benchmarks_of_kind(method: Method) -> Iterator[str]:
    """Return the rows of a method for another type than classes, where it has been measured."""
    measured = simulated().get(method.type, {}) if method.kind == "aggregation" else {}
    row = measured.get("rows", {}).get(method.name)
    if not row:
        return
    score, yardstick = measured["score"], YARDSTICKS[method.type]
    yield "## Measured"
    yield (
        f"{score[0].upper()}{score[1:]}, with the defaults, mean of {measured['seeds']} simulated "
        "crowds each."
    )
    lines = [f"| crowd | {score} | CPU seconds | {yardstick} |", "|---|---|---|---|"]
    for crowd, text in measured["crowds"].items():
        cells = numbers(row[crowd], ("score", "seconds"))
        beside = numbers(measured["rows"][yardstick][crowd], ("score",))
        lines.append(f"| **{crowd}**: {text} | {cells} | {beside} |")
    yield "\n".join(lines)


def numbers(scores: dict[str, float] | None, keys: tuple[str, ...]) -> str:
    """Return some scores as cells of a table."""
    return " | ".join("–" if scores is None else f"{scores[key]:.3f}" for key in keys)


# ------------------------------------------------------------------------------- chapter's pages


def index_page() -> str:
    """Return the table of all methods."""
    parts = [
        "# All methods",
        "[Which method?](../which-method.md) helps to choose. On the command line "
        "`wisecrowd methods` lists what is here, and `wisecrowd compare` runs it on your data. The "
        "figures are accuracies on simulated crowds, all parameters at their defaults; “–” where a "
        "method does not take the crowd.",
    ]
    for kind, type in groups_of_methods():
        key = kind if type == "labels" else type if kind == "aggregation" else ""
        measured = simulated().get(key, {"crowds": {}, "rows": {}})
        crowds, score = measured["crowds"], "accuracy" if type == "labels" else "score"
        parts.append(f"## {heading(kind, type)}")
        if crowds:
            told = "" if type == "labels" else f"The figures are {article(measured['score'])}.\n\n"
            parts.append(told + "\n".join(f"- **{k}**: {v}" for k, v in crowds.items()))
        lines = [
            " | ".join(["| method", "use it when", *crowds]) + " |",
            f"|---|---|{'---|' * len(crowds)}",
        ]
        for info in methods(kind, type=type):
            row = measured["rows"].get(info.name, {})
            cells = "".join(f" {numbers(row.get(crowd), (score,))} |" for crowd in crowds)
            use = to_markdown(info.use.removeprefix("Use it when "), link).replace("|", "\\|")
            page = page_of(kind, info.name)
            lines.append(f"| [{info.name}]({page}) | {use} |{cells}")
        parts.append("\n".join(lines))
    command = "python -m benchmarks.accuracy.method_rows"
    parts.append(f"`{command}` in a clone measures all of this again.")
    return "\n\n".join(parts) + "\n"


def article(score: str) -> str:
    """Return the plural of a score for a sentence."""
    return {"R²": "R²", "Kendall τ": "Kendall's τ with the true scores"}.get(score, f"{score}s")


def shared_page() -> str:
    """Return the parameters that several methods inherit."""
    parts = ["# Shared parameters", "What several methods inherit from a common base."]
    for base in BASES:
        cls = _load(base)
        docstring = parse(inspect.getdoc(cls) or "")
        parts += [
            f"## {cls.__name__}",
            to_markdown(docstring.summary, link),
            definitions(docstring.entries("Parameters"), link, defaults(cls), types(cls)),
        ]
    return "\n\n".join(parts) + "\n"


def _load(name: str) -> type[Any]:
    module, _, attribute = name.partition(":")
    found: type[Any] = getattr(__import__(module, fromlist=[attribute]), attribute)
    return found
