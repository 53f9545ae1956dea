"""``wisecrowd compare``: every method on the same annotations, in one table.

With ``--features`` these are the end-to-end methods, with the same network and budget.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from wisecrowd.cli.options.evaluate import CompareOptions
from wisecrowd.cli.run.features import read_feature_table
from wisecrowd.cli.run.inputs import KnownFile, describe_run, read_answers, read_labels
from wisecrowd.cli.run.outputs import (
    check_outputs,
    give_json,
    print_text,
    split_output,
    write_result,
)
from wisecrowd.cli.run.parameters import configured_method
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.run.scores import HEADINGS
from wisecrowd.cli.run.train import read_validation
from wisecrowd.cli.terminal import Notes, indented, terminal_width, text_table
from wisecrowd.comparing import (
    INTERNAL,
    comparable_methods,
    compare_methods,
    comparison_table,
    held_out_columns,
    mark_best,
    recommendation,
    scores_of,
)
from wisecrowd.core.exceptions import ParameterError, WisecrowdError
from wisecrowd.core.kinds import kind_of
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.registry import get_method, kebab_case, method_names
from wisecrowd.engines.threads import set_threads
from wisecrowd.inference.scorers import Scorer, scorer_of
from wisecrowd.io.feature_files import read_ids
from wisecrowd.kinds.classes.scorer import MatchedTruth, label_scores
from wisecrowd.learning.training.held_out_scoring import aligned, held_out_score
from wisecrowd.storage.atomic import together

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wisecrowd.cli.options.features import FeatureFiles, FeatureReading
    from wisecrowd.cli.options.reading import Reading
    from wisecrowd.cli.run.inputs import KnownFile
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.kinds.classes.container import CrowdLabels


def compare(context: typer.Context, files: list[str], asked: CompareOptions) -> None:
    """Run ``wisecrowd compare``."""
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
        scorer: Scorer | None = None
        if learning.features is not None:
            problem = read_problem(
                learning, asked.feature_reading, data, truth, asked.reading, notes
            )
            usual = kind_of(data).default_learner or ""
            rows = run_methods(problem, chosen, usual, parameters, seed, notes)
            known, scores = problem.truth, problem.scores
        else:
            usual = kind_of(data).default_method
            known = None if truth is None else read_answers(truth, data, notes)
            rows = compare_methods(
                data, known, chosen, seed,
                lambda name, i, n: working(f"{name} ({i} of {n})", notes, about=name),
            )  # fmt: skip
            scores = list(scores_of(data, known))
            scorer = scorer_of(data)
        manifest = describe_run(
            context, sources, method="compare", seed=seed,
            parameters={"methods": chosen, **({"all": parameters} if parameters else {})},
        )  # fmt: skip
        advice = recommendation(rows, usual) if "held_out_score" in scores else (None, "")
        _show(rows, scores, scorer, advice, known, places, asked.as_json, manifest, notes)


def _chosen(methods: str | None, kind: str) -> list[str] | None:
    """Return the named methods, all learners, or None: all methods for the data."""
    if methods is None:
        return method_names(kind) if kind == "learning" else None
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names:
        raise ParameterError("--methods names no method; leave it out to compare all.")
    return list(dict.fromkeys(kebab_case(get_method(name, kind).__name__) for name in names))


def _show(
    rows: list[dict[str, Any]],
    scores: list[str],
    scorer: Scorer | None,
    advice: tuple[str | None, str],
    truth: Any,
    places: tuple[str | None, str | None],
    as_json: bool,
    manifest: Any,
    notes: Notes,
) -> None:
    output, document = places
    name, reason = advice
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
        _print_table(rows, scores, scorer, reason)


def _print_table(
    rows: list[dict[str, Any]], scores: list[str], scorer: Scorer | None, reason: str
) -> None:
    columns = [s for s in (*scores, "cpu_seconds") if s != "recommended"]
    names = HEADINGS | getattr(scorer, "headings", {})
    header = ["method", *(names.get(s, s.replace("_", " ")) for s in columns)]
    ran = [
        [row["method"], *(_mark(row) if s == "near_best" else row.get(s) for s in columns)]
        for row in rows
        if "cpu_seconds" in row
    ]
    print_text(text_table(header, ran) + "\n")
    if reason:
        sentences = (reason, *(scorer.explanations if scorer else ()))
        lines = [line for text in sentences for line in indented(text, 0)]
        print_text("\n" + "\n".join(lines) + "\n")
    missing = [[row["method"], row["reason"]] for row in rows if "reason" in row]
    if missing:
        print_text("\n" + text_table(["not run", "why"], missing, terminal_width()) + "\n")


def _mark(row: dict[str, Any]) -> str:
    if row["recommended"]:
        return "recommended"
    return "yes" if row["near_best"] else ""


WITHOUT_GOLD = ("held_out_score", "standard_error", "near_best", "recommended")
WITH_TRUTH = ("train_accuracy",)
WITH_TEST = ("test_accuracy", "test_log_loss")


@dataclass(frozen=True)
class LearningProblem:
    """Input of every method: features aligned with labels, and known classes for scoring."""

    X: NDArray[Any]
    labels: CrowdLabels
    truth: MatchedTruth | None
    test: tuple[NDArray[Any], NDArray[Any]] | None

    @property
    def scores(self) -> list[str]:
        """Columns of the table; the first that needs truth, if any, determines the ranking."""
        found = [*(WITH_TEST if self.test else ()), *(WITH_TRUTH if self.truth else ())]
        return [*found, *WITHOUT_GOLD]


def read_problem(
    files: FeatureFiles,
    columns: FeatureReading,
    labels: CrowdLabels,
    truth: KnownFile | None,
    reading: Reading,
    notes: Notes,
) -> LearningProblem:
    """Read the files and align them."""
    assert files.features is not None
    table = read_feature_table(columns, files.features, notes)
    tasks = table.tasks if files.ids is None else read_ids(files.ids)
    X, rows = aligned(table.X, labels, tasks)
    known = None if truth is None else MatchedTruth.read(truth, rows.tasks, notes)
    test = read_validation(
        files.test, files.test_truth, columns, notes, option="--test", reading=reading
    )
    return LearningProblem(X, rows, known, test)


def run_methods(
    problem: LearningProblem,
    chosen: list[str],
    default: str,
    parameters: list[str],
    seed: int,
    notes: Notes,
) -> list[dict[str, Any]]:
    """Fit and score every method, the best first, with the reason if a method fails.

    The default is recommended unless another method leads its held-out score, whatever the ranking.
    """
    rows = []
    for number, name in enumerate(chosen, start=1):
        try:
            with working(f"{name} ({number} of {len(chosen)})", notes, about=name):
                rows.append({"method": name, **_scores(name, problem, parameters, seed)})
        except WisecrowdError as error:
            rows.append({"method": name, "reason": str(error)})
            continue
        if hasattr(rows[-1]["model"], "reason_"):
            notes(f"{name}: {rows[-1]['model'].reason_}")
    mark_best(sorted(rows, key=lambda row: -row.get("held_out_score", -1e300)), default)
    first = problem.scores[0]
    rows.sort(key=lambda row: -row[first] if first in row else 1e300)
    return [{key: value for key, value in row.items() if key not in INTERNAL} for row in rows]


def _scores(
    name: str, problem: LearningProblem, parameters: list[str], seed: int
) -> dict[str, Any]:
    def fresh() -> Any:
        method: Any = configured_method(name, _those_of(name, parameters), seed, "learning")
        return method

    start = time.process_time()
    model = fresh().fit(problem.X, problem.labels, tasks=problem.labels.tasks)
    seconds = time.process_time() - start
    held_out = held_out_score(fresh(), problem.X, problem.labels, seed=seed)
    scores: dict[str, Any] = {**held_out_columns(held_out), "model": model}
    if problem.truth is not None:
        scores["train_accuracy"] = label_scores(problem.truth, model.labels_)["accuracy"]
    if problem.test is not None:
        X, classes = problem.test
        probas = model.predict_proba(X)
        column = {value: k for k, value in enumerate(model.classes_.tolist())}
        codes = np.array([column.get(value, -1) for value in classes])
        right = probas[np.arange(len(codes)), np.maximum(codes, 0)] * (codes >= 0)
        scores["test_accuracy"] = float(np.mean(model.predict(X) == np.asarray(classes, object)))
        scores["test_log_loss"] = float(-np.log(np.maximum(right, 1e-15)).mean())
    return {**scores, "cpu_seconds": seconds}


def check_parameters(chosen: list[str], parameters: list[str]) -> None:
    """Refuse a parameter that none of the methods has."""
    methods = [get_method(name, "learning") for name in chosen]
    known = list(dict.fromkeys(name for one in methods for name in one._parameter_names()))
    for text in parameters:
        if _own_name(text) not in known:
            raise ParameterError(
                f"None of the compared methods has a parameter {_own_name(text)!r}"
                f"{suggestion(_own_name(text), known)}; they have {', '.join(known)}."
            )


def _those_of(name: str, parameters: list[str]) -> list[str]:
    """Return the given parameters that a method has; some methods have no network."""
    known = get_method(name, "learning")._parameter_names()
    return [text for text in parameters if _own_name(text) in known]


def _own_name(text: str) -> str:
    """Return the top-level parameter in NAME=VALUE: ``method`` for ``method__tol``."""
    return text.partition("=")[0].partition("__")[0].strip()
