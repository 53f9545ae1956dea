"""Options that say how features are read."""

from __future__ import annotations

import csv
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.io.feature_files import FeatureTable


@dataclass(frozen=True, kw_only=True)
class FeatureReading:
    """Options for files of features."""

    embed: Annotated[
        str | None,
        typer.Option(
            "--embed", metavar="MODULE:FUNCTION",
            help="Python function from a list of texts to an array of features.",
        ),
    ] = None  # fmt: skip
    feature_columns: Annotated[
        str | None,
        typer.Option(
            "--feature-columns", metavar="A,B,C",
            help="Columns of the features, or the column of text (default: detected).",
        ),
    ] = None  # fmt: skip

    def read(self, path: str, notes: Notes) -> FeatureTable:
        """Read features, and note what was chosen."""
        from wisecrowd.cli.progress import working
        from wisecrowd.io.feature_files import read_features

        embed = None if self.embed is None else load_function(self.embed)
        columns = None
        if self.feature_columns is not None:
            columns = next(csv.reader([self.feature_columns], skipinitialspace=True))
        with working(f"reading {path}", notes):
            table = read_features(path, columns=columns, embed=embed)
        if table.note:
            notes(table.note)
        return table


def load_function(name: str) -> Callable[[list[str]], Any]:
    """Return the function that ``package.module:function`` names.

    Modules in the working directory are found too.
    """
    from wisecrowd.core.exceptions import ParameterError

    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ParameterError(f"--embed is {name!r}; give package.module:function.")
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise ParameterError(f"--embed is {name!r}, and {error}; correct the name.") from error
    except Exception as error:  # the module is the user's own and may fail in any way
        reason = str(error).split("\n")[0]
        raise ParameterError(
            f"--embed is {name!r}, and {module} cannot be imported ({type(error).__name__}: "
            f"{reason}); correct the name or the module."
        ) from error
    finally:
        sys.path.remove(here)
    if not callable(found):
        raise ParameterError(f"--embed is {name!r}, which is not a function; name one.")
    function: Callable[[list[str]], Any] = found
    return function
