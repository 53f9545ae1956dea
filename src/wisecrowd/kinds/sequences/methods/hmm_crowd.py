"""HMMCrowd: hidden chains of tags, and a confusion matrix per worker."""

from __future__ import annotations

from dataclasses import dataclass

from wisecrowd.kinds.sequences.methods.tag_chains import ChainMethod, Context, no_context
from wisecrowd.kinds.sequences.tag_scheme import TagScheme


@dataclass(eq=False, repr=False, kw_only=True)
class HMMCrowd(ChainMethod):
    r"""Hidden Markov model of tags, with a confusion matrix per worker.

    .. math::
        P(z, y) = \pi_{z_1} \prod_t T_{z_{t-1} z_t} \prod_{jt} \theta_j[z_t, y_{jt}]

    The true tags :math:`z` form a Markov chain, and workers tag every token by itself. Rows of
    :math:`\theta_j` have Dirichlet priors with 1.1 for the right tag and 0.1 for others; those of
    :math:`T` and :math:`\pi` have 0.1 for every legal tag. The answers are the most probable legal
    tags (Viterbi); a span that no worker marked gives way to the overlapping one with the most
    votes.

    Use it when workers tag tokens one by one and neighbouring tags depend on each other. Where
    workers mark whole spans it counts each of their tokens as a vote; prefer BSC. Cost per
    iteration: O(tokens × tags² + token labels × tags).

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
    tag_counts_ : (n_workers + 1, 1, n_classes, n_classes)
        Expected counts of a worker's tags by true tag, with their prior; the last row is an unknown
        worker.
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
    The paper adds the words of the text as emissions. Word frequencies learnt from the posterior
    lower the precision, so the text is not used.

    References
    ----------
    A. T. Nguyen, B. C. Wallace, J. J. Li, A. Nenkova and M. Lease (2017). Aggregating and
    predicting sequence labels from crowd annotations. ACL, 299-309.

    Examples
    --------
    >>> tags = ["B-PER I-PER O", "B-PER I-PER O", "B-PER O O", "O O B-LOC", "O O B-LOC", "O O O"]
    >>> task, worker = [1, 1, 1, 2, 2, 2], ["ann", "bob", "cem"] * 2
    >>> HMMCrowd().fit((task, worker, tags)).tags_.tolist()
    ['B-PER I-PER O', 'O O B-LOC']
    """

    @staticmethod
    def _context(scheme: TagScheme) -> Context:
        return no_context(scheme)
