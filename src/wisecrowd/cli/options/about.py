"""Commands about wisecrowd itself: its methods, its versions, its script for Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.group import command, option


@dataclass(frozen=True, kw_only=True)
class MethodsOptions:
    """The options of ``wisecrowd methods``."""

    learning: Annotated[
        bool, option("--learning", "List the methods that train a classifier on features.")
    ] = False
    type: Annotated[
        str | None, option("--type TYPE", "Only methods for this type of labels, such as sets.")
    ] = None
    long: Annotated[bool, option("--long", "Add when to use each method, and its paper.")] = False
    as_json: shared.PrintJson = False


@command
def methods(asked: MethodsOptions) -> None:
    """List the methods, one line each: name and summary, below the type of labels they take."""
    from wisecrowd.cli.run import about as run

    run.methods(asked)


def versions(as_json: shared.PrintJson = False) -> None:
    """Print the versions that a bug report needs."""
    from wisecrowd.cli.run import about as run

    run.versions(as_json)


def spark_script() -> None:
    """Print the path of the script for spark-submit, which fits a pack on a cluster.

    spark-submit $(wisecrowd spark-script) aggregate crowd.pack -o labels/ -m dawid-skene
    """
    from wisecrowd.cli.run import about as run

    run.spark_script()
