"""Checkpoints: one safetensors file, replaced atomically after every epoch."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from wisecrowd.core.exceptions import DataError
from wisecrowd.learning.training.network_model import NetworkModel
from wisecrowd.learning.training.trainer import TrainerOptions, TrainingState, make_optimizer
from wisecrowd.storage.atomic import atomic_write

FORMAT = "wisecrowd-checkpoint-1"


@dataclass(frozen=True)
class Resumed:
    """State of an interrupted training."""

    state: TrainingState
    optimizer: torch.optim.Optimizer
    best: dict[str, Tensor]


def save_checkpoint(
    path: str | os.PathLike[str],
    fingerprint: str,
    model: NetworkModel,
    optimizer: torch.optim.Optimizer,
    state: TrainingState,
    best: dict[str, Tensor],
) -> None:
    """Write everything that the next epoch depends on, including the random state."""
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
            "fingerprint": fingerprint,
            "state": asdict(state),
            "groups": stored["param_groups"],
        }
    )
    content = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    metadata = {"wisecrowd": header, "sha256": _digest(header, content)}
    with atomic_write(path, "wb") as file:
        file.write(to_bytes(content, metadata=metadata))


def load_checkpoint(
    path: str | os.PathLike[str], fingerprint: str, model: NetworkModel, options: TrainerOptions
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
        if header["format"] != FORMAT:
            raise KeyError("format")
        if header["fingerprint"] != fingerprint:
            raise DataError(
                f"The checkpoint {os.fspath(path)} belongs to a fit with other data or parameters; "
                "fit without resume, or give another checkpoint file."
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
        return Resumed(state, optimizer, _under("best.", tensors))
    except DataError:
        raise
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            f"Cannot resume from {os.fspath(path)}: it is cut short, changed or no checkpoint "
            f"({str(error).splitlines()[0]}); fit without resume."
        ) from error


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
