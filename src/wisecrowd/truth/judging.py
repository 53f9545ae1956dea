"""Judges, such as language models, compared with people."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.judged_answers import JudgedAnswers
from wisecrowd.core.kinds import all_kinds, kind_of
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.truth.anchored_workers import weights_of_checked
from wisecrowd.truth.annotator_test import FEWEST_QUESTIONS, AnnotatorTest, Panel, annotator_test
from wisecrowd.truth.intervals import wilson_interval
from wisecrowd.truth.judge_bias import Columns, class_shares, leniency, side_rows
from wisecrowd.truth.judge_dependence import effective_number, error_correlation
from wisecrowd.truth.judge_results import JudgeResults, Verdict
from wisecrowd.truth.judge_roles import Roles, clusters_of, roles_of
from wisecrowd.truth.paired import mean_interval, paired_difference
from wisecrowd.truth.person_power import SIZES, PersonPower

SHOWN_SIZES = (50, 100, 200)
QUANTILE = 1.959963984540054


class _Study(NamedTuple):
    """What all parts share: answers, the judges' dense answers, people, truth and clusters."""

    answers: JudgedAnswers
    names: NDArray[Any]
    roles: Roles
    judged: list[Floats]
    panel: Panel
    known: Floats | None
    weight: Floats
    cluster: Longs | None
    epsilon: float

    @property
    def truth(self) -> Floats:
        """(n_questions,) what errors are counted against: known answers, else those of people."""
        return majority(self.panel) if self.known is None else self.known

    def errors(self) -> Floats:
        """Return the errors (n_questions, n_judges): whether, or by how much; NaN if unknown."""
        truth = self.truth
        columns = []
        for judged in self.judged:
            off = judged - truth
            wrong = off if self.answers.distance else (off != 0).astype(np.float64)
            columns.append(np.where(np.isnan(off), np.nan, wrong))
        return np.stack(columns, axis=1)


def judges(
    labels: Any,
    *,
    judges: Any = None,
    people: Any = None,
    known: Any = None,
    epsilon: float = 0.1,
    cluster: Any = None,
    swap: Any = None,
) -> JudgeResults:
    """Compare judges, such as language models, with people.

    The alternative annotator test leaves out each person with 30 tasks or more, and asks whether
    the judge is as close to the other people as this person, up to epsilon. A judge passes if it
    beats half of the people, with false discoveries controlled by Benjamini and Yekutieli. A judge
    that does not pass is undecided if a person would not pass either in 80% of the cases.

    Beside the test stand the agreement of judge and people with the same other people, how lenient
    judges are, which classes and sides they favour, and how far they err together. The errors of
    judges are counted against the known answers, or else against what most people say.

    Parameters
    ----------
    labels : CrowdLabels, CrowdNumbers, CrowdPairs or data of any accepted form
        The answers of judges and people.
    judges, people : ids of workers, optional
        By default models and humans, if the labels have a column ``worker_kind``; named judges are
        compared with all other humans.
    known : mapping from task to answer, frame or (n_tasks,) array, optional
        Known answers. A frame may have a column ``weight``, as check lists do.
    epsilon : float
        Advantage of a judge for being cheaper than a person: 0.2 if people are experts, 0.15 if
        they are trained, 0.1 for a crowd.
    cluster : mapping from task, (n_tasks,) array, or name of a task column, optional
        What tasks have in common, such as their text. Tests and intervals allow for tasks of one
        cluster that depend on each other.
    swap : mapping from judge to worker, optional
        The other worker is the same judge, who saw the two sides exchanged. Pairs need it only
        if both orders have different workers.

    Returns
    -------
    JudgeResults

    References
    ----------
    N. Calderon, R. Reichart, R. Dror (2025). The alternative annotator test for LLM-as-a-judge: how
    to statistically justify replacing human annotators with LLMs. ACL.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(300, 6 * simulate.OneCoinWorkers(6, 2), simulate.PerTask(6))
    >>> found = judges(crowd.labels, judges=crowd.labels.workers[:1].tolist(), epsilon=0.2)
    >>> found.columns["judge"].tolist() == crowd.labels.workers[:1].tolist()
    True
    """
    check_number("epsilon", epsilon, 0.0, 1.0)
    data = labels if isinstance(labels, Annotations) else as_crowd_labels(labels)
    study = _study(data, judges, people, known, float(epsilon), cluster, swap)
    tests, note = _tests(study)
    power = None
    if tests is not None and any(len(test.person) for test in tests):
        power = PersonPower.of(study.answers, study.roles.people, study.epsilon, study.cluster)
    main, verdicts = _main(study, tests, power, note)
    tables = {
        "judges": main,
        "judge_people": _people(study, tests),
        "judge_pairs": _pairs(study),
        "judge_classes": _classes(study),
        "judge_sides": _sides(study),
        "judge_power": _power(power),
        "judge_effective": _effective(study),
    }
    return JudgeResults(
        tables, verdicts, study.epsilon, int(study.roles.people.sum()), study.answers.distance,
        known is not None, study.cluster is not None, tuple(_notes(study)),
        data.frame_library,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------- input


def _study(
    data: Annotations, judges: Any, people: Any, known: Any, epsilon: float, cluster: Any, swap: Any
) -> _Study:
    kind = kind_of(data)
    part = kind.part("judged")
    if part is None:
        others = [one.name for one in all_kinds().values() if one.has_part("judged")]
        raise ParameterError(
            f"Judges are compared on {', '.join(others)}, and the labels are {kind.name}; compare "
            "results with a truth instead."
        )
    roles = roles_of(data, judges, people, swap)
    answers: JudgedAnswers = part.judged_answers(data, roles.swaps)
    of_tasks = clusters_of(data, cluster)
    judged = []
    for judge in roles.judges:
        own = answers.worker == judge
        one = np.full(answers.n_questions, np.nan)
        one[answers.question[own]] = answers.answer[own]
        judged.append(one)
        if not own.any():
            raise DataError(
                f"The judge {data.workers[judge]!r} has no answers; leave it out of the judges."
            )
    truth = None if known is None else part.known_answers(known, data, answers)
    weight = np.ones(data.n_tasks) if known is None else weights_of_checked(known, data)
    return _Study(
        answers, data.workers, roles, judged,
        Panel.of(answers, roles.people, data.n_workers), truth, weight[answers.task_of],
        None if of_tasks is None else of_tasks[answers.task_of], epsilon,
    )  # fmt: skip


def majority(panel: Panel) -> Floats:
    """Return what most people say (n_questions,): the only most frequent class, or the mean.

    NaN where there is none.
    """
    if panel.distance:
        return panel.mean
    n = len(panel.size)
    question, code = np.divmod(panel.votes, panel.n_codes)
    most = np.zeros(n, dtype=np.int64)
    np.maximum.at(most, question, panel.count)
    first = panel.count == most[question]
    found = np.full(n, np.nan)
    found[question[first]] = code[first]
    found[np.bincount(question[first], minlength=n) > 1] = np.nan
    return found


# ------------------------------------------------------------------------------------------ tables


def _tests(study: _Study) -> tuple[list[AnnotatorTest] | None, str]:
    """Return the test of each judge, or why there is none."""
    n_people = int(study.roles.people.sum())
    if n_people < 2:
        who = "There is one person only" if n_people else "There are no people"
        return None, f"{who}, and the test needs two who answer the same tasks; it was left out."
    tests = [
        annotator_test(study.panel, judged, study.epsilon, study.cluster) for judged in study.judged
    ]
    if not any(len(test.person) for test in tests):
        note = (
            f"Nobody has {FEWEST_QUESTIONS} tasks with another person and a judge, so that there "
            "is no test; let people answer more of the same tasks."
        )
        return tests, note
    return tests, ""


def _main(
    study: _Study, tests: list[AnnotatorTest] | None, power: PersonPower | None, note: str
) -> tuple[Columns, list[Verdict]]:
    """Return the table of judges, and what is said of each."""
    n_people, asked = int(study.roles.people.sum()), study.panel.size > 0
    if study.known is not None:
        asked = asked | ~np.isnan(study.known)
    rows: list[dict[str, Any]] = []
    verdicts = []
    reference = _mean_of_people(study)
    for n, judged in enumerate(study.judged):
        test = None if tests is None or not len(tests[n].person) else tests[n]
        own = np.nan
        if test is not None and power is not None:
            own = power.at(min(test.n_questions, SIZES[-1]))
        lenient = leniency(judged, reference, study.cluster) if study.answers.distance else None
        answered = float((~np.isnan(judged))[asked].mean()) if asked.any() else np.nan
        verdict = Verdict.of(
            str(study.names[study.roles.judges[n]]), test, own, power, study.epsilon, n_people,
            study.answers.distance, note,
        )  # fmt: skip
        verdicts.append(verdict)
        rows.append({
            "judge": study.names[study.roles.judges[n]],
            "passes": None if test is None else test.passes,
            "omega": np.nan if test is None else test.omega,
            "rho": np.nan if test is None else test.mean_rho,
            "score": np.nan if test is None else test.score,
            "ceiling": np.nan if test is None else test.ceiling,
            "leniency": lenient.value if lenient else np.nan,
            "low": lenient.low if lenient else np.nan,
            "high": lenient.high if lenient else np.nan,
            "power": own,
            "epsilon": study.epsilon,
            "n_tasks": 0 if test is None else test.n_questions,
            "answered": answered,
            **_on_known(study, judged),
            "verdict": verdict.text,
        })  # fmt: skip
    return {name: _column([row[name] for row in rows]) for name in rows[0]}, verdicts


def _mean_of_people(study: _Study) -> Floats:
    """Return the mean of people's numbers (n_questions,), NaN where there are none."""
    if not study.answers.distance:
        return np.full(study.answers.n_questions, np.nan)
    return study.panel.mean


def _on_known(study: _Study, judged: Floats) -> dict[str, Any]:
    """Return how a judge does on known answers: share right, or mean absolute error."""
    if study.known is None:
        return {}
    rows = np.flatnonzero(~np.isnan(judged) & ~np.isnan(study.known) & (study.weight > 0))
    if not len(rows):
        return {"n_known": 0, "on_known": np.nan, "known_low": np.nan, "known_high": np.nan}
    off, weight = np.abs(judged - study.known)[rows], study.weight[rows]
    size = float(weight.sum() ** 2 / (weight**2).sum())  # Kish's
    if study.answers.distance:
        scaled = off * weight / weight.mean()
        cluster = None if study.cluster is None else study.cluster[rows]
        value, low, high, _ = mean_interval(scaled, cluster)
        low = max(low, 0.0)
    else:
        value = float(np.average(off == 0, weights=weight))
        ends = wilson_interval(np.array([value]), np.array([size]), QUANTILE)
        low, high = (float(end[0]) for end in ends)
    return {"n_known": len(rows), "on_known": value, "known_low": low, "known_high": high}


def _people(study: _Study, tests: list[AnnotatorTest] | None) -> Columns:
    """Return one row for each judge and person who are compared."""
    tests = tests or []
    who = [np.full(len(test.person), study.roles.judges[n]) for n, test in enumerate(tests)]
    names = study.names
    none = np.zeros(0, dtype=np.int64)

    def joined(parts: list[Any]) -> NDArray[Any]:
        return np.concatenate(parts) if parts else none

    return {
        "judge": names[joined(who)], "person": names[joined([test.person for test in tests])],
        "n": joined([test.n for test in tests]), "rho": joined([test.rho for test in tests]),
        "p": joined([test.p for test in tests]), "beaten": joined([test.beaten for test in tests]),
    }  # fmt: skip


def _pairs(study: _Study) -> Columns:
    """Return for each pair of judges how far they err together and who errs less.

    The difference is that of accuracy, the first minus the second; for numbers that of minus the
    absolute error.
    """
    errors = study.errors()
    rows = []
    for a in range(errors.shape[1]):
        for b in range(a + 1, errors.shape[1]):
            both = np.flatnonzero(~np.isnan(errors[:, a]) & ~np.isnan(errors[:, b]))
            one, other = errors[both, a], errors[both, b]
            cluster = None if study.cluster is None else study.cluster[both]
            if study.answers.distance:
                found = mean_interval(np.abs(other) - np.abs(one), cluster)
            else:
                found = paired_difference(one == 0, other == 0, cluster)
            pair = (study.names[study.roles.judges[k]] for k in (a, b))
            rows.append((*pair, len(both), error_correlation(one, other), *found))
    names = ("first", "second", "n", "phi", "difference", "low", "high", "p")
    return _table(names, rows)


def _classes(study: _Study) -> Columns:
    """Return how often judges give each class, beside how often it is the true one."""
    names = ("judge", "class", "given", "true", "difference", "p")
    truth = study.truth if study.known is not None else _graded(study)
    if study.answers.classes is None:
        return _table(names, [])
    rows: list[tuple[Any, ...]] = []
    for judge, judged in zip(study.roles.judges, study.judged, strict=True):
        found = class_shares(judged, truth, study.answers.classes, study.cluster)
        rows += [
            (study.names[judge], *row)
            for row in zip(*(column.tolist() for column in found.values()), strict=True)
        ]
    return _table(names, rows)


def _graded(study: _Study) -> Floats:
    """Return the most frequent class of people, also of ordered classes."""
    if not study.answers.distance:
        return majority(study.panel)
    from dataclasses import replace

    answers = replace(study.answers, distance=False)
    people = study.roles.people
    return majority(Panel.of(answers, people, len(people)))


def _sides(study: _Study) -> Columns:
    """Return what becomes of judges' answers if the sides are exchanged."""
    names = ("judge", "n", "consistent", "flips", "first", "low", "high", "p")
    if study.answers.sides is None:
        return _table(names, [])
    found = side_rows(study.answers.sides, study.roles.judges)
    return found | {"judge": study.names[found["judge"].astype(np.int64)]}


def _power(power: PersonPower | None) -> Columns:
    """Return how often a person would pass with some numbers of tasks."""
    rows = [] if power is None or not power.judges else [(n, power.at(n)) for n in SHOWN_SIZES]
    return _table(("n_tasks", "power"), rows)


def _effective(study: _Study) -> Columns:
    """Return how many independent judges all judges are worth."""
    names = ("n_judges", "effective", "low", "high", "n_tasks")
    if len(study.judged) < 2:
        return _table(names, [])
    found = effective_number(study.errors(), study.cluster)
    return _table(names, [(len(study.judged), *found)])


def _notes(study: _Study) -> list[str]:
    """Return what a reader must know about the input."""
    notes = []
    if study.known is None and int((study.panel.size > 0).sum()):
        what = "the mean of people" if study.answers.distance else "what most people say"
        notes.append(f"errors of judges are counted against {what}, for lack of known answers")
    if not study.answers.distance and len(np.unique(study.answers.answer)) == 1:
        notes.append("all answers are equal, so that nobody can be told from anybody")
    partial = [
        study.names[judge]
        for judge, judged in zip(study.roles.judges, study.judged, strict=True)
        if np.isnan(judged[study.panel.size > 0]).any()
    ]
    if partial:
        notes.append(
            f"{describe_ids(np.array(partial, dtype=object))} did not answer all tasks of people; "
            "these tasks are left out for them"
        )
    return notes


def _table(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Columns:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return {name: _column(list(values)) for name, values in zip(names, columns, strict=True)}


def _column(values: list[Any]) -> NDArray[Any]:
    """Return a column: numbers where all are numbers, and otherwise objects."""
    if values and all(isinstance(x, int | float | np.number) for x in values) and not any(
        isinstance(x, bool | np.bool_) for x in values
    ):  # fmt: skip
        return np.array(values)
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
