"""Options that write boxes for other programs: who drew what, and COCO-style JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.storage.manifest import Manifest


@dataclass(frozen=True, kw_only=True)
class BoxExport:
    """Options for boxes: the assignments of objects to workers, and COCO-style JSON."""

    assignments: Annotated[
        str | None,
        typer.Option(
            "--assignments-to", metavar="FILE",
            help="Output of who drew which object, missed it, or drew a phantom; of boxes.",
        ),
    ] = None  # fmt: skip
    coco: Annotated[
        str | None,
        typer.Option(
            "--coco-to",
            metavar="FILE",
            help="Output .json file with the boxes in the style of COCO.",
        ),
    ] = None

    def places(self) -> list[str]:
        """Return the outputs that are asked for."""
        return [path for path in (self.assignments, self.coco) if path is not None]

    def check(self, kind: str | None = None) -> None:
        """Refuse a wrong suffix, and other kinds than boxes."""
        from wisecrowd.core.exceptions import ParameterError
        from wisecrowd.core.kinds import BOXES

        if self.coco is not None and not self.coco.endswith(".json"):
            raise ParameterError(f"COCO files are JSON; let the name {self.coco} end in .json.")
        if self.places() and kind not in (None, BOXES):
            raise ParameterError(
                f"--assignments-to and --coco-to are for boxes, and the labels are {kind}; leave "
                "them out."
            )

    def write(self, fit: Any, data: Any, manifest: Manifest, notes: Notes) -> None:
        """Write the files that are asked for, each with its manifest."""
        from wisecrowd.cli.outputs import write_result
        from wisecrowd.cli.replacing import note_written
        from wisecrowd.io.coco import write_coco
        from wisecrowd.storage.manifest import write_manifest

        if self.assignments is not None:
            rows = fit.assignment_columns(data)
            write_result(rows, self.assignments, manifest, notes, estimates=False)
        if self.coco is not None:
            count = write_coco(self.coco, fit)
            write_manifest(self.coco, manifest)
            note_written(notes, self.coco, f"wrote {count} boxes to {self.coco}")
