"""Files of networks: weights from untrusted ones, and checkpoints, replaced after every epoch."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.learning.training.ranks import current_ranks
from wisecrowd.learning.training.trainer import (
    NetworkModel,
    TrainerOptions,
    TrainingState,
    make_optimizer,
    own_random_numbers,
)
from wisecrowd.storage.atomic import atomic_write
from wisecrowd.storage.models import CHECKPOINT, is_checkpoint

FILE = "network.safetensors"
FORMAT = f"{CHECKPOINT}-2"


def network_from(
    files: Mapping[str, bytes], make: Callable[[], nn.Module], trial: bool
) -> nn.Module:
    """Return a network with the weights of a file.

    Parameters
    ----------
    files : mapping of name to content
    make : callable
        Returns the network; its initial weights are replaced.
    trial : bool
        Whether to build the network on the meta device first, so that wrong sizes are refused
        before memory is allocated.

    Raises
    ------
    DataError
        If the file is missing, or its weights do not fit, are NaN or are plus infinity. Minus
        infinity is allowed because it is the logarithm of zero.
    """
    if FILE not in files:
        raise DataError(f"{FILE} is missing")
    try:
        weights = from_bytes(files[FILE])
        if trial:
            with torch.device("meta"):
                _require_shapes(make(), weights)
        with own_random_numbers():
            network = make()
        network.load_state_dict(weights)
    except (KeyError, RuntimeError, SafetensorError) as error:
        raise DataError(
            f"{FILE} does not fit the network ({str(error).splitlines()[0]})"
        ) from error
    for name, values in weights.items():
        if values.is_floating_point() and not bool((values < torch.inf).all()):
            raise DataError(f"{name} in {FILE} is NaN or infinite somewhere")
    return network.eval()


def _require_shapes(network: nn.Module, weights: Mapping[str, Tensor]) -> None:
    for name, made in network.state_dict().items():
        if name not in weights or weights[name].shape != made.shape:
            raise DataError(f"{FILE} does not fit the network: {name} is of another shape")


@dataclass(frozen=True)
class Fingerprint:
    """What a checkpoint belongs to.

    Attributes
    ----------
    method : str
    parameters : dict
        Values as text.
    data : str
        Hash of features, annotations and gold.
    part : str
        Part of a fit with several checkpoints.
    """

    method: str
    parameters: dict[str, str]
    data: str
    part: str = ""

    def difference(self, stored: Fingerprint) -> str:
        """Return what a stored checkpoint has that is not this; empty if there is nothing."""
        if stored.method != self.method:
            return f"another method ({stored.method}, now {self.method})"
        names = sorted({*stored.parameters, *self.parameters})
        changed = [
            f"{name} {_short(stored.parameters.get(name))}, now {_short(self.parameters.get(name))}"
            for name in names
            if stored.parameters.get(name) != self.parameters.get(name)
        ]
        if changed:
            return f"other parameters ({'; '.join(changed[:3])})"
        return "" if stored == self else "other data"


def _short(value: str | None) -> str:
    """Return the start of a value."""
    text = "unset" if value is None else " ".join(value.split())
    return text if len(text) <= 40 else f"{text[:37]}..."


@dataclass(frozen=True)
class Resumed:
    """State of an interrupted training."""

    state: TrainingState
    optimizer: torch.optim.Optimizer
    best: dict[str, Tensor]


def save_checkpoint(
    path: str | os.PathLike[str],
    fingerprint: Fingerprint,
    model: NetworkModel,
    optimizer: torch.optim.Optimizer,
    state: TrainingState,
    best: dict[str, Tensor],
) -> None:
    """Write everything that the next epoch depends on, including the random state.

    Of several processes, the first one writes.
    """
    ranks = current_ranks()
    if ranks is not None and ranks.rank:
        return
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in best.items()}
    stored = optimizer.state_dict()
    for number, values in stored["state"].items():
        for name, value in values.items():
            tensors[f"optimizer.{number}.{name}"] = torch.as_tensor(value)
    tensors["random"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    header = json.dumps(
        {
            "format": FORMAT,
            "fingerprint": asdict(fingerprint),
            "state": asdict(state),
            "groups": stored["param_groups"],
            "processes": _n_processes(),
        }
    )
    content = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    metadata = {"wisecrowd": header, "sha256": _digest(header, content)}
    with atomic_write(path, "wb") as file:
        file.write(to_bytes(content, metadata=metadata))


def load_checkpoint(
    path: str | os.PathLike[str],
    fingerprint: Fingerprint,
    model: NetworkModel,
    options: TrainerOptions,
) -> Resumed | None:
    """Restore a model and the random state from a checkpoint; None if there is no file.

    Raises
    ------
    DataError
        If the file is damaged, or belongs to another fit.
    """
    if not Path(path).exists():
        return None
    try:
        header, tensors = _read(path)
        other = fingerprint.difference(_owner(header))
        if other:
            raise DataError(
                f"The checkpoint {os.fspath(path)} belongs to a fit with {other}; "
                + for_reader(
                    "fit without resume, or give another checkpoint file.",
                    "repeat that command to resume it, or start again with --restart.",
                )
            )
        model.load_state_dict(_under("model.", tensors))
        optimizer = make_optimizer(model, options)
        optimizer.load_state_dict(
            {"state": _optimizer_state(tensors), "param_groups": header["groups"]}
        )
        torch.set_rng_state(tensors["random"])
        if torch.cuda.is_available() and "random.cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random.cuda"])
        state = TrainingState(**{**header["state"], "interrupted": False})
        _note_processes(path, int(header.get("processes", 1)))
        return Resumed(state, optimizer, _under("best.", tensors))
    except DataError:
        raise
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            f"Cannot resume from {os.fspath(path)}: it is cut short, changed or no checkpoint "
            f"({str(error).splitlines()[0]}); "
            + for_reader("fit without resume.", "start again with --restart.")
        ) from error


def require_own(path: str | os.PathLike[str]) -> None:
    """Raise a ParameterError if there is a file that is not a checkpoint of ours."""
    if Path(path).exists() and not is_checkpoint(path):
        raise ParameterError(
            f"{os.fspath(path)} is in the way and is not a checkpoint; move it away, or "
            + for_reader("give another checkpoint file.", "give -o another folder.")
        )


def refuse_to_overwrite(path: str | os.PathLike[str], fingerprint: Fingerprint) -> None:
    """Raise a ParameterError if there is a checkpoint, whose training would be lost.

    Parameters
    ----------
    path : path-like
    fingerprint : Fingerprint
        Of the fit that would write to it.
    """
    if not Path(path).exists():
        return
    name, again = os.fspath(path), for_reader("start again with resume=False", "--restart")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})["wisecrowd"])
        owner, epoch = _owner(header), int(header["state"]["epoch"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ParameterError(
            f"{name} is in the way and is not a checkpoint that can be read; move it away, or "
            + for_reader(f"{again}.", f"replace it with {again}.")
        ) from error
    reached = f"which reached epoch {epoch} of {owner.parameters.get('epochs', '?')}"
    other = fingerprint.difference(owner)
    if other:
        raise ParameterError(
            f"{name} holds an unfinished training with {other}, {reached}; "
            + for_reader(
                f"resume it with those, {again}, or give another checkpoint file.",
                f"resume it with that command, discard it with {again}, or give -o another folder.",
            )
        )
    raise ParameterError(
        f"{name} holds an unfinished training of the same data and parameters, {reached}; "
        + for_reader(
            f"continue it with resume=True, or {again}.",
            f"continue it with --resume, or discard it with {again}.",
        )
    )


def _n_processes() -> int:
    ranks = current_ranks()
    return 1 if ranks is None else ranks.size


def _note_processes(path: str | os.PathLike[str], stored: int) -> None:
    """Warn that another number of processes than before rounds differently."""
    if stored != _n_processes():
        warnings.warn(
            f"The checkpoint {os.fspath(path)} is of a training in {stored} processes, and it "
            f"continues in {_n_processes()}; sums are rounded differently, so the weights are not "
            "exactly those of a training with either number.",
            WisecrowdWarning,
            stacklevel=2,
        )


def _owner(header: dict[str, Any]) -> Fingerprint:
    """Return the fingerprint in a header."""
    if header["format"] != FORMAT:
        raise KeyError("format")
    return Fingerprint(**header["fingerprint"])


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if _digest(metadata["wisecrowd"], tensors) != metadata["sha256"]:
        raise ValueError("its checksum is another")
    return json.loads(metadata["wisecrowd"]), tensors


def _digest(header: str, tensors: dict[str, Tensor]) -> str:
    """Return the SHA-256 of the content of a checkpoint."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _optimizer_state(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _under("optimizer.", tensors).items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = value
    return state
