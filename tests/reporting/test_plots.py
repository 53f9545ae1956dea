from __future__ import annotations

import sys

import numpy as np
import pytest

from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.core.exceptions import (
    DataError,
    MissingDependencyError,
    NotFittedError,
    ParameterError,
)

matplotlib = pytest.importorskip("matplotlib", reason="the plots need matplotlib")


@pytest.fixture(autouse=True)
def no_screen():
    matplotlib.use("Agg")
    yield
    sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="module")
def model(labels):
    return DawidSkene().fit(labels)


def test_workers(model):
    axes = model.plot_workers()
    points = axes.lines[0].get_xydata()
    assert np.array_equal(points[:, 0], model.labels_per_worker_)
    assert np.allclose(points[:, 1], model.worker_accuracy_)
    assert model.plot_workers(axes) is axes


def test_confusion(model, hostile):
    image = model.plot_confusion(3).images[0]
    assert np.allclose(image.get_array(), model.confusion_[3])
    fitted = DawidSkene().fit(hostile)
    fitted.plot_confusion("=cmd()")
    with pytest.raises(DataError, match="no worker 'nobody'"):
        fitted.plot_confusion("nobody")
    with pytest.raises(ParameterError, match="no confusion matrices"):
        MajorityVote().fit(hostile).plot_confusion("=cmd()")


def test_dollar_signs_are_no_formulas():
    from wisecrowd import CrowdLabels

    labels = CrowdLabels.from_arrays([1, 2], ["$w", "$w"], ["$a_", "$b$"])
    axes = DawidSkene().fit(labels).plot_confusion("$w")
    axes.figure.canvas.draw()


def test_convergence(model, labels):
    line = model.plot_convergence().lines[0]
    assert np.allclose(line.get_ydata(), model.history_)
    with pytest.raises(ParameterError, match="no history"):
        MajorityVote().fit(labels).plot_convergence()


def test_before_the_fit_and_without_matplotlib(model, monkeypatch):
    with pytest.raises(NotFittedError):
        DawidSkene().plot_workers()
    pyplot = sys.modules["matplotlib.pyplot"]
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match="pip install matplotlib"):
        model.plot_workers()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
