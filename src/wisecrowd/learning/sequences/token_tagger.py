"""TokenTagger: any encoder of tokens, trained on the tags that a crowd supports."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wisecrowd.core.exceptions import DataError, ParameterError, not_fitted
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.parameter_checks import check_flag, check_integer, check_number
from wisecrowd.core.registry import get_method
from wisecrowd.core.types import Floats, Longs
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kernels import kernels_for
from wisecrowd.kinds.sequences.answers import joined
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.methods.marked_spans import span_confidence
from wisecrowd.kinds.sequences.metrics import span_scores
from wisecrowd.kinds.sequences.tag_scheme import TagScheme
from wisecrowd.kinds.sequences.tag_texts import in_bio, tags_in
from wisecrowd.learning.training.checkpoint import FILE, network_from
from wisecrowd.learning.training.trainer import own_random_numbers
from wisecrowd.storage.models import load_state, save_state

Batch = tuple[Tensor, Tensor]  # padded features and mask
KIND = "token-tagger"
LEAST = 1e-12


@dataclass(eq=False, kw_only=True)
class TokenTagger:
    r"""A tagger of texts, trained on the crowd's probabilities of tags instead of votes.

    .. math::
        \min_f \; -\sum_{it} \sum_k q_{it}(k) \log f_k(x_{it}), \qquad
        \hat z_i = \arg\max_{z \text{ legal}} \sum_t \log f_{z_t}(x_{it})

    with :math:`q_{it}` the probabilities (``marginals_``) of a method for sequences. With several
    rounds, the output of the tagger is the prior of the method's next fit, as in AggNet, and its
    new probabilities are the next targets.

    Use it when texts have features or token ids, and new texts must be tagged without workers.
    Cost: that of the encoder on all tokens in every epoch, plus one fit of the method per round.

    Parameters
    ----------
    module : torch module
        Maps (batch, length) token ids or (batch, length, n_features) features, padded with zeros,
        to (batch, length, dim). A ``forward`` with an argument ``mask`` gets (batch, length), True
        for tokens. The module is copied.
    head : bool
        Whether a linear layer is added behind it. Without one, its outputs are the logits of
        ``classes_``.
    method : method for sequences, or its name
    soft : bool
        Whether to learn the probabilities of tags, or the method's best tags.
    rounds : int
        Fits of the method; 1 does not feed the tagger back.
    epochs : int
        Passes over the texts in every round.
    batch_size : int
        Texts per step.
    lr, weight_decay : float
        Of AdamW.
    random_state : int

    Attributes
    ----------
    classes_, scheme_
        Tags and their scheme.
    method_ : fitted method
        The last fit; ``method_.tags_`` are the answers to the training texts. None after loading.
    network_ : torch module
    history_ : tuple of float
        Mean loss of every epoch.

    References
    ----------
    S. Albarqouni et al. (2016). AggNet: deep learning from crowds for mitosis detection in breast
    cancer histology images. IEEE TMI, for the alternation.
    E. Simpson and I. Gurevych (2019). A Bayesian approach for sequence tagging with crowds. EMNLP,
    1093-1104, for a tagger within the aggregation.

    Examples
    --------
    >>> tags = ["B-PER O O", "B-PER O O", "O O B-PER", "O O B-PER"]
    >>> X = [[3, 1, 2], [1, 2, 3]]  # token ids; 0 is padding
    >>> data = CrowdSequences.from_arrays(["s", "s", "t", "t"], ["ann", "bob"] * 2, tags)
    >>> model = TokenTagger(module=nn.Embedding(5, 8), epochs=60, lr=0.05).fit(X, data)
    >>> model.predict([[2, 3, 1, 1]])
    ['O B-PER O O']
    """

    module: nn.Module
    head: bool = True
    method: Any = "bsc"
    soft: bool = True
    rounds: int = 1
    epochs: int = 20
    batch_size: int = 16
    lr: float = 1e-3
    weight_decay: float = 0.0
    random_state: int = 0
    classes_: NDArray[Any] = field(init=False, repr=False)
    scheme_: str = field(init=False, repr=False)
    method_: Any = field(init=False, repr=False)
    network_: nn.Module = field(init=False, repr=False)
    history_: tuple[float, ...] = field(init=False, repr=False)

    def _validate(self) -> None:
        if not isinstance(self.module, nn.Module):
            raise ParameterError(f"module is {self.module!r}; give a torch module.")
        for name in ("rounds", "epochs", "batch_size"):
            check_integer(name, getattr(self, name), 1)
        check_number("lr", self.lr, 1e-12)
        check_number("weight_decay", self.weight_decay, 0.0)
        check_integer("random_state", self.random_state, 0)
        check_flag("head", self.head)
        check_flag("soft", self.soft)

    def fit(self, X: Any, data: CrowdSequences, *, gold: Any = None) -> Self:
        """Fit the method to the labels, and the network to the probabilities of tags.

        Parameters
        ----------
        X : mapping from task to tokens, or one entry per task of the data
            Token ids (length,), integers from 1 up, or features (length, n_features).
        data : CrowdSequences
        gold
            Known tags of some tasks; see ``Aggregator.fit``.
        """
        self._validate()
        texts = _texts(X, data.tasks.tolist(), data.length)
        self.classes_, self.scheme_ = data.classes, data.scheme
        use = np.flatnonzero(data.labels_per_task > 0)
        with own_random_numbers():
            torch.manual_seed(self.random_state)
            self.network_ = self._network(texts)
            history: list[float] = []
            for number in range(self.rounds):
                prior = self._prior(texts) if number else None
                self.method_ = _fresh(self.method).fit(data, gold=gold, task_prior=prior)
                targets = self._targets(data)
                history += self._train([texts[i] for i in use], [targets[i] for i in use], number)
        self.history_ = tuple(history)
        return self

    def _network(self, texts: list[Tensor]) -> nn.Module:
        """Return a copy of the module, with a head if asked for."""
        encoder = copy.deepcopy(self.module)
        first = next((text for text in texts if len(text)), None)
        if first is None:
            raise DataError("There are no tokens to learn from.")
        with torch.no_grad():
            out = _call(encoder.eval(), *_padded([first]))
        if out.ndim != 3 or out.shape[:2] != (1, len(first)):
            raise ParameterError(
                f"module returned the shape {tuple(out.shape)} for 1 text of {len(first)} tokens; "
                "it must return (batch, length, dim)."
            )
        n, dim = len(self.classes_), int(out.shape[-1])
        if not self.head and dim != n:
            raise ParameterError(
                f"module returned {dim} outputs per token for {n} tags; return one for each, or "
                f"give {parameter('head', True)}."
            )
        return _Tagger(encoder, nn.Linear(dim, n) if self.head else nn.Identity())

    def _targets(self, data: CrowdSequences) -> list[Tensor]:
        """Return the probabilities of tags of each task."""
        table = self.method_.marginals_
        if not self.soft:
            table = np.eye(data.n_classes)[self.method_.path_]
        rows = np.split(table.astype(np.float32), data.token_pointer[1:-1])
        return [torch.from_numpy(one) for one in rows]

    def _train(self, texts: list[Tensor], targets: list[Tensor], number: int) -> list[float]:
        """Train for some epochs and return their mean losses."""
        network = self.network_.train()
        step = torch.optim.AdamW(network.parameters(), lr=self.lr, weight_decay=self.weight_decay)
        losses = []
        for epoch in range(self.epochs):
            order = torch.randperm(len(texts)).tolist()
            total = count = 0.0
            for rows in _chunks(order, self.batch_size):
                x, mask = _padded([texts[i] for i in rows])
                wanted, _ = _padded([targets[i] for i in rows])
                logs = torch.log_softmax(_call(network, x, mask), dim=-1)
                loss = -(wanted * logs).sum(dim=-1)[mask].mean()
                step.zero_grad()
                torch.autograd.backward(loss)
                step.step()
                n = float(mask.sum())
                total, count = total + n * float(loss.detach()), count + n
            losses.append(total / max(count, 1.0))
            if not np.isfinite(losses[-1]):
                raise DataError(
                    f"The loss is {losses[-1]} in epoch {epoch + 1}; lower lr, or scale features."
                )
            done = number * self.epochs + epoch + 1
            report(Progress(done, self.rounds * self.epochs, -losses[-1]))
        network.eval()
        return losses

    def _require_fitted(self) -> None:
        if not hasattr(self, "network_"):
            raise not_fitted("This TokenTagger is not fitted; fit it to texts and labels first.")

    # ---------------------------------------------------------------------------------- predict

    def predict_proba(self, X: Any) -> list[Floats]:
        """Return the (length, n_classes) probabilities of the tags of each text."""
        self._require_fitted()
        return self._prior(_texts(X, None, None))

    def _prior(self, texts: list[Tensor]) -> list[Floats]:
        found: list[Floats] = []
        network = self.network_.eval()
        with torch.no_grad():
            for rows in _chunks(list(range(len(texts))), self.batch_size):
                x, mask = _padded([texts[i] for i in rows])
                probas = torch.softmax(_call(network, x, mask).double(), dim=-1).numpy()
                found += [one[: len(texts[i])] for one, i in zip(probas, rows, strict=True)]
        return found

    def predict(self, X: Any) -> list[str]:
        """Return the best legal tags of each text, with a space between them."""
        _, pointer, path, _ = self._decoded(X)
        texts: list[str] = joined(self.classes_[path].tolist(), pointer).tolist()
        return texts

    def predict_spans(self, X: Any) -> dict[str, NDArray[Any]]:
        """Return one row per span: text (its number, or its id), start, end, label, confidence."""
        scheme, pointer, path, confidence = self._decoded(X)
        spans = scheme.spans(path, pointer)
        ids = list(X) if isinstance(X, Mapping) else range(len(pointer) - 1)
        types = np.array([*scheme.types, None], dtype=object)
        return {
            "task": np.array(list(ids), dtype=object)[spans.sequence], "start": spans.start,
            "end": spans.end, "label": types[spans.kind], "confidence": confidence,
        }  # fmt: skip

    def score(self, X: Any, truth: Sequence[str]) -> float:
        """Return F1 of spans, against the true tags of each text."""
        scheme, pointer, path, _ = self._decoded(X)
        place = {tag: code for code, tag in enumerate(scheme.tags)}
        lists = [in_bio(tags_in(text)) if scheme.name == "bio" else tags_in(text) for text in truth]
        wanted = np.array([place.get(tag, 0) for tags in lists for tag in tags])
        if len(wanted) != len(path):
            raise DataError(
                f"The truth has {len(wanted)} tags for {len(path)} tokens; give one per token."
            )
        return span_scores(scheme, wanted, path, pointer)["span_f1"]

    def _decoded(self, X: Any) -> tuple[TagScheme, Longs, NDArray[np.int32], Floats]:
        """Return the scheme, pointers of texts, the best legal tags, and confidence of spans."""
        probas = self.predict_proba(X)
        scheme = TagScheme(self.scheme_, tuple(self.classes_.tolist()))
        pointer = np.append(0, np.cumsum([len(one) for one in probas])).astype(np.int64)
        log = np.log(np.maximum(np.concatenate([np.zeros((0, len(scheme.tags))), *probas]), LEAST))
        kernels = kernels_for("tag_chains", len(log))
        start, step = scheme.legal[-1].astype(np.float64), scheme.legal[:-1].astype(np.float64)
        with np.errstate(divide="ignore"):
            path = kernels.best_path(log, pointer, np.log(start), np.log(step))
        posterior = kernels.smooth(log, pointer, start, step)
        return scheme, pointer, path, span_confidence(scheme, pointer, path, posterior, step)

    # ------------------------------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write tags and weights to a folder; the code of the module is not saved."""
        from safetensors.torch import save as to_bytes

        self._require_fitted()
        dim = int(self.network_.state_dict()["head.weight"].shape[1]) if self.head else 0
        state = {
            "classes_": self.classes_, "scheme_": self.scheme_, "history_": self.history_,
            "head": self.head, "dim": dim,
        }  # fmt: skip
        weights = {name: one.contiguous() for name, one in self.network_.state_dict().items()}
        save_state(path, KIND, state, files={FILE: to_bytes(weights)})

    @classmethod
    def load(cls, path: str | os.PathLike[str], module: nn.Module) -> Self:
        """Return a saved tagger, with a module of the same shape as the one that was trained."""
        saved = load_state(path)
        state = saved.state
        if saved.kind != KIND:
            raise DataError(f"{os.fspath(path)} is a {saved.kind} and not a {KIND}.")
        made = cls(module=module, head=bool(state["head"]))
        made.classes_, made.scheme_ = state["classes_"], state["scheme_"]
        made.history_, made.method_ = tuple(state["history_"]), None
        n, dim = len(made.classes_), int(state["dim"])

        def build() -> nn.Module:
            last = nn.Linear(dim, n) if made.head else nn.Identity()
            return _Tagger(copy.deepcopy(module), last)

        made.network_ = network_from(saved.files, build, trial=False)
        return made


class _Tagger(nn.Module):
    """Encoder and head."""

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        found: Tensor = self.head(_call(self.encoder, x, mask))
        return found


def _call(module: nn.Module, x: Tensor, mask: Tensor) -> Tensor:
    takes_mask = "mask" in inspect.signature(module.forward).parameters
    out: Tensor = module(x, mask=mask) if takes_mask else module(x)
    return out


def _fresh(method: Any) -> Any:
    """Return an unfitted copy of a method for sequences."""
    made = get_method(method)() if isinstance(method, str) else copy.deepcopy(method)
    if getattr(made, "takes", None) != "sequences":
        raise ParameterError(f"method is {method!r}; give a method for sequences, such as 'bsc'.")
    return made


def _texts(X: Any, tasks: list[Any] | None, length: Longs | None) -> list[Tensor]:
    """Return the tokens of every text as a tensor, in the order of the tasks."""
    if isinstance(X, Mapping):
        names = list(X) if tasks is None else tasks
        missing = [name for name in names if name not in X]
        if missing:
            raise DataError(f"X has no tokens for task {missing[0]!r}; give those of every task.")
        X = [X[name] for name in names]
    arrays = [np.asarray(one) for one in X]
    if tasks is not None and len(arrays) != len(tasks):
        raise DataError(f"X has {len(arrays)} texts for {len(tasks)} tasks; give one per task.")
    for i, array in enumerate(arrays):
        name = repr(tasks[i]) if tasks is not None else f"number {i}"
        if array.ndim not in (1, 2) or (array.size and array.dtype.kind not in "iuf"):
            raise DataError(
                f"The tokens of text {name} have the shape {array.shape} and the type "
                f"{array.dtype}; give ids (length,) or features (length, n_features)."
            )
        if length is not None and length[i] and len(array) != length[i]:
            raise DataError(
                f"Task {name} has {length[i]} tags and {len(array)} tokens in X; give one row per "
                "tag."
            )
    return [
        torch.from_numpy(array.astype(np.float32 if array.dtype.kind == "f" else np.int64))
        for array in arrays
    ]


def _padded(rows: list[Tensor]) -> Batch:
    """Return tensors of different lengths as one, padded with zeros, and the mask of tokens."""
    x = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    sizes = torch.tensor([len(one) for one in rows])
    return x, torch.arange(x.shape[1])[None, :] < sizes[:, None]


def _chunks(rows: list[int], size: int) -> Iterator[list[int]]:
    for first in range(0, len(rows), size):
        yield rows[first : first + size]
