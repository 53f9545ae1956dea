"""Outputs that are not files: devices, pipes and descriptors that are open already."""

from __future__ import annotations

import os
import re
import stat

_STANDARD = {"stdin": 0, "stdout": 1, "stderr": 2}
_DESCRIPTOR = re.compile(r"/dev/(stdin|stdout|stderr)|(?:/dev|/proc/self)/fd/([0-9]+)")


def descriptor_of(path: str | os.PathLike[str]) -> int | None:
    """Return the number of the open descriptor that a path names, None of any other path.

    Examples
    --------
    >>> descriptor_of("/dev/stdout"), descriptor_of("/dev/fd/63"), descriptor_of("labels.csv")
    (1, 63, None)
    """
    found = _DESCRIPTOR.fullmatch(os.fspath(path))
    if found is None:
        return None
    return _STANDARD[found[1]] if found[1] else int(found[2])


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a descriptor, a device or a pipe, which no file can replace."""
    if descriptor_of(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
