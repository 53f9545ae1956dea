"""CrowdTexts: texts by workers, such as transcriptions; how columns and true texts become them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations, Payload
from wisecrowd.core.arrow import is_missing, refuse_halves, to_numpy
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.gold import known_answers
from wisecrowd.core.ids.encoding import Encoded, lookup
from wisecrowd.core.intake import Intake
from wisecrowd.core.messages.descriptions import Places, describe_value
from wisecrowd.kinds.texts.words import distinct_texts

Texts = TypeVar("Texts", bound="CrowdTexts")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CrowdTexts(Annotations):
    """Texts: a worker writes down what a recording, a picture or a page says.

    :meth:`from_arrays` and :meth:`from_frame` check their arguments; the constructor does not. An
    empty text is an answer: nothing was audible, or nothing is written there. A missing text (None)
    is an error, because it says nothing; files of columns, such as csv, have empty texts only.

    Attributes
    ----------
    text : (n_annotations,) str
        As written; methods decide which words are equal.
    task, worker, tasks, workers, weight, columns, notes
        As in :class:`~wisecrowd.core.annotations.Annotations`.

    Examples
    --------
    >>> CrowdTexts.from_arrays(["r1", "r1"], ["ann", "bob"], ["He wrote to Marian.", ""])
    CrowdTexts(1 tasks, 2 workers, 2 annotations)
    """

    kind: ClassVar[str] = "texts"
    payload: ClassVar[tuple[Payload, ...]] = (
        Payload("text", usual=("text", "transcription", "transcript", "label", "answer",
                               "response", "output")),
    )  # fmt: skip

    text: NDArray[np.object_]

    @classmethod
    def from_arrays(cls, task: Any, worker: Any, *values: Any, **options: Any) -> Self:
        """Build from equally long columns: task, worker and text.

        Parameters
        ----------
        task, worker : (n_annotations,) ids
        *values
            ``text``: the texts, each possibly empty.
        **options
            ``tasks``, ``workers``, ``weight``, ``timestamp``, ``duration``, ``cost``, ``question``,
            ``worker_kind`` and ``duplicates`` are described in :meth:`CrowdLabels.from_arrays`.
        """
        given = {"text": values[0]} if values else {}
        return texts_from_columns(cls, task, worker, **given, **options)

    def annotation_text(self, e: int) -> str:
        """Return one annotation as text, for examples."""
        return str(self.text[e]) or "(empty)"


def texts_from_columns(
    container: type[Texts], task: Any, worker: Any, *, text: Any = None, **shared: Any
) -> Texts:
    """Build texts from columns; see :meth:`CrowdTexts.from_arrays`."""
    rows = Intake.open(container, task, worker, {"text": text}, **shared)
    names, code = distinct_texts(_as_texts(text, rows.places))
    rows.note_lookalikes()
    table = rows.arrange(code, len(names))
    listed = np.empty(len(names), dtype=object)
    listed[:] = names
    return rows.build(container, table, text=listed[table.label])


def _as_texts(column: Any, places: Places) -> NDArray[Any]:
    """Return a column of texts; numbers become text, missing values are an error."""
    if isinstance(column, Encoded):  # an export: its empty labels have the code -1
        values = np.append(column.vocabulary.astype(object), [None])[column.codes]
    else:
        values = np.asarray(to_numpy(column), dtype=object)
    missing = np.array([is_missing(one) for one in values.tolist()], dtype=bool)
    if missing.any():
        raise DataError(
            f"The text is missing in {places.where(missing)}; remove the row, or give an empty "
            "text if there was nothing to write."
        )
    found = np.empty(len(values), dtype=object)
    found[:] = [one if isinstance(one, str) else _number(one, places) for one in values.tolist()]
    refuse_halves(found, "text", places)
    return found


def _number(value: Any, places: Places) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:g}" if isinstance(value, float) else str(value)
    raise DataError(
        f"The {places.column('text')} column holds {describe_value(value)}; give one text per "
        "annotation."
    )


def known_texts(truth: Any, data: CrowdTexts) -> NDArray[np.object_]:
    """Return the true text of every task of the data, None where unknown.

    Parameters
    ----------
    truth : mapping from task to text, (task, text) frame, or (n_tasks,) array with None
    data : CrowdTexts
    """
    ids, values = known_answers(truth, data.tasks, "text", ("text", "label", "truth"))
    known = np.full(data.n_tasks, None, dtype=object)
    place = lookup(ids, data.tasks)
    for code, value in zip(place.tolist(), values, strict=True):
        if code >= 0 and not is_missing(value):
            known[code] = str(value)
    if all(one is None for one in known.tolist()):
        raise DataError("The truth names none of these tasks; compare the ids.")
    return known
