"""CrowdTexts: texts by workers, such as transcriptions, frozen and sorted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations, Floats, Payload


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
        from wisecrowd.core.text_columns import texts_from_columns

        given = {"text": values[0]} if values else {}
        return texts_from_columns(cls, task, worker, **given, **options)

    @property
    def weights(self) -> Floats:
        """(n_annotations,) weight of each text, 1 if none is given."""
        return np.ones(self.n_annotations) if self.weight is None else self.weight
