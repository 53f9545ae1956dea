"""How messages spell options: for Python, or for the command line. Imports nothing heavy."""

from __future__ import annotations

import shlex
from contextlib import AbstractContextManager

from wisecrowd.core.settings import current_settings, with_settings


def shell_spelling() -> AbstractContextManager[None]:
    """Let messages name options as the command line spells them, inside the ``with`` block."""
    return with_settings(for_shell=True)


def for_reader(python: str, shell: str) -> str:
    """Return a remedy as whoever reads it would type it: in Python or in a shell."""
    return shell if current_settings().for_shell else python


def option(name: str, value: str) -> str:
    """Return an option with its value as the reader would type it.

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
    """Return a parameter of a method with its value as the reader would type it.

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
