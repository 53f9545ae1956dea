"""Exclusive use of torch's random generator, which all threads share."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

_ALONE = threading.RLock()


def _renew() -> None:
    """Replace the lock, because the thread that holds it does not exist after a fork."""
    global _ALONE
    _ALONE = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


@contextmanager
def own_random_numbers(devices: Sequence[int] = ()) -> Iterator[None]:
    """Keep torch's random generator for one thread, and restore its state afterwards.

    A second thread that enters the ``with`` block waits. Torch has one generator for all threads:
    two fits that draw from it at the same time are not reproducible.

    Parameters
    ----------
    devices : indices of CUDA devices whose generators are in use as well
    """
    with _ALONE, torch.random.fork_rng(devices=devices):
        yield
