"""No pandas by accident: pyarrow imports it at its first array, a third of a short run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

# Between an import that pyarrow makes in C and the code that called pyarrow.
_BETWEEN = ("importlib", "pyarrow", __name__)


class _WithoutPandas:
    """A finder that has no pandas for pyarrow where only wisecrowd uses pyarrow.

    Wisecrowd never imports pandas itself. Other libraries in this process find it as usual.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if fullname == "pandas" and _caller().partition(".")[0] == "wisecrowd":
            raise ModuleNotFoundError("wisecrowd does not need pandas", name=fullname)
        return None


def leave_out_pandas() -> None:
    """Have pyarrow do without pandas in this process, unless it is there already."""
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _WithoutPandas())


def take_up_pandas() -> None:
    """Let pyarrow use pandas again, before code of the user runs."""
    hidden = [finder for finder in sys.meta_path if isinstance(finder, _WithoutPandas)]
    for finder in hidden:
        sys.meta_path.remove(finder)
    if hidden and "pyarrow" in sys.modules:
        with suppress(ImportError):
            sys.modules["pyarrow"].lib._pandas_api.pd  # noqa: B018  # looks for pandas once more


def _caller() -> str:
    """Return the module whose code made the import, or called the pyarrow that made it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _module(frame).startswith(_BETWEEN):
        frame = frame.f_back
    return _module(frame)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
