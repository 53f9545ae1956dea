"""Options that write a result for other programs: soft labels and Label Studio predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli.options import Reading

if TYPE_CHECKING:
    from wisecrowd.cli.replacing import OwnEntry
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.storage.manifest import Manifest

_TASKS = (
    "Label Studio's Import makes new tasks of it; for those in the project use --existing-tasks"
)
_ROWS = "rows for Label Studio's POST /api/projects/ID/import/predictions"
SoftLabelsTo = Annotated[
    str | None,
    typer.Option(
        "--soft-labels-to",
        metavar="FILE",
        help="Output for all probabilities: .npy, .parquet, .jsonl, or a folder (Hugging Face).",
    ),
]
PredictionsTo = Annotated[
    str | None,
    typer.Option(
        "--predictions-to",
        metavar="FILE",
        help="Output .json file with predictions for Label Studio.",
    ),
]
FromName = Annotated[
    str | None,
    typer.Option("--from-name", metavar="NAME", help="Control name (default: as in the export)."),
]
ToName = Annotated[
    str | None,
    typer.Option("--to-name", metavar="NAME", help="Labelled object (default: as in the export)."),
]
ExistingTasks = Annotated[
    bool,
    typer.Option(
        "--existing-tasks",
        help="Write --predictions-to as rows for the API, for existing tasks of the project.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Exports:
    """Options for exports to other programs."""

    soft_labels: SoftLabelsTo = None
    predictions: PredictionsTo = None
    from_name: FromName = None
    to_name: ToName = None
    existing_tasks: ExistingTasks = False

    def check(self, sources: list[str], reading: Reading) -> None:
        """Refuse, before any computation, predictions that Label Studio would refuse."""
        if self.predictions is not None:
            from wisecrowd.io.platforms.label_studio_predictions import require_name

            require_name(sources, self.to_name, reading.format, reading.encoding)

    def check_kind(self, kind: str, method: str) -> None:
        """Refuse predictions of answers that Label Studio cannot show."""
        from wisecrowd.core.exceptions import ParameterError
        from wisecrowd.io.platforms.label_studio_results import KINDS

        if self.predictions is not None and kind not in KINDS:
            raise ParameterError(
                f"--predictions-to is for {', '.join(KINDS)}, and {method} takes {kind}; leave it "
                "out."
            )

    def places(self) -> list[str]:
        """Return all files that will be written, except manifests; refuse wrong names."""
        from wisecrowd.core.exceptions import ParameterError

        if self.predictions is None and (self.from_name or self.to_name or self.existing_tasks):
            raise ParameterError(
                "--from-name, --to-name and --existing-tasks belong to --predictions-to; give a "
                "file."
            )
        if self.predictions is not None and not self.predictions.endswith(".json"):
            raise ParameterError(
                f"Predictions are JSON; let the name {self.predictions} end in .json."
            )
        found = [] if self.predictions is None else [self.predictions]
        if self.soft_labels is not None:
            from wisecrowd.io.soft_labels import check_soft_path, ids_path, require_hugging_face

            kind = check_soft_path(self.soft_labels)
            found += [self.soft_labels]
            found += [str(ids_path(self.soft_labels))] if kind == "npy" else []
            if kind == "folder":
                require_hugging_face()
        return found

    def own(self) -> dict[str, OwnEntry]:
        """Return how to recognise a folder of soft labels as ours."""
        if self.soft_labels is None:
            return {}
        from wisecrowd.io.soft_labels import is_data_set

        return {self.soft_labels: is_data_set}

    def write(
        self,
        fit: Any,
        manifest: Manifest,
        notes: Notes,
        sources: list[str] | None = None,
        reading: Reading | None = None,
    ) -> None:
        """Write the requested files, each with its manifest."""
        from wisecrowd.cli.replacing import note_written
        from wisecrowd.io.platforms.label_studio_predictions import write_predictions
        from wisecrowd.io.soft_labels import write_soft_labels
        from wisecrowd.storage.manifest import write_manifest

        if self.soft_labels is not None:
            written = write_soft_labels(fit, self.soft_labels)
            for path in written:
                write_manifest(path, manifest)
            note_written(notes, self.soft_labels, f"wrote {', '.join(map(str, written))}")
        if self.predictions is not None:
            how = reading or Reading()
            write_predictions(
                fit, self.predictions, sources, task=how.task, label=how.label, format=how.format,
                encoding=how.encoding, from_name=self.from_name, to_name=self.to_name,
                existing_tasks=self.existing_tasks,
            )  # fmt: skip
            write_manifest(self.predictions, manifest)
            use = _ROWS if self.existing_tasks else _TASKS
            note_written(notes, self.predictions, f"wrote {self.predictions}: {use}")
