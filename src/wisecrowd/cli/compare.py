"""``wisecrowd compare``: every method on the same annotations, in one table."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.cli.compare_learning import Sources, read_problem, run_methods
from wisecrowd.cli.options import Reading

if TYPE_CHECKING:
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.cli.scores import Truth
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.base import Aggregator
    from wisecrowd.core.labels import CrowdLabels

WITH_TRUTH = (
    "accuracy", "balanced_accuracy", "macro_f1", "log_loss", "expected_calibration_error",
)  # fmt: skip
WITHOUT_TRUTH = ("agreement", "held_out_log_likelihood")
HELD_OUT = 0.2  # share of the tasks that the likelihood is measured on


def compare(
    context: typer.Context,
    files: options.Files,
    truth: options.Truth = None,
    output: options.Output = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", metavar="A,B,...", help="Only these; by default all."),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            "--features", metavar="FILE", help="Compare the methods that learn from features."
        ),
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option("--ids", metavar="FILE", help="The task of each row of the features."),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option("--test", metavar="FILE", help="Features of new tasks to score on ..."),
    ] = None,
    test_truth: Annotated[
        str | None,
        typer.Option("--test-truth", metavar="FILE", help="... and their true classes."),
    ] = None,
    parameter: options.Parameters = None,
    task: options.TaskColumn = None,
    worker: options.WorkerColumn = None,
    label: options.LabelColumn = None,
    timestamp: options.TimestampColumn = None,
    weight: options.WeightColumn = None,
    truth_columns: options.TruthColumns = None,
    no_header: options.NoHeader = False,
    columns: options.Columns = None,
    wide: options.Wide = False,
    worker_columns: options.WorkerColumns = None,
    format: options.Format = "auto",
    encoding: options.Encoding = "utf-8",
    classes: options.Classes = None,
    abstain: options.Abstain = None,
    duplicates: options.Duplicates = "last",
    kinds: options.Kinds = None,
    exclude_workers: options.ExcludeWorkers = None,
    as_json: options.Json = False,
    seed: options.Seed = None,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Run every method and score it.

    With --truth: how right labels and probabilities are. Without: how far a method agrees with the
    others on average, and the log-likelihood per label of a fifth of the tasks, held out.

    With --features the methods that train a classifier are compared, with the same network and
    budget (-p epochs=20 and the like go to all), and ranked by --test-truth, --truth or, without
    either, by the held-out likelihood.
    """
    from wisecrowd.cli.inputs import KnownFile

    reading = Reading(
        no_header=no_header, columns=columns, wide=wide, worker_columns=worker_columns,
        task=task, worker=worker, label=label, timestamp=timestamp, weight=weight, format=format,
        encoding=encoding, classes=classes, abstain=abstain, duplicates=duplicates,
        kinds=kinds, exclude_workers=exclude_workers,
    )  # fmt: skip
    if features is None and (ids or test or test_truth or parameter):
        from wisecrowd.core.exceptions import ParameterError

        raise ParameterError("--ids, --test, --test-truth and -p go with --features; give it too.")
    learning = None if features is None else Sources(features, ids, test, test_truth)
    _compare(
        context.obj, files, KnownFile.given(truth, "--truth", truth_columns, reading), output,
        reading, learning, parameter or [],
        methods=methods, as_json=as_json, seed=seed or 0, threads=threads, quiet=quiet,
    )  # fmt: skip


def _compare(
    command: list[str],
    files: list[str],
    truth: KnownFile | None,
    output: str | None,
    reading: Reading,
    learning: Sources | None,
    parameters: list[str],
    *,
    methods: str | None,
    as_json: bool,
    seed: int,
    threads: int | None,
    quiet: bool,
) -> None:
    from wisecrowd.cli.inputs import read_labels, read_truth, source_files
    from wisecrowd.cli.outputs import check_outputs, split_output
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.engines.threads import set_threads
    from wisecrowd.storage.manifest import Manifest

    sources = [*files, *([truth.path] if truth else []), *(learning.paths() if learning else [])]
    set_threads(threads)
    table, document = split_output(output, as_json)
    check_outputs([table], sources, others=filter(None, [document]))
    chosen = _chosen(methods, "learning" if learning else "aggregation")
    with Notes(quiet) as notes:
        data = read_labels(files, reading, notes)
        if learning is not None:
            problem = read_problem(learning, data, truth, reading, notes)
            rows = run_methods(problem, chosen, parameters, seed, notes)
            known, scores = problem.truth, problem.scores
        else:
            known = None if truth is None else read_truth(truth, data.tasks, notes)
            rows = [_run(name, data, known, seed, notes, chosen) for name in chosen]
            scores = list(WITH_TRUTH if known is not None else WITHOUT_TRUTH)
            if known is None:
                _add_agreement(rows)
            rows.sort(key=lambda row: _rank(row, scores))
        manifest = Manifest.describe(
            method="compare",
            parameters={"methods": chosen, **({"all": parameters} if parameters else {})},
            seed=seed,
            inputs=source_files(sources),
            command=["wisecrowd", *command],
        )
        _show(rows, scores, known, (table, document), as_json, manifest, notes)


def _chosen(methods: str | None, kind: str) -> list[str]:
    from wisecrowd.core.exceptions import ParameterError
    from wisecrowd.core.registry import get_method, kebab_case, method_names

    if methods is None:
        return method_names(kind)
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names:
        raise ParameterError("--methods names no method; leave it out to compare all.")
    return list(dict.fromkeys(kebab_case(get_method(name, kind).__name__) for name in names))


def _run(
    name: str,
    labels: CrowdLabels,
    truth: Truth | None,
    seed: int,
    notes: Notes,
    chosen: list[str],
) -> dict[str, Any]:
    """Fit and score one method; what it cannot do is its reason, not the end of the command."""
    from wisecrowd.cli.parameters import configured_method
    from wisecrowd.cli.progress import working
    from wisecrowd.core.exceptions import WisecrowdError

    notes.about = name
    what = f"{name} ({chosen.index(name) + 1} of {len(chosen)})"
    try:
        with working(what, quiet=notes.quiet):
            model = configured_method(name, [], seed)
            start = time.perf_counter()
            model.fit(labels)
            seconds = time.perf_counter() - start
            scores = _scores(model, labels, truth, name, seed)
    except WisecrowdError as error:
        return {"method": name, "reason": str(error)}
    finally:
        notes.about = ""
    return {"method": name, **scores, "seconds": seconds, "model": model}


def _scores(
    model: Aggregator, labels: CrowdLabels, truth: Truth | None, name: str, seed: int
) -> dict[str, float | None]:
    if truth is None:
        return {"held_out_log_likelihood": _held_out(model, labels, name, seed)}
    from wisecrowd.cli.scores import label_scores, probability_scores

    found = {
        **label_scores(truth, model.labels_),
        **probability_scores(truth, model.probas_, model.classes_),
    }
    return {score: found[score] for score in WITH_TRUTH}


def _held_out(model: Aggregator, labels: CrowdLabels, name: str, seed: int) -> float | None:
    """Return the log-likelihood per label of tasks that a second fit has not seen."""
    import numpy as np

    from wisecrowd.cli.parameters import configured_method

    if not model.tags.likelihood or labels.n_tasks < 2:
        return None
    order = np.random.default_rng(seed).permutation(labels.n_tasks)
    n_test = max(1, int(HELD_OUT * labels.n_tasks))
    test, train = labels[np.sort(order[:n_test])], labels[np.sort(order[n_test:])]
    if train.n_annotations == 0 or test.n_annotations == 0:
        return None
    return configured_method(name, [], seed).fit(train).score(test)


def _add_agreement(rows: list[dict[str, Any]]) -> None:
    """Add to each fitted method the share of tasks on which another agrees, averaged over them."""
    import numpy as np

    fitted = [row for row in rows if "model" in row]
    for row in fitted:
        others = [other["model"].labels_ for other in fitted if other is not row]
        shares = [float(np.mean(row["model"].labels_ == labels)) for labels in others]
        row["agreement"] = float(np.mean(shares)) if shares else None


def _rank(row: dict[str, Any], scores: list[str]) -> float:
    """Sort key: the best first, those without a score and those that did not run last."""
    if "reason" in row:
        return 1e300
    value = row.get(scores[0])
    return 1e200 if value is None else -float(value)


def _show(
    rows: list[dict[str, Any]],
    scores: list[str],
    truth: Truth | None,
    places: tuple[str | None, str | None],
    as_json: bool,
    manifest: Any,
    notes: Notes,
) -> None:
    import numpy as np

    from wisecrowd.cli.outputs import give_json, print_text, write_result
    from wisecrowd.cli.scores import HEADINGS
    from wisecrowd.cli.terminal import terminal_width, text_table
    from wisecrowd.storage.atomic import together

    output, document = places
    scores = [*scores, "seconds"]
    clean = [{k: v for k, v in row.items() if k != "model"} for row in rows]
    with together():
        if output is not None:
            table: dict[str, Any] = {"method": np.array([r["method"] for r in clean], dtype=object)}
            for score in scores:
                table[score] = np.array([_number(row.get(score)) for row in clean])
            table["reason"] = np.array([row.get("reason", "") for row in clean], dtype=object)
            write_result(table, output, manifest, notes)
        if as_json:
            scored = None if truth is None else len(truth.rows)
            found = {"n_scored": scored, "seed": manifest.seed, "methods": clean}
            give_json(lambda: found, document, manifest, notes)
    if output is None and not as_json:
        header = ["method", *(HEADINGS.get(s, s.replace("_", " ")) for s in scores)]
        ran = [[row["method"], *(row.get(s) for s in scores)] for row in clean if "seconds" in row]
        print_text(text_table(header, ran) + "\n")
        missing = [[row["method"], row["reason"]] for row in clean if "reason" in row]
        if missing:
            print_text("\n" + text_table(["not run", "why"], missing, terminal_width()) + "\n")


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
