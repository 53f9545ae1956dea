"""PreferenceNet: the reward of items from their features and noisy votes on pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.parameter_checks import Choice, Limits, check_number
from wisecrowd.core.saved_attributes import Saved, SavedValue
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.learning.pairs.item_learner import (
    ItemLearner,
    LearnedReward,
    PairTraining,
    left_share,
)
from wisecrowd.learning.training.crowd_data import Features, outputs_of
from wisecrowd.learning.training.network_training import (
    ScalarTraining,
    as_array,
    choose_device,
)
from wisecrowd.learning.training.trainer import NetworkModel
from wisecrowd.nn.backbones import AffineOutput
from wisecrowd.nn.batches import PairBatch
from wisecrowd.nn.heads import WorkerReliability
from wisecrowd.nn.objectives import (
    conservative_preference_loss,
    preference_loss,
    robust_preference_loss,
    worker_preference_loss,
)

LOSSES = ("per-worker", "plain", "robust", "conservative")
WITH_RATE = ("robust", "conservative")


@dataclass(eq=False, repr=False, kw_only=True)
class PreferenceNet(ScalarTraining, ItemLearner):
    r"""A reward of item features, learnt from votes together with the reliability of workers.

    .. math::
        p_j(l \succ r) = \eta_j \sigma(d) + (1 - \eta_j) \sigma(-d), \qquad
        d = f(x_l) - f(x_r), \qquad \eta_j \sim \mathrm{Beta}(1 + a, 1 + b)

    The network runs once per item of a batch. Ties count half for each side. The reliabilities
    :math:`\eta_j` start at 0.9, are frozen in the first epoch, and have a learning rate of their
    own. The other losses have one flip rate for all votes, or none.

    Use it when items have features, new items must be scored, and some workers vote carelessly or
    the wrong way round. Cost per epoch: that of the network on the items of each batch, plus
    O(votes).

    Parameters
    ----------
    loss : {"per-worker", "plain", "robust", "conservative"}
        Likelihood with a reliability per worker; logistic loss; unbiased loss for one known flip
        rate; label smoothing by that rate.
    flip_rate : float, optional
        Share of votes for the wrong side, for "robust" and "conservative"; below 0.5.
    reliability_prior : (float, float)
        :math:`(a, b)`, pseudo-votes that agree and disagree with the reward.
    module : str, torch module, or callable
        "linear" by default, "mlp", a module with one output, or a function of
        ``(shape, n_outputs)`` that makes one.
    batch_size : int or "auto"
        Number of votes per batch. "auto" is 64, and 256 from 10,000 votes;
        the learning rates are then twice those given.
    selection : {"auto", "last", "crowd"}
        Epoch to keep: the last one by default, because the objective of "linear" has one optimum;
        that with the most likely held-out votes ("crowd"); or as in ``NeuralClassifier`` ("auto").
    **others
        Parameters of ``NeuralClassifier``: epochs, lr, crowd_lr, weight_decay, checkpoint ...

    Attributes
    ----------
    scores_ : (n_items,)
        Rewards in logits, mean 0 over the compared items.
    rank_ : (n_items,)
    reliability_, worker_accuracy_ : (n_workers,), for "per-worker"
    best_epoch_, selection_, input_shape_

    Notes
    -----
    The paper learns an ensemble and clusters workers; here the likelihood of each worker's votes
    has its own flip probability. If votes are mostly turned around, reward and reliabilities are
    mirrored, and a finding reports it.

    References
    ----------
    Chhan, Novoseller and Lawhern (2024). Crowd-PrefRL: preference-based reward learning from
    crowds. arXiv 2401.10941.
    Chen, Bennett, Collins-Thompson and Horvitz (2013). Pairwise ranking aggregation in a
    crowdsourced setting. WSDM.

    Examples
    --------
    >>> X = np.arange(4.0).reshape(4, 1)
    >>> left, right = np.repeat([0, 1, 2], 20), np.repeat([1, 2, 3], 20)
    >>> votes = (np.tile(["ann", "bob"], 30), left, right, np.full(60, "right"))
    >>> PreferenceNet(epochs=5).fit(X, votes).rank_
    array([4, 3, 2, 1])
    """

    loss: str = "per-worker"
    flip_rate: float | None = None
    reliability_prior: Any = (1.0, 1.0)
    module: Any = "linear"
    epochs: int = 40
    lr: float = 1e-2
    crowd_lr: float = 1e-1
    schedule: str = "cosine"
    selection: str = "last"

    saves: ClassVar[dict[str, Saved]] = {
        "selection_": SavedValue(lambda value: value in ("last", "crowd"), "last or crowd"),
    }

    limits: ClassVar[Limits] = {
        "loss": Choice(LOSSES),
        "selection": Choice(("auto", "last", "crowd")),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        if self.loss in WITH_RATE:
            if self.flip_rate is None:
                raise ParameterError(
                    f"loss is {self.loss!r} and flip_rate is missing; give the share of votes for "
                    "the wrong side, or choose loss 'per-worker', which estimates it."
                )
            check_number("flip_rate", self.flip_rate, 0.0, 0.5)
            if self.flip_rate >= 0.5:
                raise ParameterError(
                    f"flip_rate is {self.flip_rate!r}: such votes say nothing, or the opposite; "
                    "give a number below 0.5."
                )
        elif self.flip_rate is not None:
            raise ParameterError(
                f"flip_rate is {self.flip_rate!r} and loss is {self.loss!r}, which has none; leave "
                "it out, or choose robust or conservative."
            )
        if self.loss == "robust" and self.weight_decay == 0 and self.clip_gradient is None:
            raise ParameterError(
                "The robust loss falls without end for large margins; give a positive "
                "weight_decay, or clip_gradient."
            )
        prior = self.reliability_prior
        if not isinstance(prior, tuple | list) or len(prior) != 2:
            raise ParameterError(
                f"reliability_prior is {prior!r}; give two numbers, such as (1, 1)."
            )
        for value in prior:
            check_number("reliability_prior", value, 0.0)

    # ---------------------------------------------------------------------------------------- fit

    def _fit(self, training: PairTraining) -> LearnedReward:
        selection = self._selection(training, training.labels.n_annotations)
        device = choose_device(self.device)
        self._require_resumable(training.resume)
        data = PairData(training.X, training.labels, device=device)
        useful = torch.from_numpy(np.flatnonzero(training.labels.weights > 0))
        with self._own_generator(device):
            run = self._train(training, data, useful, selection)
        model: RewardModel = run.model
        turned = model.turn(training.labels.worker, training.labels.weights)
        network = model.network.eval().to("cpu")
        outcome = self._outcome_of(run, selection, data.features.shape)
        outcome["findings"] += turned
        reliability = None if model.workers is None else as_array(model.workers.table())
        return LearnedReward(
            outputs_of(network, data.features), reliability, private={"network": network}, **outcome
        )

    def _new_model(self, data: PairData, seen: PairData) -> RewardModel:
        network = self._started_network(data.features, "the reward")
        if self.module == "linear":  # few votes must not leave the scores of a random start
            for layer in network.modules():
                if isinstance(layer, nn.Linear):
                    nn.init.zeros_(layer.weight)
        return RewardModel(network, data, self)

    def _score(
        self, model: RewardModel, data: PairData, rows: Tensor, valid: Tensor | None, known: Any
    ) -> float:
        """Return the mean log-likelihood of the held-out votes."""
        assert valid is not None
        return model.likelihood(data, valid)

    # --------------------------------------------------------------------------------- afterwards

    def _rewards(self, X: Any) -> Floats:
        return outputs_of(self._network, self._new_features(X))


class RewardModel(NetworkModel):
    """A network with one output, and a loss over votes.

    Attributes
    ----------
    workers : WorkerReliability or None
        The reliabilities, for the loss "per-worker".
    """

    network: AffineOutput
    workers: WorkerReliability | None

    def __init__(self, network: AffineOutput, data: PairData, options: PreferenceNet) -> None:
        super().__init__(network)
        per_worker = options.loss == "per-worker"
        self.workers = WorkerReliability(data.votes.n_workers) if per_worker else None
        self.kind, self.flip_rate = options.loss, options.flip_rate
        self.prior = tuple(map(float, options.reliability_prior))
        self.n_votes = float(data.votes.weights.sum())
        self.frozen = False

    def begin_epoch(self, epoch: int, data: Any) -> None:
        """Freeze the reliabilities in the first epoch, in which the reward is not known yet."""
        self.frozen = epoch == 0

    def vote_losses(self, margin: Tensor, batch: PairBatch) -> Tensor:
        """Return (E,) losses of votes whose winner leads by a margin."""
        if self.workers is not None:
            logit = self.workers(batch.worker)
            return worker_preference_loss(margin, logit.detach() if self.frozen else logit)
        if self.kind == "robust":
            return robust_preference_loss(margin, self.flip_rate)
        if self.kind == "conservative":
            return conservative_preference_loss(margin, self.flip_rate)
        return preference_loss(margin)

    def loss(self, batch: PairBatch) -> Tensor:
        """Return the mean loss of the votes and, of the prior, the share of one vote."""
        margin = batch.margins(self.network(batch.x))
        total = batch.split(self.vote_losses(margin, batch), self.vote_losses(-margin, batch))
        if self.workers is None or self.frozen:
            return total
        return total - self.workers.log_prior(*self.prior) / self.n_votes

    @torch.inference_mode()
    def likelihood(self, data: PairData, rows: Tensor) -> float:
        """Return the mean log-likelihood of some votes; a flip rate takes part in it."""
        self.eval()
        total = weight = 0.0
        for batch in data.batches(rows, 4096):
            margin = batch.margins(self.network(batch.x))
            if self.workers is not None:
                logit = self.workers(batch.worker)
            else:
                kept = 1 - (self.flip_rate or 0.0)
                logit = torch.logit(torch.full_like(margin, min(kept, 1 - 1e-6)))
            won = worker_preference_loss(margin, logit)
            lost = worker_preference_loss(-margin, logit)
            each = torch.ones_like(margin) if batch.weight is None else batch.weight
            total -= float((each * (batch.share * won + (1 - batch.share) * lost)).sum())
            weight += float(each.sum())
        return total / max(weight, 1e-12)

    @torch.no_grad()
    def turn(self, worker: NDArray[Any], weight: Floats) -> tuple[Finding, ...]:
        """Mirror reward and reliabilities if most votes would be turned around, and report it."""
        if self.workers is None:
            return ()
        kept = float(np.average(as_array(self.workers.table())[worker], weights=weight))
        if kept >= 0.5:
            return ()
        self.workers.logit.neg_()
        self.network.move(scale=-1.0)
        text = (
            f"Only {kept:.0%} of the votes agreed with the direction that training found, so the "
            "reward was mirrored; check on a few known pairs that the right side wins."
        )
        return (Finding("mirrored-reward", "high", 1 - kept, (), text, ""),)


class PairData:
    """Features of items and votes, cut into batches of votes.

    Attributes
    ----------
    features : Features
    votes : CrowdPairs
        Item ``a`` is row ``a`` of the features.
    """

    def __init__(self, X: Any, votes: CrowdPairs, *, device: Any = "cpu") -> None:
        self.features = X if isinstance(X, Features) else Features(X)
        self.votes, self.device = votes, torch.device(device)
        self._left = torch.from_numpy(votes.left.astype(np.int64))
        self._right = torch.from_numpy(votes.right.astype(np.int64))
        self._worker = torch.from_numpy(votes.worker.astype(np.int64))
        self._share = torch.tensor(left_share(votes), dtype=torch.float32)
        weight = votes.weight
        self._weight = None if weight is None else torch.tensor(weight, dtype=torch.float32)

    def only(self, rows: Tensor) -> PairData:
        """Return a part with these votes; batches still take rows of the whole."""
        return self

    def batch(self, rows: Tensor) -> PairBatch:
        """Return some votes with the features of their items."""
        both = torch.cat([self._left[rows], self._right[rows]])
        items, place = torch.unique(both, return_inverse=True)
        return PairBatch(
            self.features[items],
            place[: len(rows)],
            place[len(rows) :],
            self._worker[rows],
            self._share[rows],
            None if self._weight is None else self._weight[rows],
        ).to(self.device)

    def batches(self, rows: Tensor, size: int) -> Iterator[PairBatch]:
        """Split rows into batches of nearly equal size."""
        for part in torch.tensor_split(rows, max(1, -(-len(rows) // size))):
            yield self.batch(part)

    def arrays(self) -> Iterator[NDArray[Any]]:
        """Return everything but the features, for the fingerprint of a checkpoint."""
        votes = self.votes
        yield from (votes.worker, votes.left, votes.right, votes.outcome)
        yield np.zeros(0) if votes.weight is None else votes.weight
