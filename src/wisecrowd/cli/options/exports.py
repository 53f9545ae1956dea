"""Options that write a result for other programs: labels, preferences and boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from wisecrowd.cli.options.group import Group, option, present_paths
from wisecrowd.core.exceptions import ParameterError


def can_write(export: str, kind: str | None) -> bool:
    """Return whether results of a kind can be written as this; so far, if no kind is known."""
    from wisecrowd.core.kinds import get_kind

    return kind is None or export in get_kind(kind).exports


@dataclass(frozen=True, kw_only=True)
class Exports(Group):
    """Options for exports to other programs."""

    panel: ClassVar[str] = "Other programs"

    soft_labels: Annotated[
        str | None,
        option(
            "--soft-labels-to FILE",
            "Output for all probabilities: .npy, .parquet, .jsonl, or a folder (Hugging Face).",
        ),
    ] = None
    predictions: Annotated[
        str | None,
        option("--predictions-to FILE", "Output .json file with predictions for Label Studio."),
    ] = None
    from_name: Annotated[
        str | None, option("--from-name NAME", "Control name (default: as in the export).")
    ] = None
    to_name: Annotated[
        str | None, option("--to-name NAME", "Labelled object (default: as in the export).")
    ] = None
    existing_tasks: Annotated[
        bool,
        option(
            "--existing-tasks",
            "Write --predictions-to as rows for the API, for existing tasks of the project.",
        ),
    ] = False

    def check(self, kind: str | None = None) -> None:
        """Refuse names without predictions, and a wrong suffix."""
        if self.predictions is None and (self.from_name or self.to_name or self.existing_tasks):
            raise ParameterError(
                "--from-name, --to-name and --existing-tasks belong to --predictions-to; give a "
                "file."
            )
        if self.predictions is not None and not self.predictions.endswith(".json"):
            raise ParameterError(
                f"Predictions are JSON; let the name {self.predictions} end in .json."
            )

    def places(self) -> list[str]:
        """Return the outputs."""
        return present_paths(self.predictions, self.soft_labels)


@dataclass(frozen=True, kw_only=True)
class PreferenceExport(Group):
    """Options for preferences: the output, and the texts of items and tasks."""

    panel: ClassVar[str] = "Other programs"

    preferences: Annotated[
        str | None,
        option(
            "--preferences-to FILE", "Output for preference trainers, of pairs: .jsonl or .parquet."
        ),
    ] = None
    items: Annotated[
        str | None,
        option(
            "--items FILE",
            "Texts of items for --preferences-to: item, text (and task, if it matters).",
        ),
    ] = None
    prompts: Annotated[
        str | None, option("--prompts FILE", "Prompts of tasks for --preferences-to: task, prompt.")
    ] = None

    def check(self, kind: str | None = None) -> None:
        """Refuse texts without an output, and other kinds than pairs."""
        if self.preferences is None and self.sources():
            raise ParameterError("--items and --prompts are texts for --preferences-to; give it.")
        if self.preferences is not None and not can_write("preferences", kind):
            raise ParameterError(f"--preferences-to is for pairs, and the labels are {kind}.")

    def sources(self) -> list[str]:
        """Return the files of texts."""
        return present_paths(self.items, self.prompts)

    def places(self) -> list[str]:
        """Return the output."""
        return present_paths(self.preferences)


@dataclass(frozen=True, kw_only=True)
class BoxExport(Group):
    """Options for boxes: the assignments of objects to workers, and COCO-style JSON."""

    panel: ClassVar[str] = "Other programs"

    assignments: Annotated[
        str | None,
        option(
            "--assignments-to FILE",
            "Output of who drew which object, missed it, or drew a phantom; of boxes.",
        ),
    ] = None
    coco: Annotated[
        str | None,
        option("--coco-to FILE", "Output .json file with the boxes in the style of COCO."),
    ] = None

    def check(self, kind: str | None = None) -> None:
        """Refuse a wrong suffix, and other kinds than boxes."""
        if self.coco is not None and not self.coco.endswith(".json"):
            raise ParameterError(f"COCO files are JSON; let the name {self.coco} end in .json.")
        if self.places() and not can_write("coco", kind):
            raise ParameterError(
                f"--assignments-to and --coco-to are for boxes, and the labels are {kind}; leave "
                "them out."
            )

    def places(self) -> list[str]:
        """Return the outputs."""
        return present_paths(self.assignments, self.coco)
