"""Shared parts of the wisecrowd.nn examples: digits with one noisy label each, and the score."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits

from wisecrowd import simulate

N_TRAIN = 1400


class NoisyDigits:
    """Scikit-learn's handwritten digits, each labelled by one of five workers.

    Every worker is right six times in ten, and otherwise confuses a digit with a fixed other one.

    Attributes
    ----------
    labels : CrowdLabels
    confusion : (5, 10, 10)
        True confusion matrices of the workers.
    samples : list
        One ``(x, [(worker, label), ...])`` per training digit, as ``crowd_collate`` takes them.
    """

    def __init__(self) -> None:
        X, self.truth = load_digits(return_X_y=True)
        self.X = torch.tensor(X / 16, dtype=torch.float32)
        workers, truth = 5 * simulate.PairwiseFlippers(0.6), self.truth[:N_TRAIN]
        crowd = simulate.crowd(None, workers, simulate.PerTask(1), truth=truth)
        self.labels, self.confusion = crowd.labels, crowd.confusion
        self.samples: list[tuple[torch.Tensor, list[tuple[int, int]]]]
        self.samples = [(x, []) for x in self.X[:N_TRAIN]]
        edges = zip(self.labels.task, self.labels.worker, self.labels.label, strict=True)
        for task, worker, label in edges:
            self.samples[task][1].append((int(worker), int(label)))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Features, workers, classes."""
        return self.X.shape[1], self.labels.n_workers, self.labels.n_classes

    @torch.no_grad()
    def report(self, network: torch.nn.Module, confusion: torch.Tensor) -> None:
        """Print the accuracy on new digits and the error of the confusion matrices."""
        predicted = network.eval()(self.X[N_TRAIN:]).argmax(dim=1).numpy()
        given = np.mean(self.labels.label == self.truth[self.labels.task])
        error = np.abs(confusion.numpy() - self.confusion).mean()
        print(f"  labels      {given:.1%} correct, one per digit")
        print(f"  new digits  {np.mean(predicted == self.truth[N_TRAIN:]):.1%} correct")
        print(f"  confusion   off by {error:.3f} per entry")
