"""BSC: hidden chains of tags, and workers whose tags depend on their own previous tag."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wisecrowd.kinds.sequences.methods.tag_chains import (
    ILLEGAL,
    MANY_TAGS,
    ChainMethod,
    Context,
    no_context,
)
from wisecrowd.kinds.sequences.tag_scheme import TagScheme


@dataclass(eq=False, repr=False, kw_only=True)
class BSC(ChainMethod):
    r"""Bayesian sequence combination: a worker who has begun a span tends to go on with it.

    .. math::
        P(z, y) = \pi_{z_1} \prod_t T_{z_{t-1} z_t}
        \prod_{jt} \theta_j[y_{j,t-1}, z_t, y_{jt}]

    The true tags :math:`z` form a Markov chain. The tag :math:`y_{jt}` of worker :math:`j` depends
    on the true tag and on the worker's own tag before, so that two tags of one span are not two
    votes. Rows of :math:`\theta_j` have Dirichlet priors with 1.1 for the right tag, 0.1 for others
    and 0.001 for tags that cannot follow; those of :math:`T` and :math:`\pi` have 0.1 for every
    legal tag. The answers are the most probable legal tags (Viterbi);
    a span that no worker marked gives way to the overlapping one with the most votes.

    Use it when workers mark spans in texts, such as named entities; it is the default. Cost per
    iteration: O(tokens × tags² + token labels × tags). Memory: workers × tags³; with more than 40
    tags, the previous tag is outside, of the type of the true tag, or of another type.

    Parameters
    ----------
    variational : bool
        Whether to average over the parameters (variational Bayes), or to maximise (EM).
    max_iter : int
    tol : float
        The iterations stop when no probability of a tag changes by more.

    Attributes
    ----------
    tags_ : (n_tasks,) str
        The tags of each task, with a space between them.
    marginals_ : (n_tokens, n_classes)
        Probability of every tag of every token, one task after the other. They are more careful
        than the model: the mean of its claims and the shares of the votes. In the claims, no tag
        counts for its own worker's matrix, and they are the mean of two posteriors, in which n
        labels of a task count as n and as n / (1 + 0.5 (n - 1)).
    span_confidence_ : (n_spans,)
        Probability of each span: that it begins, goes on and ends as it does. With c the claim,
        computed in the same way, and v of n votes for the span, it is 0.9 (0.8 c + 0.2 (v + 1) /
        (n + 2)), because all workers of a task may share a misreading.
    tag_counts_ : (n_workers + 1, n_contexts, n_classes, n_classes)
        Expected counts of a worker's tags, by context and true tag, with their prior; the last
        context is the start of a sequence, and the last row an unknown worker.
    start_counts_, step_counts_ : (n_classes,), (n_classes, n_classes)
        Expected counts of first tags and of steps from tag to tag, with their prior.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Expected share of right tags.
    span_precision_, span_recall_ : (n_workers,)
        Of the worker's spans, against the answers.
    history_ : tuple of float
        Lower bound of the log-evidence (with EM: penalised log-likelihood) in every iteration.

    Notes
    -----
    The paper's code counts the start of a text as ``O``. Here the start is a context of its own.

    References
    ----------
    E. Simpson and I. Gurevych (2019). A Bayesian approach for sequence tagging with crowds. EMNLP,
    1093-1104.

    Examples
    --------
    >>> tags = ["B-PER I-PER O", "B-PER I-PER O", "B-PER O O", "O O B-LOC", "O O B-LOC", "O O O"]
    >>> task, worker = [1, 1, 1, 2, 2, 2], ["ann", "bob", "cem"] * 2
    >>> BSC().fit((task, worker, tags)).tags_.tolist()
    ['B-PER I-PER O', 'O O B-LOC']
    """

    @staticmethod
    def _context(scheme: TagScheme) -> Context:
        return previous_tag(scheme)


def previous_tag(scheme: TagScheme) -> Context:
    """Return the context of workers whose tags depend on their own previous tag.

    With many tags, the previous tag is outside, of the type of the true tag, or of another type.
    """
    n = len(scheme.tags)
    plain = no_context(scheme).prior[0]
    if n <= MANY_TAGS:
        prior = np.where(scheme.legal[:, None, :], plain[None], ILLEGAL)
        return Context(np.repeat(np.arange(n + 1)[:, None], n, axis=1), prior)
    before = np.append(scheme.type_of, -1)
    table = np.where(before[:, None] == scheme.type_of, 1, 2)
    table[before < 0] = 0
    inside = np.flatnonzero(before >= 0)
    of_type = np.zeros((int(before.max()) + 2, n), dtype=np.int64)  # the last row: no type
    np.add.at(of_type, before[inside], scheme.legal[inside])
    same = of_type[scheme.type_of]
    ways = (scheme.legal[before < 0].sum(axis=0)[None], same, of_type.sum(axis=0) - same)
    prior = np.empty((3, n, n))
    for s, way in enumerate(ways):  # illegal is what every previous tag of this context forbids
        forbidden = (way == 0) & (way > 0).any(axis=1, keepdims=True)
        prior[s] = np.where(forbidden, ILLEGAL, plain)
    return Context(table.astype(np.int64), prior)
