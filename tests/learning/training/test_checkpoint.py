from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save as to_bytes
from torch import nn

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.inference.monitor import reporting
from wisecrowd.learning import CCEM, MBEM, AggNet, TwoStage, WeightedDoctorNet
from wisecrowd.learning.training.checkpoint import FILE, network_from


def crowd(n=60):
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=n)
    X = np.eye(3)[truth] + 0.4 * rng.normal(size=(n, 3))
    return X, np.where(rng.random((n, 3)) < 0.7, truth[:, None], rng.integers(3, size=(n, 3)))


class KilledError(Exception):
    """Stands for a process that is gone: nothing of the fit goes on."""


def interrupt_at(report_number):
    """Return a listener that lets so many epochs report, and no more."""
    seen = []

    def listen(progress):
        if progress.max_iter < 100:  # an aggregator's own iterations are not meant
            seen.append(progress)
        if len(seen) == report_number:
            raise KilledError

    return listen


def same_model(one, other):
    ours, theirs = one._network.state_dict(), other._network.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    np.testing.assert_array_equal(one.probas_, other.probas_)
    np.testing.assert_array_equal(one.confusion_, other.confusion_)
    assert one.history_ == other.history_
    assert one.best_epoch_ == other.best_epoch_


CASES = {
    "dropout and cosine": (CCEM, {"schedule": "cosine"}),
    "momentum": (CCEM, {"optimizer": "sgd"}),
    "sampling": (CCEM, {"balance": "sampling", "optimizer": "adamw"}),
    "posterior": (AggNet, {"steps": 2}),
    "rounds anew": (MBEM, {"rounds": 2, "reinit": True, "self_train": True}),
    "aggregator": (TwoStage, {"aggregator": "dawid-skene"}),
    "weights": (WeightedDoctorNet, {}),
    "automatic batches": (CCEM, {"batch_size": "auto"}),
    "crowd": (CCEM, {"selection": "crowd", "schedule": "one-cycle"}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_resumed_fit_ends_with_the_same_bits(case, tmp_path):
    kind, settings = CASES[case]
    settings = {"epochs": 6, "lr": 0.02, "batch_size": 16, **settings}
    X, votes = crowd()
    whole = kind(**settings).fit(X, votes)
    path = tmp_path / "fit.checkpoint"
    method = kind(**settings, checkpoint=path)
    with reporting(interrupt_at(4)), pytest.raises(KilledError):
        method.fit(X, votes)
    assert path.exists()
    same_model(method.fit(X, votes, resume=True), whole)


def test_a_fit_that_was_stopped_while_refitting_resumes_there(tmp_path):
    X, votes = crowd()
    settings = {"epochs": 5, "lr": 0.02, "selection": "crowd"}
    whole = CCEM(**settings).fit(X, votes)
    method = CCEM(**settings, checkpoint=tmp_path / "fit")
    with reporting(interrupt_at(5 + 2)), pytest.raises(KilledError):
        method.fit(X, votes)
    assert (tmp_path / "fit.refit").exists()
    epochs = []
    with reporting(lambda progress: epochs.append(progress.iteration)):
        same_model(method.fit(X, votes, resume=True), whole)
    assert epochs == list(range(2, whole.best_epoch_ + 1))  # and none of the first five


def test_patience_is_remembered(tmp_path):
    X, votes = crowd()
    settings = {
        "epochs": 30, "lr": 0.3, "selection": "gold", "patience": 2, "checkpoint": tmp_path / "fit",
    }  # fmt: skip
    truth = votes[:, 0]
    done = CCEM(**settings).fit(X, votes, valid=(X, truth))
    assert done.n_iter_ < 30
    epochs = []
    with reporting(epochs.append):
        again = CCEM(**settings).fit(X, votes, valid=(X, truth), resume=True)
    assert epochs == []
    same_model(again, done)


def test_kill_9_in_the_middle_then_resume_gives_the_same_weights(tmp_path):
    script = """
import os, signal, sys
import numpy as np
from wisecrowd.inference.monitor import reporting
from wisecrowd.learning import AggNet
data = np.load(sys.argv[1])

def kill(progress):
    if progress.iteration == 4:
        os.kill(os.getpid(), signal.SIGKILL)

with reporting(kill):
    AggNet(epochs=7, lr=0.02, checkpoint=sys.argv[2]).fit(data["X"], data["votes"])
"""
    X, votes = crowd()
    np.savez(tmp_path / "data.npz", X=X, votes=votes)
    path = tmp_path / "fit"
    command = [sys.executable, "-c", script, str(tmp_path / "data.npz"), str(path)]
    done = subprocess.run(command, check=False, env=dict(os.environ))
    assert done.returncode == -signal.SIGKILL
    assert set(os.listdir(tmp_path)) == {"data.npz", "fit"}
    resumed = AggNet(epochs=7, lr=0.02, checkpoint=path).fit(X, votes, resume=True)
    same_model(resumed, AggNet(epochs=7, lr=0.02).fit(X, votes))


# ------------------------------------------------------------------------------------- bad files


def interrupted(path, **changes):
    X, votes = crowd()
    method = CCEM(**{"epochs": 4, "module": "linear", "checkpoint": path, **changes})
    with reporting(interrupt_at(3)), pytest.raises(KilledError):
        method.fit(X, votes)
    return method, X, votes


@pytest.mark.parametrize("where", [0.001, 0.2, 0.5, 0.9, 0.9999])
def test_a_changed_byte_is_an_error(where, tmp_path):
    path = tmp_path / "fit"
    method, X, votes = interrupted(path)
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"Cannot resume from .*fit without resume"):
        method.fit(X, votes, resume=True)


@pytest.mark.parametrize("content", [b"", b"\x80\x04.", b"not a checkpoint at all"])
def test_another_file_is_an_error(content, tmp_path):
    path = tmp_path / "fit"
    method, X, votes = interrupted(path)
    path.write_bytes(content)
    with pytest.raises(DataError, match="Cannot resume"):
        method.fit(X, votes, resume=True)


def test_a_file_that_is_cut_short_is_an_error(tmp_path):
    path = tmp_path / "fit"
    method, X, votes = interrupted(path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DataError, match="Cannot resume"):
        method.fit(X, votes, resume=True)


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    path = tmp_path / "fit"
    method, X, votes = interrupted(path)
    other = votes.copy()
    other[0, 0] = (other[0, 0] + 1) % 3
    for changed, features, labels, reason in (
        (
            CCEM(epochs=4, module="linear", lr=0.5, checkpoint=path),
            X,
            votes,
            r"lr 0\.001, now 0\.5",
        ),
        (AggNet(epochs=4, module="linear", checkpoint=path), X, votes, "another method"),
        (method, X, other, "other data"),
        (CCEM(epochs=4, module="linear", checkpoint=path), X + 1e-3, votes, "other data"),
    ):
        with pytest.raises(DataError, match=reason):
            changed.fit(features, labels, resume=True)
    with pytest.raises(DataError, match="other data"):
        method.fit(X, votes, gold={0: 1}, resume=True)


def test_a_checkpoint_is_not_overwritten_if_told_so(tmp_path):
    path = tmp_path / "fit"
    method, X, votes = interrupted(path)
    before = path.read_bytes()
    with pytest.raises(ParameterError, match=r"same data and parameters.*resume=True"):
        method.fit(X, votes, resume=None)
    with pytest.raises(ParameterError, match=r"other data, which reached epoch \d of 4"):
        method.fit(X + 1, votes, resume=None)
    assert path.read_bytes() == before
    path.write_bytes(before[:-9])  # one of ours, cut off
    with pytest.raises(ParameterError, match="not a checkpoint that can be read"):
        method.fit(X, votes, resume=None)
    path.write_bytes(b"whatever")
    for resume in (None, False):
        with pytest.raises(ParameterError, match="is in the way and is not a checkpoint; move it"):
            method.fit(X, votes, resume=resume)
    assert path.read_bytes() == b"whatever"
    path.unlink()
    same_model(method.fit(X, votes, resume=None), CCEM(epochs=4, module="linear").fit(X, votes))


def make_linear(shape, n_classes):
    return torch.nn.Linear(shape[0], n_classes)


def test_a_function_that_makes_the_module_may_be_another_object(tmp_path):
    path = tmp_path / "fit"
    _, X, votes = interrupted(path, module=make_linear)
    namespace = {"torch": torch}
    exec(  # the same function, as another process would define it
        "def make_linear(shape, n_classes):\n    return torch.nn.Linear(shape[0], n_classes)",
        namespace,
    )
    again = CCEM(epochs=4, module=namespace["make_linear"], checkpoint=path)
    again.fit(X, votes, resume=True)
    assert again.n_iter_ == 4


def test_resuming_needs_a_file_name_and_a_seed(tmp_path):
    X, votes = crowd()
    with pytest.raises(ParameterError, match="set checkpoint to its file"):
        CCEM(epochs=1).fit(X, votes, resume=True)
    with pytest.raises(ParameterError, match="random_state is None"):
        CCEM(epochs=1, checkpoint=tmp_path / "x", random_state=None).fit(X, votes, resume=True)


def test_without_a_file_there_is_nothing_to_resume_and_the_fit_starts(tmp_path):
    X, votes = crowd()
    fresh = CCEM(epochs=2, checkpoint=tmp_path / "fit").fit(X, votes, resume=True)
    same_model(fresh, CCEM(epochs=2).fit(X, votes))


def test_without_resume_an_old_checkpoint_is_not_read(tmp_path):
    path = tmp_path / "fit"
    method, X, votes = interrupted(path)
    path.write_bytes(path.read_bytes()[:-9])
    same_model(method.fit(X, votes), CCEM(epochs=4, module="linear").fit(X, votes))


def file_of(**weights):
    return {FILE: to_bytes({name: torch.tensor(value) for name, value in weights.items()})}


GOOD = {"weight": [[1.0, 2.0]], "bias": [-torch.inf]}  # the logarithm of zero is allowed


@pytest.mark.parametrize("trial", [True, False])
def test_the_network_has_the_weights_of_the_file(trial):
    before = torch.get_rng_state()
    network = network_from(file_of(**GOOD), lambda: nn.Linear(2, 1), trial=trial)
    assert network.weight.tolist() == GOOD["weight"]
    assert network.bias.tolist() == GOOD["bias"]
    assert not network.training
    assert torch.equal(torch.get_rng_state(), before)  # the first weights were drawn in private


def test_another_size_is_refused_before_the_network_is_made():
    devices = []

    def make():
        network = nn.Linear(3, 1)
        devices.append(network.weight.device.type)
        return network

    with pytest.raises(DataError, match="weight is of another shape"):
        network_from(file_of(**GOOD), make, trial=True)
    assert devices == ["meta"]
    with pytest.raises(DataError, match="does not fit the network"):
        network_from(file_of(**GOOD), make, trial=False)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_not_numbers_are_refused(value):
    bad = {**GOOD, "bias": [value]}
    with pytest.raises(DataError, match=r"bias in .* is NaN or infinite"):
        network_from(file_of(**bad), lambda: nn.Linear(2, 1), trial=True)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "is missing"),
        ({FILE: b"garbage"}, "does not fit the network"),
        (file_of(weight=[[1.0, 2.0]]), "bias is of another shape"),
    ],
)
def test_a_file_that_is_missing_damaged_or_short_is_refused(files, message):
    with pytest.raises(DataError, match=message):
        network_from(files, lambda: nn.Linear(2, 1), trial=True)
