"""Torch's random numbers, which all threads of a process share, kept for one fit at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

_ALONE = threading.RLock()


def _renew() -> None:
    """Replace the lock: in a forked process nobody lives on who could release it."""
    global _ALONE
    _ALONE = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


@contextmanager
def own_random_numbers(devices: Sequence[int] = ()) -> Iterator[None]:
    """Draw inside the ``with`` block as if no other thread drew, and leave no trace outside.

    Another thread that enters waits: torch has one generator, and draws of two fits would mix, so
    that neither gave the same result again.

    Parameters
    ----------
    devices : indices of CUDA devices whose generators are in use as well
    """
    with _ALONE, torch.random.fork_rng(devices=devices):
        yield
