"""Inventory of an export: questions, gold labels, models, and judgements that were left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import option

MODEL = "model"
HUMAN = "human"
_NAMED = 12  # most questions that a message names


class SeveralQuestionsError(DataError):
    """An export holds labels for more than one question, and none was chosen.

    ``forms`` gives the forms of the questions; they are named if they differ.
    """

    def __init__(
        self, source: str, questions: Collection[str], forms: Mapping[str, str] | None = None
    ) -> None:
        self.questions = tuple(questions)
        forms = forms or {}
        first = self.questions[0]
        several = len({forms.get(question) for question in self.questions}) > 1
        super().__init__(
            f"{source} has labels for {len(self.questions)} questions, "
            f"{listed(self.questions, forms if several else {})}; choose one with "
            f"{option('label', first)}."
        )


class NoLabelsError(DataError):
    """A file holds no label of the question, or of the workers, that were asked for."""


@dataclass
class Inventory:
    """Counts and names, over all files that are read together.

    Attributes
    ----------
    formats : list of str
        The platforms recognised or asked for.
    question : str or None
        The question whose labels are read.
    others : Counter
        Judgements about other questions, by question.
    dropped : Counter
        Judgements left out, by reason.
    gold : dict of task to class
        Classes, or numbers as text, that the export marks as true.
    contested : set of str
        Tasks with two different gold classes: they have none.
    not_gold : str
        Why labels that are marked as gold are not read as gold; empty if there are none.
    texts : dict of task to text
        Texts that the spans of an export are about, where it has them.
    models : set of str
        Workers that are models.
    remarks : list of str
        Further sentences for the user.
    assumed_worker : str
        Why all rows are taken for those of one worker, where the files do not say so.
    name_workers : str
        How the files would name their workers.
    blank_cells : int
        Cells of wide tables without a label.
    """

    formats: list[str] = field(default_factory=list)
    question: str | None = None
    others: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    gold: dict[str, str] = field(default_factory=dict)
    contested: set[str] = field(default_factory=set)
    not_gold: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)
    assumed_worker: str = ""
    name_workers: str = ""
    blank_cells: int = 0

    def drop(self, reason: str, count: int = 1) -> None:
        """Count judgements that are left out."""
        if count:
            self.dropped[reason] += count

    def remark(self, sentence: str) -> None:
        """Keep a sentence, once."""
        if sentence not in self.remarks:
            self.remarks.append(sentence)

    def add_gold(self, task: str, label: str) -> None:
        """Keep what the export says is true; two different classes cancel each other."""
        if self.gold.setdefault(task, label) != label:
            self.contested.add(task)

    def settle(self, question: str | None, source: str) -> None:
        """Take over the question that a file was read for; two files must ask the same one."""
        if question is None:
            return
        if self.question is not None and self.question != question:
            raise SeveralQuestionsError(
                f"{source} with the file before it", [self.question, question]
            )
        self.question = question

    @property
    def known(self) -> dict[str, str]:
        """Gold without the tasks that have two."""
        return {task: label for task, label in self.gold.items() if task not in self.contested}

    def sentences(self) -> list[str]:
        """Return what the user should know, one sentence each."""
        if not self.formats:
            return []
        about = f", labels of {self.question!r}" if self.question else ""
        found = [f"read as {' and '.join(self.formats)}{about}", *self.remarks]
        if self.others:
            found.append(
                f"{self.others.total()} judgements about other questions are not read "
                f"({listed(self.others)})"
            )
        if self.dropped:
            found.append(f"left out: {counted(self.dropped)}")
        if self.models:
            found.append(f"models count as workers of kind 'model': {listed(sorted(self.models))}")
        if self.not_gold:
            found.append(self.not_gold)
        if self.known:
            found.append(
                f"{len(self.known)} tasks have gold in the export; give the same file as gold to "
                "use it"
            )
        if self.contested:
            found.append(f"{len(self.contested)} tasks have two gold classes and count as none")
        return found


def listed(names: Iterable[str], forms: Mapping[str, str] | None = None) -> str:
    """Return names in quotes, the first few of them, with the forms of questions if given.

    Examples
    --------
    >>> listed(["a", "b"]), listed(["a", "b"], {"a": "rating"})
    ("'a', 'b'", "'a' (rating), 'b'")
    """
    names, forms = list(names), forms or {}
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    shown = [f"{name!r} ({forms[name]})" if name in forms else repr(name) for name in names]
    return ", ".join(shown[:_NAMED]) + more


def counted(counts: Counter[str]) -> str:
    """Return counts with their reasons, the most frequent first.

    Examples
    --------
    >>> counted(Counter({"skipped": 2, "without a label": 1}))
    '2 skipped, 1 without a label'
    """
    return ", ".join(f"{count} {reason}" for reason, count in counts.most_common())
