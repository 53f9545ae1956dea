"""Keyed pseudonyms of workers: the same key gives the same names, without it nobody can tell whose.

A plain hash of an id is no protection: who has a list of ids can hash them all. Here the hash is
keyed (HMAC-SHA256), so that this takes the key, which stands in no output.
"""

from __future__ import annotations

import base64
import hmac
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels

_LONGEST_KEY = 1 << 16
SHORTEST_KEY = 16  # bytes
PSEUDONYM = re.compile(r"w-[a-z2-7]{16}")
_BYTES = 10  # of the digest: 80 bits, so that two of a million workers never meet
_DOMAIN = b"wisecrowd worker\0"
_ENVIRONMENT = "env:"
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\"""")
_MAKE = "make one with `openssl rand -hex 32 > worker.key`"


def read_key(place: str) -> bytes:
    """Return the key in a file, or in an environment variable named as ``env:NAME``.

    White space around it does not count. What was given is never repeated in a message: it may be
    the key itself, by mistake.
    """
    if place.startswith(_ENVIRONMENT):
        name = place.removeprefix(_ENVIRONMENT)
        value = os.environ.get(name)
        if not name:
            raise ParameterError("env: names no environment variable; write env:NAME.")
        if value is None:
            raise ParameterError(f"The environment variable {name} of the pseudonyms is not set.")
        return check_key(value.strip().encode("utf-8", "surrogateescape"))
    try:
        with Path(place).open("rb") as file:
            key = file.read(_LONGEST_KEY + 1)
    except OSError as error:
        raise DataError(
            f"The key of the pseudonyms cannot be read ({error.strerror}); name a file that holds "
            f"it, or env:NAME; {_MAKE}."
        ) from None
    if len(key) > _LONGEST_KEY:  # a device without an end, or a file of data by mistake
        raise ParameterError(
            f"The key of the pseudonyms is longer than {_LONGEST_KEY} bytes; {_MAKE}."
        )
    return check_key(key.strip())


def check_key(key: bytes) -> bytes:
    """Refuse a key that could be guessed."""
    if not isinstance(key, bytes) or len(key) < SHORTEST_KEY:
        raise ParameterError(
            f"The key of the pseudonyms must have at least {SHORTEST_KEY} bytes; {_MAKE}."
        )
    return key


def pseudonym(worker: Any, key: bytes) -> str:
    """Return the pseudonym of one worker; the id 7 and the text "7" are the same worker.

    Examples
    --------
    >>> pseudonym("ann", b"a key of 16 bytes or more")
    'w-24va42eb7kdku4tc'
    """
    text = str(worker).encode("utf-8", "surrogatepass")
    digest = hmac.digest(key, _DOMAIN + text, "sha256")[:_BYTES]
    return "w-" + base64.b32encode(digest).decode().lower()


def pseudonymize(labels: CrowdLabels, key: bytes) -> CrowdLabels:
    """Return the same labels by workers who have pseudonyms, in the order of these.

    Parameters
    ----------
    labels : CrowdLabels
    key : bytes
        At least 16 of them, secret: whoever has it and a worker's id can tell the pseudonym.

    Notes
    -----
    Ids of workers in ``labels.notes`` are replaced too. Task ids, labels and times stay: a worker
    who labelled a task nobody else did may still be known by it.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays([1, 1, 2], ["ann", "bob", "ann"], ["x", "y", "x"])
    >>> hidden = pseudonymize(labels, b"a key of 16 bytes or more")
    >>> hidden, hidden.workers.tolist()
    (CrowdLabels(2 tasks, 2 workers, 2 classes, 3 annotations),
     ['w-24va42eb7kdku4tc', 'w-67rdbzl22hrrogdp'])
    """
    check_key(key)
    names = np.empty(labels.n_workers, dtype=object)
    names[:] = [pseudonym(worker, key) for worker in labels.workers.tolist()]
    order = np.argsort(names)
    if len(set(names.tolist())) < len(names):
        raise DataError("Two workers have the same pseudonym; take another key.")
    return replace(
        labels.select_workers(order),
        workers=names[order],
        notes=tuple(hide_ids(note, labels.workers, key) for note in labels.notes),
    )


def hide_ids(text: str, workers: NDArray[Any], key: bytes) -> str:
    """Return a message in which quoted ids of workers are replaced by their pseudonyms.

    Examples
    --------
    >>> hide_ids("'ann' and 'cat' differ", np.array(["ann"], dtype=object), b"a key of 16 bytes")
    "'w-v42bkjo265hy6kef' and 'cat' differ"
    """
    if not _QUOTED.search(text):
        return text
    known = {spelling: worker for worker in workers.tolist()
             for spelling in (repr(worker), ascii(worker))}  # fmt: skip

    def hidden(found: re.Match[str]) -> str:
        quoted = found.group()
        return repr(pseudonym(known[quoted], key)) if quoted in known else quoted

    return _QUOTED.sub(hidden, text)
