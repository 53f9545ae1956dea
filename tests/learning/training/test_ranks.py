"""Training on several processes: the result of one, and what is refused."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.cli.main import run
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdError, WisecrowdWarning
from wisecrowd.core.settings import with_settings

torch = pytest.importorskip("torch")

from wisecrowd.learning import MBEM, AggNet, VirtualAdversarial  # noqa: E402
from wisecrowd.learning.training import ranks  # noqa: E402
from wisecrowd.learning.training.ranks import Ranks, over_ranks, require_able  # noqa: E402
from wisecrowd.nn.batches import CrowdBatch  # noqa: E402

SOURCE = Path(wc.__file__).parent.parent


def write_crowd(folder: Path) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=75)  # of two processes one has a padded part
    X = np.eye(3)[truth] + 0.5 * rng.normal(size=(75, 3))
    np.save(folder / "x.npy", X.astype(np.float32))
    lines = [f"{i},w{j},{truth[i] if (i + j) % 4 else j}" for i in range(75) for j in range(3)]
    (folder / "labels.csv").write_text("\n".join(["task,worker,label", *lines]))


def command(output: str) -> list[str]:
    options = ["-m", "agg-net", "-p", "module=linear", "-p", "batch_size=25", "--epochs", "2"]
    options += ["-p", "optimizer=sgd"]  # Adam would not notice gradients of half the size
    return ["train", "x.npy", "labels.csv", *options, "--valid-from-crowd", "-o", output]


def environment(rank: int, port: int) -> dict[str, str]:
    return {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "RANK": str(rank),
        "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1",
    }  # fmt: skip


def test_two_processes_reach_the_weights_of_one_and_the_first_one_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_crowd(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run([*command("one"), "--quiet"]) == 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    other = subprocess.Popen(
        [sys.executable, "-m", "wisecrowd", *command("two")],
        env={**os.environ, **environment(1, port), "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    with monkeypatch.context() as here:
        for name, value in environment(0, port).items():
            here.setenv(name, value)
        code = run(command("two"))
    said, _ = other.communicate(timeout=60)
    assert (code, other.returncode, said) == (0, 0, "")
    assert "saved the model in two" in capsys.readouterr().err
    assert not torch.distributed.is_initialized()
    assert not list(tmp_path.glob("*.checkpoint*"))
    alone, together = (log.read_text().splitlines() for log in map(Path, LOGS))
    assert len(together) == len(alone) >= 2  # the epochs of selection and refit, each once
    one: Any = wc.load("one")
    two: Any = wc.load("two")
    for left, right in zip(
        one._network.state_dict().values(), two._network.state_dict().values(), strict=True
    ):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-5)
    np.testing.assert_allclose(one.probas_, two.probas_, atol=1e-5)


LOGS = "one.log.jsonl", "two.log.jsonl"


@dataclass(frozen=True, eq=False)
class Alike(Ranks):
    """Processes that all have what this one has, except those of ``other``."""

    other: Any = None

    def gather(self, part: Any, n_rows: int) -> Any:
        parts = [part] * self.size
        if self.other is not None:
            parts[self.other] = part + 1
        return torch.cat(parts)[:n_rows]

    def average_gradients(self, network: Any) -> None:
        """All have the same."""


def test_parts_have_equal_lengths_and_cover_all_rows() -> None:
    parts = [Ranks(rank, 3, None).part(torch.arange(7)).tolist() for rank in range(3)]
    assert parts == [[0, 1, 2], [3, 4, 5], [6, 6, 6]]
    assert Ranks(1, 2, None).part(torch.tensor([5])).tolist() == [5]


def test_padding_has_no_gradient_and_own_rows_count_once_per_process() -> None:
    batch = CrowdBatch(torch.ones(2, 1), torch.arange(3), *torch.zeros(3, 1, dtype=torch.long))
    weight = torch.ones(1, requires_grad=True)
    with with_settings(ranks=Alike(1, 2, None)):  # its second row is padding
        outputs = over_ranks(lambda x: x * weight, batch)
    assert outputs.shape == (3, 1)
    outputs.sum().backward()
    assert weight.grad.tolist() == [2.0]


def test_dropout_differs_between_processes_and_batches_and_spares_the_generator() -> None:
    x = torch.ones(1, 200)
    masks = {}
    torch.manual_seed(0)
    before = torch.get_rng_state()
    for rank in range(2):
        for first in (0, 4):
            batch = CrowdBatch(x, torch.tensor([first, 9]), *torch.zeros(3, 1, dtype=torch.long))
            with with_settings(ranks=Alike(rank, 2, None)):
                masks[rank, first] = over_ranks(torch.nn.functional.dropout, batch)[0]
    assert len({tuple(mask.tolist()) for mask in masks.values()}) == 4
    assert torch.equal(before, torch.get_rng_state())


def test_a_process_with_other_parameters_is_named() -> None:
    model = torch.nn.Linear(2, 1)
    with with_settings(ranks=Alike(0, 3, None)):
        ranks.require_equal_state(model, 1.0)
    with (
        with_settings(ranks=Alike(0, 3, None, other=2)),
        pytest.raises(DataError, match="Process 2 of 3 has parameters that differ"),
    ):
        ranks.require_equal_state(model, 1.0)


class Silent:
    """A store in which only this process reports itself."""

    def set(self, key: str, value: str) -> None:
        self.key = key

    def check(self, keys: list[str]) -> bool:
        return keys == [self.key]


def test_a_lost_process_is_named_with_the_way_to_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "GRACE", 0.1)
    some = Ranks(0, 3, Silent())
    with (
        pytest.raises(WisecrowdError, match=r"Process 1, 2 of 3 does not answer process 0 \(gone"),
        some._named_failures(),
    ):
        raise RuntimeError("gone\nwith a stack")


def test_methods_and_modules_that_need_one_process_are_refused() -> None:
    require_able(AggNet)
    with pytest.raises(ParameterError, match=re.escape("virtual-adversarial trains in one")) as no:
        require_able(VirtualAdversarial)
    assert "agg-net" in str(no.value)
    assert "raykar," not in str(no.value)
    norm = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    ranks.require_rows_apart(norm)
    with (
        with_settings(ranks=Alike(0, 2, None)),
        pytest.raises(ParameterError, match="batch norm"),
    ):
        ranks.require_rows_apart(norm)


def test_another_number_of_processes_resumes_and_says_that_bits_change(tmp_path: Path) -> None:
    X = np.repeat(np.eye(2), 6, axis=0)
    votes = np.repeat([[0, 0, 1], [1, 1, 0]], 6, axis=0)
    options: dict[str, Any] = {"module": "linear", "checkpoint": str(tmp_path / "state")}
    with with_settings(ranks=Alike(0, 2, None)):
        MBEM(**options, epochs=3, selection="last").fit(X, votes)
    with pytest.warns(WisecrowdWarning, match=r"a training in 2 processes, and it continues in 1"):
        MBEM(**options, epochs=3, selection="last").fit(X, votes, resume=True)
    (tmp_path / "state").unlink()
    with with_settings(ranks=Alike(1, 2, None)):  # only the first process writes
        MBEM(**options, epochs=3, selection="last").fit(X, votes)
    assert not (tmp_path / "state").exists()
