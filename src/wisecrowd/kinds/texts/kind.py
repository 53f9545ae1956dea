"""The row of texts in the table of kinds."""

from __future__ import annotations

from wisecrowd.core.kinds import Kind, Words
from wisecrowd.kinds.texts.answers import TextAnswers
from wisecrowd.kinds.texts.container import CrowdTexts

# All that a file of results may have; with other columns it is of another kind.
RESULT_COLUMNS = frozenset({"task", "text", "confidence", "n_words", "n_labels"})

KIND = Kind(
    name="texts",
    package="wisecrowd.kinds.texts",
    also_called=(
        "text",
        "transcripts",
        "transcriptions",
        "transcription",
        "translations",
        "strings",
    ),
    container=CrowdTexts,
    answers=TextAnswers,
    default_method="rover",
    recognises=lambda columns: {"task", "text"} <= columns <= RESULT_COLUMNS,
    truth_column="text",
    empty_truth=True,
    words=Words("texts", "texts", output="texts.csv"),
)
