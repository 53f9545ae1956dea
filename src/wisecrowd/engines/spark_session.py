"""Spark session for the command line: that of spark-submit, or one of our own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wisecrowd.core.exceptions import DataError, MissingDependencyError
from wisecrowd.engines.threads import get_threads

OLDEST_JAVA = 17
# pyspark needs pandas to be there and says so; mapInArrow uses nothing of it.
_PANDAS = "PySpark does not yet fully support pandas"
_HOW = f"install Java {OLDEST_JAVA} or newer, or set JAVA_HOME"


def get_session() -> Any:
    """Return the running Spark session, or start one.

    Without spark-submit or another configuration, Spark runs on this machine and tries every task
    up to four times, as clusters do.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "The engine spark needs pyspark and pandas; install them with pip install "
            "'wisecrowd[spark]'."
        ) from None
    with without_pandas_warning():
        return _started(SparkSession.builder)


@contextmanager
def without_pandas_warning() -> Iterator[None]:
    """Hide the one warning of pyspark about the version of pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _PANDAS, FutureWarning)
        yield


def _started(builder: Any) -> Any:
    if "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_REMOTE" in os.environ:
        return builder.getOrCreate()  # started by spark-submit, or a server elsewhere
    check_java()
    if not {"MASTER", "PYSPARK_SUBMIT_ARGS"} & set(os.environ):
        builder = builder.master(f"local[{get_threads()},4]")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        return builder.getOrCreate()
    except Exception as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise DataError(f"Spark does not start ({reason}); see its output above.") from error


def check_java() -> None:
    """Refuse to start Spark without a Java that it can use."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        where = f"JAVA_HOME ({home})" if home else "PATH"
        raise DataError(f"Spark needs Java, and {where} has none; {_HOW}.")
    try:
        found = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DataError(f"{java} does not run ({error}); {_HOW}.") from None
    version = java_version(found.stderr + found.stdout)
    if version is None:
        raise DataError(f"{java} does not tell its version; {_HOW}.")
    if version < OLDEST_JAVA:
        raise DataError(f"Spark needs Java {OLDEST_JAVA}, and {java} is Java {version}; {_HOW}.")


def java_version(text: str) -> int | None:
    """Return the major version that ``java -version`` prints.

    Examples
    --------
    >>> java_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> java_version('java version "1.8.0_202"')
    8
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None
