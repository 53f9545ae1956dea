"""``wisecrowd aggregate`` as an application of Spark.

spark-submit $(wisecrowd spark-script) aggregate crowd.pack -o labels/ -m dawid-skene
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def with_engine(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of ``wisecrowd`` with Spark as the engine of ``aggregate``.

    Examples
    --------
    >>> with_engine(["aggregate", "crowd.pack", "-o", "labels/"])
    ['aggregate', '--engine', 'spark', 'crowd.pack', '-o', 'labels/']
    """
    from wisecrowd.core.exceptions import ParameterError

    command, *others = arguments or [""]
    if command != "aggregate":
        raise ParameterError(
            f"Spark runs wisecrowd aggregate, not {command!r}; run other commands without "
            "spark-submit."
        )
    named = any(one == "--engine" or one.startswith("--engine=") for one in others)
    return [command, *([] if named else ["--engine", "spark"]), *others]


def main() -> int:
    """Run the command line and return its exit code."""
    from wisecrowd.cli.main import fail_with, run
    from wisecrowd.core.exceptions import ParameterError

    try:
        arguments = with_engine(sys.argv[1:])
    except ParameterError as error:
        return fail_with(error)
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
