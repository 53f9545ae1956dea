"""Spelling of options in messages, for Python or the command line. All imports are light."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager

from wisecrowd.core.settings import current_settings, with_settings


def shell_spelling() -> AbstractContextManager[None]:
    """Spell options as on the command line inside the ``with`` block."""
    return with_settings(for_shell=True)


def for_reader(python: str, shell: str) -> str:
    """Return a remedy in the reader's syntax: Python or shell."""
    return shell if current_settings().for_shell else python


def option(name: str, value: str) -> str:
    """Return an option with its value in the reader's syntax.

    Examples
    --------
    >>> option("duplicates", "keep")
    "duplicates='keep'"
    >>> with shell_spelling():
    ...     option("duplicates", "keep")
    '--duplicates keep'
    """
    return for_reader(f"{name}={value!r}", f"--{name.replace('_', '-')} {shlex.quote(value)}")


def parameter(name: str, value: object) -> str:
    """Return a method's parameter with its value in the reader's syntax.

    Examples
    --------
    >>> parameter("impute", False)
    'impute=False'
    >>> with shell_spelling():
    ...     parameter("impute", False)
    '-p impute=false'
    """
    typed = str(value).lower() if value is None or isinstance(value, bool) else str(value)
    return for_reader(f"{name}={value!r}", f"-p {name}={shlex.quote(typed)}")


def reading_files(files: Sequence[str], options: Sequence[str]) -> AbstractContextManager[None]:
    """Name the files of labels in remedies, and the options to read them."""
    return with_settings(shown_files=shlex.join([*files, *options]))


def check_remedy(n: int = 60) -> str:
    """Return how to list tasks for a person to answer, in the reader's syntax.

    Examples
    --------
    >>> check_remedy()
    'wisecrowd.truth.check_list(labels, 60)'
    >>> with shell_spelling(), reading_files(["my answers.csv"], ["--task", "image"]):
    ...     check_remedy()
    "wisecrowd check 'my answers.csv' --task image -n 60 -o check.csv"
    """
    files = current_settings().shown_files or "FILE"
    return for_reader(
        f"wisecrowd.truth.check_list(labels, {n})", f"wisecrowd check {files} -n {n} -o check.csv"
    )
