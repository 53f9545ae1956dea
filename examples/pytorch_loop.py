"""The parts of wisecrowd.nn in a plain PyTorch loop: a classifier with confusion matrices."""

from __future__ import annotations

import torch
from noisy_digits import NoisyDigits
from torch.utils.data import DataLoader

from wisecrowd import nn as crowd_nn

EPOCHS = 40


def main() -> None:
    """Train on one noisy label per digit, and print how well digits and workers are learned."""
    torch.manual_seed(0)
    digits = NoisyDigits()
    n_features, n_workers, n_classes = digits.sizes
    # A batch has some tasks with all their annotations.
    batches = DataLoader(
        digits.samples, batch_size=64, shuffle=True, collate_fn=crowd_nn.crowd_collate
    )
    network = crowd_nn.MLP(n_features, n_classes)
    # One confusion matrix per worker; its rows stay probabilities.
    head = crowd_nn.SoftplusConfusion(n_workers, n_classes)
    optimizer = torch.optim.Adam(
        [{"params": network.parameters(), "lr": 2e-3}, {"params": head.parameters(), "lr": 1e-2}]
    )
    for _ in range(EPOCHS):
        for batch in batches:
            log_probas = network(batch.x).log_softmax(dim=1)
            # The classifier and the worker's confusion matrix give the probability of a label.
            # The trace penalty selects the least reliable workers that explain the labels.
            rows = head.rows(batch.worker, batch.label)
            loss = crowd_nn.coupled_cross_entropy(log_probas, rows, batch)
            loss = loss + 0.01 * crowd_nn.mean_trace(head.table())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    digits.report(network, head.table())


if __name__ == "__main__":
    main()
