"""``wisecrowd spark-script``: the script that spark-submit runs."""

from __future__ import annotations


def spark_script() -> None:
    """Print the path of the script for spark-submit, which fits a pack on a cluster.

    spark-submit $(wisecrowd spark-script) aggregate crowd.pack -o labels/ -m dawid-skene
    """
    from wisecrowd.cli.outputs import print_text
    from wisecrowd.cli.spark_submit import wisecrowd_on_spark

    print_text(f"{wisecrowd_on_spark.__file__}\n")
