"""Answers of classes: one class per task, and the probability of every class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.answers import Answers, Columns, Learned, capped_rows
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.result import Fit, choose_labels, confidence_of, dense_rows
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Codes
from wisecrowd.kinds.classes.truth import as_truth
from wisecrowd.kinds.classes.worker_errors import accuracy_and_error, worker_evidence


def agreement_columns(learned: Learned) -> Columns:
    """Return how far workers agree with the result, and the standard error under the model.

    This is ``worker_accuracy_``. It is the accuracy of a worker only as far as the results are
    right. In published crowds that of methods without doubt was 7 to 9 points too high, for workers
    with 100 labels or more; that of ``auto`` was right on average, but not in every crowd. Known
    answers correct it.
    """
    return {
        "agreement_with_result": learned["worker_accuracy_"],
        "standard_error": learned["worker_accuracy_error_"],
    }


if TYPE_CHECKING:
    from wisecrowd.kinds.classes.families.label_law import LabelLaw


@dataclass(frozen=True, eq=False)
class ClassAnswers(Answers):
    """One class per task, and the probability of every class.

    Attributes
    ----------
    probas : (n_tasks, n_classes) array or sparse
        Posterior of each task. With very many classes it is sparse: the rest of the probability of
        a row is spread over the classes that the task did not receive.
    """

    probas: Any

    shown: ClassVar[tuple[str, ...]] = ("label", "confidence")
    saves: ClassVar[Mapping[str, Saved]] = {
        "labels_": SavedArray("N", "label"),
        "probas_": SavedArray("N K", "distribution"),
        "confidence_": SavedArray("N", "probability"),
        "ties_": SavedArray("N", "flag"),
        "worker_accuracy_": SavedArray("J", "probability"),
        "worker_accuracy_error_": SavedArray("J", "amount"),
        "class_prior_": SavedArray("K", "distribution", optional=True),
        "confusion_": SavedArray("J K K", "distribution", optional=True),
    }

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return answers unchanged; wrap a posterior that a method returns alone."""
        return given if isinstance(given, cls) else cls(given)

    @classmethod
    def codes(cls, learned: Learned, data: Any) -> Codes:
        """Return the codes (n_tasks,) of the labels of a fit to these data."""
        return choose_labels(learned["probas_"], data.class_totals)[0]

    @classmethod
    def of_fit(cls, learned: Learned, rows: NDArray[np.integer[Any]]) -> Self:
        """Return the posterior of some tasks of the fit."""
        return cls(learned["probas_"][rows])

    def capped(self, most: float) -> Self:
        """Return the posterior without a probability above ``most``."""
        return replace(self, probas=capped_rows(self.probas, most))

    def attributes(self, known: Learned) -> dict[str, Any]:
        """Return labels, posterior, confidence and ties."""
        codes, ties = choose_labels(self.probas, known["class_totals_"])
        return {
            "labels_": known["classes_"][codes],
            "probas_": self.probas,
            "confidence_": confidence_of(self.probas, codes),
            "ties_": ties,
        }

    def judged(self, fit: Fit, data: Any) -> Fit:
        """Return the fit with the standard errors of the worker accuracies."""
        if fit.worker_accuracy is None:
            return fit
        evidence = fit.worker_evidence or worker_evidence(data, self.probas)
        accuracy, error = accuracy_and_error(fit.worker_accuracy, evidence)
        if fit.worker_accuracy_shift is not None:
            error = np.hypot(error, fit.worker_accuracy_shift)
        return replace(fit, worker_accuracy=accuracy, worker_accuracy_error=error)

    def score(self, truth: Any, data: Any, known: Learned) -> float:
        """Return the accuracy on the tasks whose class is known."""
        codes = as_truth(truth, data)
        chosen, _ = choose_labels(self.probas, known["class_totals_"])
        return float(np.mean(chosen[codes >= 0] == codes[codes >= 0]))

    @classmethod
    def task_columns(cls, learned: Learned) -> Columns:
        """Return label, confidence and tie; a learner has no ties."""
        columns = {"label": learned["labels_"], "confidence": learned["confidence_"]}
        return columns | ({"tie": learned["ties_"]} if "ties_" in learned else {})

    @classmethod
    def worker_columns(cls, learned: Learned) -> Columns:
        """Return the agreement with the result and its standard error."""
        return agreement_columns(learned)

    @classmethod
    def soft_columns(cls, learned: Learned) -> Columns:
        """Return the probability of every class, as ``p_CLASS``."""
        classes, probas = learned["classes_"].tolist(), learned["probas_"]
        require_memory(
            8 * probas.shape[0] * len(classes), "The probabilities of all classes would",
            for_reader("use probas_", "leave out --soft"),
        )  # fmt: skip
        table = dense_rows(probas)
        return {f"p_{name}": table[:, k] for k, name in enumerate(classes)}

    @classmethod
    def label_law(cls, learned: Learned) -> LabelLaw | None:
        """Return the law of a prior of the classes with confusion matrices or accuracies."""
        from wisecrowd.kinds.classes.families.label_law import law_from_attributes

        return law_from_attributes(learned)

    @classmethod
    def counts(cls, learned: Learned) -> dict[str, int]:
        """Return the number of ties."""
        return {"ties": int(learned["ties_"].sum())}

    @classmethod
    def fault(cls, learned: Learned) -> str:
        """Describe the error if a label is not among the classes, or return ""."""
        known = set(learned["classes_"].tolist())
        if known.issuperset(learned["labels_"].tolist()):
            return ""
        return "labels_ holds something else than classes_"
