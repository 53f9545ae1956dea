"""Options that write votes as rows for trainers of language models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.storage.manifest import Manifest


@dataclass(frozen=True, kw_only=True)
class PreferenceExport:
    """Options for preferences: the output, and the texts of items and tasks."""

    preferences: Annotated[
        str | None,
        typer.Option(
            "--preferences-to", metavar="FILE",
            help="Output for preference trainers, of pairs: .jsonl or .parquet.",
        ),
    ] = None  # fmt: skip
    items: Annotated[
        str | None,
        typer.Option(
            "--items", metavar="FILE",
            help="Texts of items for --preferences-to: item, text (and task, if it matters).",
        ),
    ] = None  # fmt: skip
    prompts: Annotated[
        str | None,
        typer.Option(
            "--prompts",
            metavar="FILE",
            help="Prompts of tasks for --preferences-to: task, prompt.",
        ),
    ] = None

    def places(self) -> list[str]:
        """Return the output, if there is one."""
        return [] if self.preferences is None else [self.preferences]

    def sources(self) -> list[str]:
        """Return the files of texts."""
        return [path for path in (self.items, self.prompts) if path is not None]

    def check(self, kind: str | None = None) -> None:
        """Refuse texts without an output, a wrong suffix, and other kinds than pairs."""
        from wisecrowd.core.exceptions import ParameterError
        from wisecrowd.io.preference_rows import check_preferences_path

        if self.preferences is None:
            if self.sources():
                raise ParameterError(
                    "--items and --prompts are texts for --preferences-to; give it."
                )
            return
        check_preferences_path(self.preferences)
        if kind not in (None, "pairs"):
            raise ParameterError(f"--preferences-to is for pairs, and the labels are {kind}.")

    def write(self, fit: Any, votes: Any, manifest: Manifest, notes: Notes) -> None:
        """Write the rows and their manifest, if they are asked for."""
        from wisecrowd.cli.replacing import note_written
        from wisecrowd.io.preference_rows import write_preferences
        from wisecrowd.storage.manifest import write_manifest

        if self.preferences is None:
            return
        known = fit if "reliability_" in vars(fit) else None
        if self.items is None:
            notes("--preferences-to has the ids of items as texts; --items FILE gives their texts")
        count = write_preferences(
            self.preferences, votes, known, items=self.items, prompts=self.prompts
        )
        write_manifest(self.preferences, manifest)
        sentence = f"wrote {count} preferences to {self.preferences}"
        note_written(notes, self.preferences, sentence)
