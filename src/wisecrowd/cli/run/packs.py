"""Fits to packs: the choice of their engine, and what a pack says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wisecrowd.cli.options.aggregate import PackOptions
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.kinds import get_kind
from wisecrowd.core.memory_check import available_memory
from wisecrowd.io.formats import SUFFIXES
from wisecrowd.io.packed_labels import gold_of_pack
from wisecrowd.io.sources import Source
from wisecrowd.packs.pack import Pack, is_pack
from wisecrowd.storage.atomic import is_stream

ENGINES = ("auto", "memory", "files", "pool", "spark")
BY_SHARDS = ("files", "pool", "spark")
BYTES_PER_LABEL = 90  # of a fit in memory, with the labels
SHARE = 0.5  # of the memory that "auto" uses


def by_shards(asked: PackOptions, files: list[str], output: str | None) -> bool:
    """Return whether the fit goes by shards, or refuse options that do not go together."""
    if asked.engine not in ENGINES:
        raise ParameterError(f"--engine is {asked.engine!r}; choose one of {', '.join(ENGINES)}.")
    packed = len(files) == 1 and is_pack(files[0])
    if not packed and asked.engine in BY_SHARDS:
        raise ParameterError(
            f"--engine {asked.engine} reads a pack of classes, numbers or pairs; make one with "
            f"wisecrowd pack {files[0]} -o crowd.pack, or leave --engine out."
        )
    shards = packed and _wants_shards(asked, files[0], output)
    given = {"--processes": asked.processes, "--scratch": asked.scratch, "--resume": asked.resume}
    for name, value in given.items():
        if value and not shards:
            raise ParameterError(f"{name} is for fits by shards; add --engine files or pool.")
    if asked.processes and asked.engine != "pool":
        raise ParameterError("--processes is for a pool; add --engine pool.")
    return shards


def _wants_shards(asked: PackOptions, pack: str, output: str | None) -> bool:
    if asked.engine != "auto":
        return asked.engine != "memory"
    n_labels = Pack(pack).summary.n_annotations
    too_large = BYTES_PER_LABEL * n_labels > SHARE * available_memory()
    return too_large or asked.resume or (output is not None and is_folder(output))


def is_folder(output: str) -> bool:
    """Return whether an output names a folder: it has no suffix of a table."""
    if output == "-" or is_stream(output) or output.lower().endswith(".json"):
        return False
    return output.endswith("/") or Source(Path(output)).suffix not in SUFFIXES


def vocabulary_size(pack: Pack) -> str:
    """Return the number of classes or items of a pack, to add to a list of sizes."""
    payload = get_kind(pack.summary.kind).container.payload
    names = dict.fromkeys(part.vocabulary for part in payload if part.vocabulary)
    return "".join(f", {len(getattr(pack, name))} {name}" for name in names)


def pack_gold(files: list[str]) -> dict[Any, Any] | None:
    """Return the known classes of a pack that is read into memory, or None."""
    return gold_of_pack(files[0]) if len(files) == 1 and is_pack(files[0]) else None
