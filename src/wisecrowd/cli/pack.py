"""``wisecrowd pack``: annotations as a folder of shards, for data larger than memory."""

from __future__ import annotations

from typing import Annotated

import typer

from wisecrowd.cli import options
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading


@command
def pack(
    files: options.Files,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FOLDER", help="The pack to write.")
    ],
    shards: Annotated[
        str,
        typer.Option(
            "--shards",
            metavar="N",
            help="Number of shards, a power of two (default: auto, one for 2^24 rows, at least 16)",
        ),
    ] = "auto",
    patterns: Annotated[
        str,
        typer.Option(
            "--patterns",
            metavar="auto|always|never",
            help="Whether tasks with the same labels share one row; auto looks at a sample.",
        ),
    ] = "auto",
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare the digests of all files at the end.")
    ] = False,
    max_refused: Annotated[
        int,
        typer.Option(
            "--max-refused",
            metavar="N",
            min=0,
            help="Leave out up to N rows that cannot be read (default: 0, the first one stops).",
        ),
    ] = 0,
    gold: options.Gold = None,
    gold_columns: options.GoldColumns = None,
    *,
    reading: Reading,
    quiet: options.Quiet = False,
) -> None:
    """Write annotations as a pack: a folder of shards that is read one shard at a time.

    Packs hold classes, numbers (--type numbers) and pairs (--type pairs). Memory does not grow with
    the number of labels. Every command that reads labels reads a pack; aggregate --engine files and
    --engine pool need no more memory than a shard. An interrupted run continues when the same
    command is given again.
    """
    from wisecrowd.cli.inputs import KnownFile, read_gold
    from wisecrowd.cli.pack_options import vocabulary_size
    from wisecrowd.cli.progress import working
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.exceptions import ParameterError
    from wisecrowd.core.memory_check import readable_bytes
    from wisecrowd.io.packing import pack as write_pack

    for name, value in {
        "pseudonymize": reading.pseudonymize,
        "drop-after": reading.drop_after,
    }.items():
        if value is not None:
            raise ParameterError(f"--{name} does not work with pack; leave it out.")
    if shards != "auto" and not shards.isdecimal():
        raise ParameterError(f"--shards is {shards!r}; give auto or a power of two.")
    known = KnownFile.given(gold, "--gold", gold_columns, reading)
    with Notes(quiet) as notes:
        with working("packing", notes):
            made = write_pack(
                files[0] if len(files) == 1 else files,
                output,
                reading.format,
                shards=shards if shards == "auto" else int(shards),
                patterns=patterns,
                max_refused=max_refused,
                verify=verify,
                gold=read_gold(known, notes),
                classes=reading.declared_classes,
                abstain=reading.abstain or (),
                duplicates=reading.duplicates,
                type=reading.declared_type,
                encoding=reading.encoding,
                kinds=options.names_of(reading.kinds),
                exclude_workers=reading.exclude_workers or (),
                accept=options.names_of(reading.accept) or (),
                **reading.layout,
                task=reading.task,
                worker=reading.worker,
                label=reading.label,
                left=reading.left,
                right=reading.right,
                timestamp=reading.timestamp,
                weight=reading.weight,
            )
        for note in made.summary.notes:
            notes(note)
        facts = made.summary
        notes(
            f"wrote {output}: {facts.n_annotations} labels, {facts.n_tasks} tasks, "
            f"{facts.n_workers} workers{vocabulary_size(made)} in {len(facts.shards)} shards, "
            f"{readable_bytes(made.n_bytes)}"
        )
