"""``wisecrowd compare``: every method on the same annotations, in one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.cli.compare_learning import FeatureFiles, check_parameters, read_problem, run_methods
from wisecrowd.cli.feature_reading import FeatureReading
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading, Running

if TYPE_CHECKING:
    from wisecrowd.cli.terminal import Notes


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """The options of ``wisecrowd compare``."""

    truth: options.Truth = None
    output: options.Output = None
    methods: Annotated[
        str | None,
        typer.Option("--methods", metavar="A,B,...", help="Methods to compare (default: all)."),
    ] = None
    learning: FeatureFiles
    feature_reading: FeatureReading
    parameter: options.Parameters = None
    truth_columns: options.TruthColumns = None
    reading: Reading
    as_json: options.Json = False
    overwrite: options.Overwrite = False
    running: Running


@command
def compare(context: typer.Context, files: options.Files, asked: CompareOptions) -> None:
    """Run every method and score it.

    With --truth, scores labels and probabilities against the truth. Without it, hides some labels,
    fits each method to the others and ranks methods by how well they predict the hidden ones; one
    method is recommended.

    With --features, compares the methods that train a classifier, with the same network and budget
    (-p epochs=20 applies to all). They are ranked by --test-truth, else by --truth, else by the
    held-out likelihood.
    """
    from wisecrowd.cli.inputs import KnownFile, describe_run, read_answers, read_labels
    from wisecrowd.cli.outputs import check_outputs, split_output
    from wisecrowd.cli.progress import working
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.comparing import comparable_methods, compare_methods, scores_of
    from wisecrowd.engines.threads import set_threads
    from wisecrowd.inference.scorers import scorer_of

    learning, parameters, seed = asked.learning, asked.parameter or [], asked.running.seed or 0
    learning.check(parameters, asked.feature_reading)
    truth = KnownFile.given(asked.truth, "--truth", asked.truth_columns, asked.reading)
    sources = [*files, *([truth.path] if truth else []), *learning.paths()]
    set_threads(asked.running.threads)
    places = split_output(asked.output, asked.as_json)
    table, document = places
    check_outputs(
        [table], [*sources, *asked.reading.key_files], others=filter(None, [document]),
        overwrite=asked.overwrite,
    )  # fmt: skip
    chosen = _chosen(asked.methods, "aggregation" if learning.features is None else "learning")
    if chosen is not None and learning.features is not None:
        check_parameters(chosen, parameters)
    with Notes(asked.running.quiet) as notes:
        data = read_labels(files, asked.reading, notes)
        if chosen is None:
            chosen = comparable_methods(data)
        explanations: tuple[str, ...] = ()
        if learning.features is not None:
            problem = read_problem(
                learning, asked.feature_reading, data, truth, asked.reading, notes
            )
            rows = run_methods(problem, chosen, parameters, seed, notes)
            known, scores = problem.truth, problem.scores
        else:
            known = None if truth is None else read_answers(truth, data, notes)
            rows = compare_methods(
                data, known, chosen, seed,
                lambda name, i, n: working(f"{name} ({i} of {n})", notes, about=name),
            )  # fmt: skip
            scores = list(scores_of(data, known))
            explanations = scorer_of(data).explanations
        manifest = describe_run(
            context, sources, method="compare", seed=seed,
            parameters={"methods": chosen, **({"all": parameters} if parameters else {})},
        )  # fmt: skip
        _show(rows, scores, explanations, known, places, asked.as_json, manifest, notes)


def _chosen(methods: str | None, kind: str) -> list[str] | None:
    """Return the named methods, all learners, or None: all methods for the data."""
    from wisecrowd.core.exceptions import ParameterError
    from wisecrowd.core.registry import get_method, kebab_case, method_names

    if methods is None:
        return method_names(kind) if kind == "learning" else None
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names:
        raise ParameterError("--methods names no method; leave it out to compare all.")
    return list(dict.fromkeys(kebab_case(get_method(name, kind).__name__) for name in names))


def _show(
    rows: list[dict[str, Any]],
    scores: list[str],
    explanations: tuple[str, ...],
    truth: Any,
    places: tuple[str | None, str | None],
    as_json: bool,
    manifest: Any,
    notes: Notes,
) -> None:
    from wisecrowd.cli.outputs import give_json, write_result
    from wisecrowd.comparing import comparison_table, recommendation
    from wisecrowd.storage.atomic import together

    output, document = places
    name, reason = recommendation(rows) if "held_out_score" in scores else (None, "")
    with together():
        if output is not None:
            write_result(comparison_table(rows, scores), output, manifest, notes)
            if reason:
                notes(reason)
        if as_json:
            n_scored = None if truth is None else len(getattr(truth, "rows", truth))
            found = {"n_scored": n_scored, "seed": manifest.seed}
            if reason:
                found |= {"recommended": name, "reason": reason}
            found["methods"] = rows
            give_json(lambda: found | {"notes": notes.said}, document, manifest, notes)
    if output is None and not as_json:
        _print_table(rows, scores, explanations, reason)


def _print_table(
    rows: list[dict[str, Any]], scores: list[str], explanations: tuple[str, ...], reason: str
) -> None:
    from wisecrowd.cli.outputs import print_text
    from wisecrowd.cli.scores import HEADINGS
    from wisecrowd.cli.terminal import indented, terminal_width, text_table

    columns = [s for s in (*scores, "cpu_seconds") if s != "recommended"]
    header = ["method", *(HEADINGS.get(s, s.replace("_", " ")) for s in columns)]
    ran = [
        [row["method"], *(_mark(row) if s == "near_best" else row.get(s) for s in columns)]
        for row in rows
        if "cpu_seconds" in row
    ]
    print_text(text_table(header, ran) + "\n")
    if reason:
        lines = [line for text in (reason, *explanations) for line in indented(text, 0)]
        print_text("\n" + "\n".join(lines) + "\n")
    missing = [[row["method"], row["reason"]] for row in rows if "reason" in row]
    if missing:
        print_text("\n" + text_table(["not run", "why"], missing, terminal_width()) + "\n")


def _mark(row: dict[str, Any]) -> str:
    if row["recommended"]:
        return "recommended"
    return "yes" if row["near_best"] else ""
