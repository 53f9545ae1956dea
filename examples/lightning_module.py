"""The parts of wisecrowd.nn in a Lightning module; needs pytorch-lightning."""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Any

import torch
from noisy_digits import NoisyDigits
from torch.utils.data import DataLoader

from wisecrowd import nn as crowd_nn

try:
    from pytorch_lightning import LightningModule, Trainer, seed_everything
except ImportError:
    print("This example needs pytorch-lightning, which is not installed; nothing was run.")
    sys.exit(0)

EPOCHS = 40


class CrowdModule(LightningModule):
    """A classifier with one confusion matrix per worker."""

    def __init__(self, n_features: int, n_workers: int, n_classes: int) -> None:
        super().__init__()
        self.network = crowd_nn.MLP(n_features, n_classes)
        self.head = crowd_nn.SoftplusConfusion(n_workers, n_classes)

    def training_step(self, batch: crowd_nn.CrowdBatch, _number: int) -> torch.Tensor:
        """Return the trace-regularised loss of a batch of tasks."""
        log_probas = self.network(batch.x).log_softmax(dim=1)
        rows = self.head.rows(batch.worker, batch.label)
        loss = crowd_nn.coupled_cross_entropy(log_probas, rows, batch)
        return loss + 0.01 * crowd_nn.mean_trace(self.head.table())

    def transfer_batch_to_device(
        self, batch: crowd_nn.CrowdBatch, device: Any, dataloader_idx: int
    ) -> crowd_nn.CrowdBatch:
        """Move a batch of tasks and their annotations to the device."""
        return batch.to(device)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Use a higher learning rate for the worker parameters than for the network."""
        network, head = self.network.parameters(), self.head.parameters()
        return torch.optim.Adam([{"params": network, "lr": 2e-3}, {"params": head, "lr": 1e-2}])


def main() -> None:
    """Train on one noisy label per digit, and print how well digits and workers are learned."""
    warnings.simplefilter("ignore")  # Lightning's advice on data-loading processes
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    seed_everything(0, verbose=False)
    digits = NoisyDigits()
    batches = DataLoader(
        digits.samples, batch_size=64, shuffle=True, collate_fn=crowd_nn.crowd_collate
    )
    module = CrowdModule(*digits.sizes)
    trainer = Trainer(
        max_epochs=EPOCHS, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(module, batches)
    digits.report(module.network, module.head.table())


if __name__ == "__main__":
    main()
