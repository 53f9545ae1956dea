"""Results as frames of the user's dataframe library, which is imported only when needed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from wisecrowd.core.arrow import compact_texts
from wisecrowd.core.exceptions import MissingDependencyError, ParameterError
from wisecrowd.core.messages.descriptions import suggestion

LIBRARIES = ("pandas", "polars", "pyarrow")  # in the order of preference


def frame_library(asked: str | None, given: str | None = None) -> str:
    """Return the library of a frame to be made.

    Parameters
    ----------
    asked : {"pandas", "polars", "pyarrow"} or None
        The user's choice.
    given : str or None
        The library of the input, used without a choice of the user. If the input was not a frame,
        the first installed of pandas, polars and pyarrow is used.

    Examples
    --------
    >>> frame_library("pyarrow"), frame_library(None, "pyarrow")
    ('pyarrow', 'pyarrow')
    """
    if asked is None:
        return given or next(name for name in LIBRARIES if find_spec(name) is not None)
    if asked not in LIBRARIES:
        raise ParameterError(
            f"library is {asked!r}{suggestion(asked, LIBRARIES)}; choose one of "
            f"{', '.join(LIBRARIES)}."
        )
    if find_spec(asked) is None:
        raise MissingDependencyError(
            f"{asked} is not installed; install it with pip install {asked}, or choose another "
            "library."
        )
    return asked


def as_frame(table: Mapping[str, Any], library: str | None) -> Any:
    """Convert columns through Arrow to a frame of the named library; None means pyarrow."""
    import narwhals as nw
    import pyarrow as pa

    arrow = pa.table({name: _column(values) for name, values in table.items()})
    if library in (None, "pyarrow"):
        return arrow
    backend: Any = library
    return nw.from_arrow(arrow, backend=backend).to_native()


def _column(values: Any) -> Any:
    import pyarrow as pa

    compact = isinstance(values, np.ndarray) and values.dtype.kind == "T"
    return compact_texts(values) if compact else pa.array(values)
