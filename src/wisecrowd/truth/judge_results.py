"""What is said of judges: verdicts, tables and findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import as_frame, frame_library
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_choice
from wisecrowd.truth.annotator_test import AnnotatorTest
from wisecrowd.truth.person_power import ENOUGH_POWER, SIZES, PersonPower

YES, NO, UNDECIDED, UNTESTED = "may", "may not", "undecided", "untested"
SIGNIFICANT = 0.05
MUCH_BIAS = 0.05  # difference in the share of a class that is worth a finding
MUCH_DEPENDENCE = 0.5  # effective number, as a share of the number of judges


class Verdict(NamedTuple):
    """One sentence about a judge, and what it comes to."""

    outcome: str
    text: str

    @classmethod
    def of(
        cls, judge: str, test: AnnotatorTest | None, power: float, person: PersonPower | None,
        epsilon: float, n_people: int, distance: bool, note: str,
    ) -> Verdict:  # fmt: skip
        """Return what the test comes to.

        Parameters
        ----------
        judge : str
        test : AnnotatorTest or None
            None if nobody can be compared.
        power : float
            How often a person would pass with as many tasks.
        person : PersonPower or None
            Where to look for a number of tasks that suffices.
        epsilon : float
        n_people : int
        distance : bool
            Whether scores are distances.
        note : str
            Why there is no test.
        """
        if test is None:
            why = note or "Nobody has 30 tasks with another person and this judge."
            return cls(UNTESTED, f"{judge} was not tested: {why[0].lower()}{why[1:]}")
        fragile = "; there are two people only, so that this is fragile" if n_people == 2 else ""
        if not test.passes and np.isnan(power):
            return cls(
                UNDECIDED,
                f"{judge} is undecided at epsilon {epsilon:g}: it beats {int(test.beaten.sum())} "
                f"of {len(test.person)} people, and too few tasks have three people to tell how "
                f"often a person would pass; let three people label the same 100 tasks{fragile}.",
            )
        if not test.passes and power < ENOUGH_POWER:
            enough = None if person is None else person.needed(test.n_questions)
            more = (
                f"label {enough:,}" if enough is not None
                else f"not even {SIZES[-1]:,} are enough, because people differ too much"
            )  # fmt: skip
            return cls(
                UNDECIDED,
                f"{judge} is undecided at epsilon {epsilon:g}: with {test.n_questions:,} tasks a "
                f"person would pass only in {power:.0%} of the cases; {more}{fragile}.",
            )
        if distance:
            what = f"is {-test.score:.3g} away from the others (people {-test.ceiling:.3g})"
        else:
            what = f"agrees with the others in {test.score:.0%} (people {test.ceiling:.0%})"
        may = YES if test.passes else NO
        return cls(
            may,
            f"{judge} {may} replace one of {n_people} people at epsilon {epsilon:g}: it {what}, "
            f"and beats {int(test.beaten.sum())} of {len(test.person)}{fragile}.",
        )


@dataclass(frozen=True, eq=False)
class JudgeResults:
    """What judges are like beside people.

    Attributes
    ----------
    tables : mapping of name to columns
        ``judges``: ``judge``; whether it ``passes`` (None without a test); ``omega``, the share of
        people beaten; ``rho``, the mean share of tasks where it is at least as close to the others
        as a person; ``score`` and ``ceiling``, the mean scores of the judge and of people against
        the same others; ``leniency``, judge minus people, with its interval ``low`` to ``high``,
        of numbers and ordered classes; ``power``, how often a person would pass; ``epsilon``;
        ``n_tasks``, those in the test; ``answered``, the share of tasks with an answer; with known
        answers ``n_known`` and ``on_known``, the share right or the mean absolute error, from
        ``known_low`` to ``known_high``; ``verdict``.
        ``judge_people``: ``judge``, ``person``, ``n`` tasks, ``rho``, ``p``, ``beaten``.
        ``judge_pairs``: ``first``, ``second``, ``n`` tasks, ``phi``, the correlation of their
        errors, and the ``difference`` of accuracy with its interval ``low`` to ``high`` and ``p``.
        ``judge_classes``: ``judge``, ``class``, shares ``given`` and ``true``, ``difference``,
        ``p``.
        ``judge_sides``: ``judge``, ``n`` tasks in both orders, ``consistent`` share, ``flips``,
        their share to the ``first`` side with its interval ``low`` to ``high``, and ``p``.
        ``judge_power``: ``n_tasks``, ``power`` of a person.
        ``judge_effective``: ``n_judges`` are worth ``effective`` independent ones, ``low`` to
        ``high``.
    verdicts : list of Verdict
        One sentence for each judge.
    epsilon : float
    n_people : int
    distance : bool
        Whether answers are compared by distance.
    against_known : bool
        Whether errors are counted against known answers.
    clustered : bool
    notes : tuple of str
    """

    tables: dict[str, dict[str, NDArray[Any]]]
    verdicts: list[Verdict]
    epsilon: float
    n_people: int
    distance: bool
    against_known: bool
    clustered: bool
    notes: tuple[str, ...] = ()
    _library: str | None = None

    def __repr__(self) -> str:
        return f"JudgeResults of {len(self.verdicts)} judges and {self.n_people} people"

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns of the table of judges."""
        return self.tables["judges"]

    def table(self, name: str = "judges", library: str | None = None) -> Any:
        """Return a table as a frame; ``library`` is described in ``worker_table``."""
        check_choice("name", name, tuple(self.tables))
        if not len(next(iter(self.tables[name].values()))):
            raise ParameterError(f"The table {name} is empty for these judges; use another one.")
        return as_frame(self.tables[name], frame_library(library, self._library))

    def findings(self) -> list[Finding]:
        """Return what speaks against judges, most severe first."""
        return [*self._failing(), *self._one_sided(), *self._open(), *self._favourites(),
                *self._lenient(), *self._dependent()]  # fmt: skip

    def _failing(self) -> list[Finding]:
        names, omega = self.columns["judge"], self.columns["omega"]
        failing = [n for n, verdict in enumerate(self.verdicts) if verdict.outcome == NO]
        if not failing:
            return []
        text = (
            f"{describe_ids(names[failing])} may not replace a person at epsilon {self.epsilon:g}."
        )
        return [Finding(
            "judge-may-not-replace", "medium", float(1 - omega[failing].min()),
            tuple(names[failing].tolist()), text,
            "Let people label, or use a judge that passes.",
        )]  # fmt: skip

    def _open(self) -> list[Finding]:
        unknown = [
            n for n, verdict in enumerate(self.verdicts) if verdict.outcome in (UNDECIDED, UNTESTED)
        ]
        if not unknown:
            return []
        names = self.columns["judge"][unknown]
        share = len(unknown) / len(self.verdicts)
        text = f"Too few tasks say whether {describe_ids(names)} may replace a person."
        return [Finding(
            "undecided-judge", "low", share, tuple(names.tolist()), text,
            "Let people answer more of the tasks that judges answered.",
        )]  # fmt: skip

    def _one_sided(self) -> list[Finding]:
        sides = self.tables["judge_sides"]
        found = [n for n, p in enumerate(sides["p"]) if p < SIGNIFICANT]
        if not found:
            return []
        worst = max(found, key=lambda n: sides["flips"][n] / sides["n"][n])
        share = float(sides["flips"][worst] / sides["n"][worst])
        taken = float(sides["first"][worst])
        side, part = ("first", taken) if taken >= 0.5 else ("second", 1 - taken)
        text = (
            f"{_who(sides['judge'][found], 'choose')} by the side: {sides['judge'][worst]} "
            f"changes {share:.0%} of its answers when the sides are exchanged, and takes the "
            f"{side} side in {part:.0%} of these."
        )
        return [Finding(
            "one-sided-judge", "medium", share, tuple(sides["judge"][found].tolist()), text,
            "Ask in both orders, and count a change as a tie.",
        )]  # fmt: skip

    def _favourites(self) -> list[Finding]:
        table = self.tables["judge_classes"]
        rows = [
            n for n, (p, off) in enumerate(zip(table["p"], table["difference"], strict=True))
            if p < SIGNIFICANT and abs(off) >= MUCH_BIAS
        ]  # fmt: skip
        if not rows:
            return []
        off_of = table["difference"].tolist()
        # Of two classes one is given too often, which is said.
        worst = max(rows, key=lambda n: (round(abs(float(off_of[n])), 9), float(off_of[n])))
        off = float(table["difference"][worst])
        who = list(dict.fromkeys(table["judge"][rows].tolist()))
        text = (
            f"{_who(who, 'favour')} a class: {table['judge'][worst]} "
            f"gives {table['class'][worst]} {abs(off) * 100:.0f} points too "
            f"{'often' if off > 0 else 'rarely'}."
        )
        return [Finding(
            "favoured-class", "low", abs(off), tuple(who), text,
            "Define the classes in the prompt, or correct the shares by known answers.",
        )]  # fmt: skip

    def _lenient(self) -> list[Finding]:
        columns = self.columns
        apart = (columns["low"] > 0) | (columns["high"] < 0)
        rows = np.flatnonzero(apart)
        if not len(rows):
            return []
        worst = int(rows[np.argmax(np.abs(columns["leniency"][rows]))])
        off = float(columns["leniency"][worst])
        text = (
            f"{_who(columns['judge'][rows], 'grade')} otherwise than people: "
            f"{columns['judge'][worst]} is {abs(off):.3g} "
            f"{'above' if off > 0 else 'below'} their mean."
        )
        return [Finding(
            "lenient-judge", "low", abs(off), tuple(columns["judge"][rows].tolist()), text,
            "Subtract the difference, or calibrate the judge on known answers.",
        )]  # fmt: skip

    def _dependent(self) -> list[Finding]:
        table = self.tables["judge_effective"]
        if not len(table["effective"]):
            return []
        number, effective = int(table["n_judges"][0]), float(table["effective"][0])
        if not effective < MUCH_DEPENDENCE * number:
            return []
        text = f"{number} judges count as {effective:.1f}, because they err together."
        return [Finding(
            "dependent-judges", "info", effective, (), text,
            "Do not read their agreement as evidence; check tasks by a person.",
        )]  # fmt: skip


def _who(ids: Any, verb: str) -> str:
    """Return ids with a verb that agrees with their number."""
    named = np.empty(len(ids), dtype=object)
    named[:] = list(ids)
    return f"{describe_ids(named)} {verb}{'s' if len(ids) == 1 else ''}"
