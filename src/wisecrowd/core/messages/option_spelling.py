"""Spelling of options in messages, for Python or the command line. All imports are light."""

from __future__ import annotations

import shlex
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
