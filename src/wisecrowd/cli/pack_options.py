"""Options of fits to packs, and the choice of their engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.core.exceptions import ParameterError

if TYPE_CHECKING:
    from wisecrowd.engines.packs import Pack

ENGINES = ("auto", "memory", "files", "pool", "spark")
BY_SHARDS = ("files", "pool", "spark")
BYTES_PER_LABEL = 90  # of a fit in memory, with the labels
SHARE = 0.5  # of the memory that "auto" uses


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """Options of fits to packs."""

    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="auto|memory|files|pool|spark",
            help="Where a pack is fitted: in memory, one shard at a time, in several processes, or "
            "by Spark; auto: in memory if it fits and -o is not a folder.",
        ),
    ] = "auto"
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes",
            min=1,
            metavar="N",
            help="Processes of --engine pool (default: all cores); does not change results.",
        ),
    ] = None
    scratch: Annotated[
        str | None,
        typer.Option(
            "--scratch", metavar="FOLDER", help="Progress of a fit by shards (default: beside -o)."
        ),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted fit by shards.")
    ] = False

    def by_shards(self, files: list[str], output: str | None) -> bool:
        """Return whether the fit goes by shards, or refuse options that do not go together."""
        from wisecrowd.engines.packs import is_pack

        if self.engine not in ENGINES:
            raise ParameterError(
                f"--engine is {self.engine!r}; choose one of {', '.join(ENGINES)}."
            )
        packed = len(files) == 1 and is_pack(files[0])
        if not packed and self.engine in BY_SHARDS:
            raise ParameterError(
                f"--engine {self.engine} reads a pack; make one with wisecrowd pack "
                f"{files[0]} -o crowd.pack, and give it instead."
            )
        by_shards = packed and self._wants_shards(files[0], output)
        given = {"--processes": self.processes, "--scratch": self.scratch, "--resume": self.resume}
        for name, value in given.items():
            if value and not by_shards:
                raise ParameterError(f"{name} is for fits by shards; add --engine files or pool.")
        if self.processes and self.engine != "pool":
            raise ParameterError("--processes is for a pool; add --engine pool.")
        return by_shards

    def _wants_shards(self, pack: str, output: str | None) -> bool:
        from wisecrowd.core.memory_check import available_memory
        from wisecrowd.engines.packs import Pack

        if self.engine != "auto":
            return self.engine != "memory"
        n_labels = Pack(pack).summary.n_annotations
        too_large = BYTES_PER_LABEL * n_labels > SHARE * available_memory()
        return too_large or self.resume or (output is not None and is_folder(output))


def is_folder(output: str) -> bool:
    """Return whether an output names a folder: it has no suffix of a table."""
    from wisecrowd.io.formats import SUFFIXES
    from wisecrowd.io.sources import Source
    from wisecrowd.storage.streams import is_stream

    if output == "-" or is_stream(output) or output.lower().endswith(".json"):
        return False
    return output.endswith("/") or Source(Path(output)).suffix not in SUFFIXES


def vocabulary_size(pack: Pack) -> str:
    """Return the number of classes or items of a pack, to add to a list of sizes."""
    if pack.summary.kind == "pairs":
        return f", {len(pack.items)} items"
    return f", {len(pack.classes)} classes" if pack.classes.size else ""


def pack_gold(files: list[str]) -> dict[Any, Any] | None:
    """Return the known classes of a pack that is read into memory, or None."""
    from wisecrowd.engines.packs import is_pack
    from wisecrowd.io.packed_labels import gold_of_pack

    return gold_of_pack(files[0]) if len(files) == 1 and is_pack(files[0]) else None
