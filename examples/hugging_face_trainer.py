"""The parts of wisecrowd.nn with Hugging Face's Trainer; needs transformers.

A model for the Trainer is a module that takes a batch as keywords and returns its loss. Any
encoder can replace the small network used here.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import torch
from noisy_digits import NoisyDigits

from wisecrowd import nn as crowd_nn

try:
    import accelerate  # noqa: F401  the Trainer needs it
    from transformers import Trainer, TrainingArguments, set_seed
except ImportError:
    print("This example needs transformers and accelerate; install both; nothing was run.")
    sys.exit(0)

EPOCHS = 40
KEYWORDS = ("x", "rows", "task", "worker", "label")


class CrowdClassifier(torch.nn.Module):
    """A classifier with one confusion matrix per worker."""

    def __init__(self, n_features: int, n_workers: int, n_classes: int) -> None:
        super().__init__()
        self.network = crowd_nn.MLP(n_features, n_classes)
        self.head = crowd_nn.SoftplusConfusion(n_workers, n_classes)

    def forward(self, **parts: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return loss and logits of a batch of tasks with their annotations."""
        batch = crowd_nn.CrowdBatch(**parts)
        logits = self.network(batch.x)
        rows = self.head.rows(batch.worker, batch.label)
        loss = crowd_nn.coupled_cross_entropy(logits.log_softmax(dim=1), rows, batch)
        return {"loss": loss + 0.01 * crowd_nn.mean_trace(self.head.table()), "logits": logits}


def collate(samples: list[Any]) -> dict[str, torch.Tensor]:
    """Return a batch of tasks as the keywords of ``forward``."""
    batch = crowd_nn.crowd_collate(samples)
    return {name: getattr(batch, name) for name in KEYWORDS}


def main() -> None:
    """Train on one noisy label per digit, and print how well digits and workers are learned."""
    set_seed(0)
    digits = NoisyDigits()
    model = CrowdClassifier(*digits.sizes)
    network, head = model.network.parameters(), model.head.parameters()
    optimizer = torch.optim.Adam([{"params": network, "lr": 2e-3}, {"params": head, "lr": 1e-2}])
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, num_train_epochs=EPOCHS, per_device_train_batch_size=64, use_cpu=True,
            lr_scheduler_type="constant", report_to=[], save_strategy="no",
            logging_strategy="no", disable_tqdm=True, remove_unused_columns=False,
        )  # fmt: skip
        trainer = Trainer(
            model, arguments, train_dataset=digits.samples, data_collator=collate,
            optimizers=(optimizer, None),
        )  # fmt: skip
        trainer.train()
    digits.report(model.network, model.head.table())


if __name__ == "__main__":
    main()
