"""Draw the pictures of the recipes: ``python docs/_site/recipe_pictures.py``; needs matplotlib."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import wisecrowd as wc
from wisecrowd import simulate

FOLDER = Path(__file__).parents[1] / "recipes"
BLUE, GREY = "#3f51b5", "#9e9e9e"


def main() -> None:
    """Draw every picture from the crowd of its recipe."""
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "wisecrowd", "font.size": 9})
    for name, draw in PICTURES.items():
        figure = Figure(figsize=(5.4, 2.8), layout="constrained")
        axes = figure.subplots()
        draw(axes)
        figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None, "Creator": None})


def intervals(axes: Any, names: Any, middle: Any, low: Any, high: Any, zero: float) -> None:
    """Draw a dot and a line per row, the first one on top."""
    rows = np.arange(len(names))
    axes.hlines(rows, low, high, color=BLUE, linewidth=2)
    axes.plot(middle, rows, "o", color=BLUE)
    axes.axvline(zero, color=GREY, linewidth=1)
    axes.set_yticks(rows, names)
    axes.invert_yaxis()


def arena(axes: Any) -> None:
    """Draw the scores of the models, with intervals."""
    people = simulate.VoteWorkers(adversaries=0.1, tie_level=-1.0)
    model = wc.aggregation.AutoPairs().fit(
        simulate.votes(6, 30, 1200, people, random_state=4).pairs
    )
    order = np.argsort(-model.scores_)
    names = [f"model {model.items_[i]}" for i in order]
    intervals(axes, names, model.scores_[order], model.low_[order], model.high_[order], 0.0)
    axes.set_xlabel("score in logits, with its 95% interval")


def confusion(axes: Any) -> None:
    """Draw the confusion matrix of one expert."""
    names = ["benign", "unclear", "malignant"]
    crowd = simulate.crowd(
        240, 3 * simulate.DirichletWorkers(6, 1), simulate.Dense(), classes=names, random_state=5
    )
    model = wc.aggregation.DawidSkene().fit(crowd.labels)
    model.plot_confusion(model.workers_[0], ax=axes)


def moderators(axes: Any) -> None:
    """Draw the accuracy of the moderators."""
    workers = 12 * simulate.TwoCoinWorkers(7, 3, 18, 2) + 4 * simulate.Spammers()
    crowd = simulate.crowd(
        500, workers, simulate.PerTask(5), classes=["ok", "toxic"], class_prior=[0.9, 0.1],
        random_state=3,
    )  # fmt: skip
    model = wc.aggregation.DawidSkene().fit(crowd.labels)
    order = np.argsort(-model.worker_accuracy_)
    middle, error = model.worker_accuracy_[order], 1.96 * model.worker_accuracy_error_[order]
    names = [str(model.workers_[i]) for i in order]
    intervals(axes, names, middle, middle - error, np.minimum(middle + error, 1), 0.9)
    axes.set_xlabel("accuracy; the line is what calling everything ok would reach")
    axes.set_ylabel("moderator")
    axes.tick_params(axis="y", labelsize=6)


def bias(axes: Any) -> None:
    """Draw the bias of the raters."""
    made = simulate.graded_responses(250, 15, simulate.PerTask(3), bias=0.6, random_state=1)
    model = wc.aggregation.OrdinalLatent().fit(made.labels)
    order = np.argsort(model.bias_)
    axes.bar([str(model.workers_[i]) for i in order], model.bias_[order], color=BLUE)
    axes.axhline(0, color=GREY, linewidth=1)
    axes.set_xlabel("rater")
    axes.set_ylabel("bias: strict below, kind above")


PICTURES = {"arena": arena, "confusion": confusion, "moderators": moderators, "bias": bias}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
