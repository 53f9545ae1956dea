"""``wisecrowd compare --features``: every end-to-end method with the same network and budget."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.core.exceptions import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wisecrowd.cli.feature_reading import FeatureReading
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.cli.options import Reading
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.labels import CrowdLabels
    from wisecrowd.metrics.against_truth import MatchedTruth

WITHOUT_GOLD = ("held_out_score", "standard_error", "near_best", "recommended")
WITH_TRUTH = ("train_accuracy",)
WITH_TEST = ("test_accuracy", "test_log_loss")


@dataclass(frozen=True, kw_only=True)
class FeatureFiles:
    """The options that name files of features."""

    features: Annotated[
        str | None,
        typer.Option(
            "--features", metavar="FILE", help="Features; compare the methods that use them."
        ),
    ] = None
    ids: options.Ids = None
    test: Annotated[
        str | None,
        typer.Option("--test", metavar="FILE", help="Features of test tasks; needs --test-truth."),
    ] = None
    test_truth: Annotated[
        str | None,
        typer.Option("--test-truth", metavar="FILE", help="True classes of the test tasks."),
    ] = None

    def check(self, parameters: list[str], columns: FeatureReading) -> None:
        """Refuse options that need features."""
        given = (self.ids, self.test, self.test_truth, columns.embed, columns.feature_columns)
        if self.features is None and (any(given) or parameters):
            raise ParameterError(
                "--ids, --test, --test-truth, --embed, --feature-columns and -p go with "
                "--features; give it too."
            )

    def paths(self) -> list[str]:
        """Return the options that are given."""
        return [p for p in (self.features, self.ids, self.test, self.test_truth) if p is not None]


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
    from wisecrowd.cli.inputs import read_truth
    from wisecrowd.cli.train import read_validation
    from wisecrowd.io.feature_files import read_ids
    from wisecrowd.learning.training.held_out_scoring import aligned

    assert files.features is not None
    table = columns.read(files.features, notes)
    tasks = table.tasks if files.ids is None else read_ids(files.ids)
    X, rows = aligned(table.X, labels, tasks)
    known = None if truth is None else read_truth(truth, rows.tasks, notes)
    test = read_validation(
        files.test, files.test_truth, "--test", reading, lambda path: columns.read(path, notes)
    )
    return LearningProblem(X, rows, known, test)


def run_methods(
    problem: LearningProblem, chosen: list[str], parameters: list[str], seed: int, notes: Notes
) -> list[dict[str, Any]]:
    """Fit and score every method, the best first, with the reason if a method fails.

    The row with the best held-out score is marked as recommended, whatever the ranking.
    """
    from wisecrowd.cli.progress import working
    from wisecrowd.comparing import INTERNAL, mark_best
    from wisecrowd.core.exceptions import WisecrowdError

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
    mark_best(sorted(rows, key=lambda row: -row.get("held_out_score", -1e300)))
    first = problem.scores[0]
    rows.sort(key=lambda row: -row[first] if first in row else 1e300)
    return [{key: value for key, value in row.items() if key not in INTERNAL} for row in rows]


def _scores(
    name: str, problem: LearningProblem, parameters: list[str], seed: int
) -> dict[str, Any]:
    import numpy as np

    from wisecrowd.cli.parameters import configured_method
    from wisecrowd.comparing import held_out_columns
    from wisecrowd.learning.training.held_out_scoring import held_out_score
    from wisecrowd.metrics.against_truth import label_scores

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
    from wisecrowd.core.messages.descriptions import suggestion
    from wisecrowd.core.registry import get_method

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
    from wisecrowd.core.registry import get_method

    known = get_method(name, "learning")._parameter_names()
    return [text for text in parameters if _own_name(text) in known]


def _own_name(text: str) -> str:
    """Return the top-level parameter in NAME=VALUE: ``method`` for ``method__tol``."""
    return text.partition("=")[0].partition("__")[0].strip()
