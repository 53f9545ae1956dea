"""Training on several processes: each runs the network on its part of every batch.

All processes (ranks) run the same program with the same seed and hold all labels. Rank ``r`` reads
the features of its part of a batch, and the outputs of the network are gathered, so that every
rank has the loss of the whole batch. Losses with penalties over a batch and E-steps over all tasks
are therefore those of one process. Gradients of the network are averaged over ranks.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous

from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdError
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.registry import kebab_case
from wisecrowd.core.settings import current_settings, with_settings
from wisecrowd.nn.batches import CrowdBatch

TIMEOUT = 120.0  # seconds that a rank waits for another one
GRACE = 3.0  # seconds in which the ranks that are left report themselves


@dataclass(frozen=True, eq=False)
class Ranks:
    """The processes of a fit.

    Attributes
    ----------
    rank, size : int
        Number of this process, and of all.
    store : torch.distributed.Store
        Where ranks report themselves after an error.
    """

    rank: int
    size: int
    store: Any

    def part(self, rows: Tensor) -> Tensor:
        """Return the rows of this rank; the last row pads parts to equal lengths."""
        length = -(-len(rows) // self.size)
        place = torch.arange(self.rank * length, (self.rank + 1) * length)
        return rows[place.clamp_max(len(rows) - 1)]

    def gather(self, part: Tensor, n_rows: int) -> Tensor:
        """Return the rows of all ranks in order, without the padding."""
        part = part.contiguous()
        parts = [torch.empty_like(part) for _ in range(self.size)]
        with self._named_failures():
            dist.all_gather(parts, part)
        return torch.cat(parts)[:n_rows]

    def average_gradients(self, network: nn.Module) -> None:
        """Replace the gradients of a network by their means over ranks."""
        gradients = [p.grad for p in network.parameters() if p.grad is not None]
        if not gradients:
            return
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        with self._named_failures():
            dist.all_reduce(flat)
        means = torch.split(flat.div_(self.size), [gradient.numel() for gradient in gradients])
        for gradient, mean in zip(gradients, means, strict=True):
            gradient.copy_(mean.view_as(gradient))

    def require_equal(self, digest: bytes, what: str) -> None:
        """Require that all ranks have the same SHA-256 digest."""
        own = torch.frombuffer(bytearray(digest), dtype=torch.uint8)
        each = self.gather(own[None], self.size)
        other = torch.nonzero((each != each[0]).any(dim=1)).flatten().tolist()
        if other:
            raise DataError(
                f"Process {other[0]} of {self.size} has {what} that differ from those of process "
                "0; give all the same files, seed, library versions and kind of machine."
            )

    @contextmanager
    def _named_failures(self) -> Iterator[None]:
        """Turn an error of the connection into one that names the missing processes."""
        try:
            yield
        except RuntimeError as error:
            lost = ", ".join(map(str, self._missing())) or "unknown"
            # gloo begins with a place in its source and ends with advice.
            reason = re.sub(r"^\[.*?\] ", "", str(error).splitlines()[0]).partition(". ")[0]
            raise WisecrowdError(
                f"Process {lost} of {self.size} does not answer process {self.rank} ({reason}); "
                + for_reader(
                    "start again, and fit with resume=True to continue from the checkpoint.",
                    "start all again with --resume to continue from the checkpoint.",
                )
            ) from error

    def _missing(self) -> list[int]:
        """Return the ranks that do not report themselves after a failure."""
        try:
            self.store.set(f"wisecrowd/alive/{self.rank}", "1")
            lost, until = list(range(self.size)), time.monotonic() + GRACE
            while lost and time.monotonic() < until:
                lost = [rank for rank in lost if not self.store.check([f"wisecrowd/alive/{rank}"])]
                time.sleep(0.05)
        except RuntimeError:  # the process that holds the store is gone
            return [0]
        return lost


def current_ranks() -> Ranks | None:
    """Return the processes of the fits that start now; None for one process."""
    ranks: Ranks | None = current_settings().ranks
    return ranks


@contextmanager
def several_processes(timeout: float = TIMEOUT) -> Iterator[Ranks | None]:
    """Train the fits inside the ``with`` block on all processes that torchrun started.

    Every process runs the same fits on the same data, and gets the same result. Without torchrun,
    or with one process, nothing changes.

    Parameters
    ----------
    timeout : float
        Seconds to wait for another process before an error.
    """
    if os.environ.get("WORLD_SIZE", "1") in ("", "1"):
        yield None
        return
    wait = timedelta(seconds=timeout)
    try:
        store, rank, size = next(iter(rendezvous("env://", timeout=wait)))
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=wait)
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise WisecrowdError(
            f"The processes could not connect ({reason}); start them with torchrun, and set "
            "GLOO_SOCKET_IFNAME if the machine has several networks."
        ) from error
    try:
        with with_settings(ranks=Ranks(rank, size, store)):
            yield current_ranks()
    finally:
        dist.destroy_process_group()


# --------------------------------------------------------------------------------- steps of a fit


class _Gather(torch.autograd.Function):
    """Outputs of all ranks; the gradient of the own ones counts once per rank.

    The mean of gradients over ranks is then the gradient of the whole batch, also for parameters
    that are used after the gathering and have this gradient on every rank.
    """

    @staticmethod
    def forward(ctx: Any, own: Tensor, ranks: Ranks, n_rows: int) -> Tensor:
        """Return (n_rows, ...) outputs."""
        ctx.ranks, ctx.length = ranks, len(own)
        return ranks.gather(own, n_rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Return the gradient of the own outputs; that of padding is zero."""
        first = ctx.ranks.rank * ctx.length
        mine = gradients[0][first : first + ctx.length]
        whole = mine.new_zeros((ctx.length, *mine.shape[1:]))
        whole[: len(mine)] = mine * ctx.ranks.size
        return whole, None, None


_gather: Callable[[Tensor, Ranks, int], Tensor] = _Gather.apply


def over_ranks(function: Callable[[Tensor], Tensor], batch: CrowdBatch) -> Tensor:
    """Return (B, ...) outputs for a batch, whose features are those of this rank's part.

    Random numbers in the function, such as those of dropout, differ between ranks and batches; the
    shared generator is left as it was.
    """
    ranks = current_ranks()
    if ranks is None:
        return function(batch.x)
    with torch.random.fork_rng(devices=[]):
        # The generator moves on once per epoch, and batches differ in their first task.
        seed = int(torch.randint(2**40, ())) + ranks.size * int(batch.rows[0]) + ranks.rank
        torch.manual_seed(seed)
        own = function(batch.x)
    return _gather(own, ranks, len(batch))


def computed_by_ranks(
    function: Callable[[Tensor], Tensor], n_rows: int, size: int
) -> NDArray[np.float64]:
    """Return (n_rows, ...) results of a function of row numbers, each rank computing a part.

    Parameters
    ----------
    function : callable
        From at most ``size`` row numbers to as many results, as float64.
    n_rows, size : int
    """
    ranks, rows = current_ranks(), torch.arange(n_rows)
    mine = rows if ranks is None else ranks.part(rows)
    # One array for all results: small ones between the features of batches would split the memory
    # that those leave, so that it grew as if all features were kept.
    own = torch.empty(0, dtype=torch.float64)
    for first in range(0, len(mine), size):
        some = function(mine[first : first + size])
        if not first:
            own = some.new_empty((len(mine), *some.shape[1:]))
        own[first : first + len(some)] = some
    return np.asarray((own if ranks is None else ranks.gather(own, n_rows)).numpy())


def require_equal_data(data: Any) -> None:
    """Require that all processes have the same labels."""
    ranks = current_ranks()
    if ranks is not None:
        digest = hashlib.sha256(repr(data.features.shape).encode())
        for part in data.arrays():
            digest.update(np.ascontiguousarray(part).data)
        ranks.require_equal(digest.digest(), "labels or features")


def require_equal_state(model: nn.Module, *others: float) -> None:
    """Require that all processes have the same parameters, and the same other numbers."""
    ranks = current_ranks()
    if ranks is not None:
        digest = hashlib.sha256(repr(others).encode())
        for value in model.state_dict().values():
            flat = value.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy().data)
        ranks.require_equal(digest.digest(), "parameters")


# --------------------------------------------------------------------------------- what is refused


def require_able(method: type) -> None:
    """Refuse methods that one process must train, naming those that several can."""
    if getattr(method, "on_several_processes", False):
        return
    from wisecrowd import learning

    able = [
        kebab_case(name)
        for name in dir(learning)
        if getattr(getattr(learning, name), "on_several_processes", False)
    ]
    raise ParameterError(
        f"{kebab_case(method.__name__)} trains in one process; leave out torchrun, or choose one "
        f"of {', '.join(sorted(able))}."
    )


def require_rows_apart(network: nn.Module) -> None:
    """Refuse networks with batch norm, whose output depends on the other tasks of a batch."""
    if current_ranks() is None:
        return
    for layer in network.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise ParameterError(
                "The module has batch norm, which several processes would compute each from its "
                "own part of a batch; use group norm or layer norm, or one process."
            )
