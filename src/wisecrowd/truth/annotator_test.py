r"""The alternative annotator test, by which a judge may replace one of several people.

A person h is left out, and the other people who answered the same question say who is closer to
them. With :math:`s` the share of the others who agree with an answer (for numbers minus the root
mean squared distance from them),

.. math:: d_i = [s_i(person) \ge s_i(judge)] - [s_i(judge) \ge s_i(person)]

The judge beats the person if the mean of :math:`d` is below :math:`\epsilon`, by a one-sided t-test
and the procedure of Benjamini and Yekutieli over people. It passes if it beats at least half.

References
----------
N. Calderon, R. Reichart, R. Dror (2025). The alternative annotator test for LLM-as-a-judge: how to
statistically justify replacing human annotators with LLMs. ACL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wisecrowd.core.judged_answers import JudgedAnswers
from wisecrowd.core.types import Floats, Longs, Mask

FEWEST_QUESTIONS = 30  # of a person who is compared with a judge
LEAST_SHARE = 0.5  # of the people that a judge must beat
FALSE_DISCOVERIES = 0.05
ROUNDING = 1e-9  # relative difference of distances that counts as none


def sums(group: Longs, values: Floats, n_groups: int) -> Floats:
    """Return the sum of the values of each group (n_groups,)."""
    return np.bincount(group, values, n_groups).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Panel:
    """The answers of people, and what the people of each question say together.

    Attributes
    ----------
    question, person : (n_answers,)
        Codes, sorted by question.
    answer : (n_answers,)
        For distances minus the first one of the question, so that whole numbers stay exact.
    size : (n_questions,)
        Number of answers.
    centre, total, squares : (n_questions,)
        First answer, and of answers minus it the sum and the sum of squares; for distances.
    votes, count : (n_votes,)
        Question and class as one code, and how many people gave it; for classes.
    """

    question: Longs
    person: Longs
    answer: Floats
    n_people: int
    distance: bool
    n_codes: int
    size: Longs
    centre: Floats
    total: Floats
    squares: Floats
    votes: Longs
    count: Longs

    @classmethod
    def of(cls, answers: JudgedAnswers, chosen: Mask, n_people: int) -> Panel:
        """Return the panel of the people among the workers.

        Parameters
        ----------
        answers : JudgedAnswers
        chosen : (n_workers,) bool
        n_people : int
            Number of workers, who keep their codes.
        """
        rows = np.flatnonzero(chosen[answers.worker])
        question, answer = answers.question[rows], answers.answer[rows]
        n = answers.n_questions
        size = np.bincount(question, minlength=n)
        none, nothing = np.zeros(0), np.zeros(0, dtype=np.int64)
        if answers.distance:
            centre = np.zeros(n)
            centre[question[::-1]] = answer[::-1]
            answer = answer - centre[question]
            total, squares = (sums(question, x, n) for x in (answer, answer**2))
            votes, count = nothing, nothing
        else:
            centre = total = squares = none
            votes, count = np.unique(
                question * answers.n_codes + answer.astype(np.int64), return_counts=True
            )
        return cls(
            question, answers.worker[rows], answer, n_people, answers.distance, answers.n_codes,
            size, centre, total, squares, votes, count,
        )  # fmt: skip

    @property
    def mean(self) -> Floats:
        """(n_questions,) mean of the answers of a distance, NaN without any."""
        found = self.centre + self.total / np.maximum(self.size, 1)
        return np.where(self.size > 0, found, np.nan)

    def votes_for(self, question: Longs, answer: Floats) -> Longs:
        """Return how many people gave these classes to these questions."""
        if not len(self.votes):
            return np.zeros(len(question), dtype=np.int64)
        key = question * self.n_codes + answer.astype(np.int64)
        place = np.minimum(np.searchsorted(self.votes, key), len(self.votes) - 1)
        return np.where(self.votes[place] == key, self.count[place], 0)


class Comparison(NamedTuple):
    """A judge and a person against the other people, for each answer of a person.

    Attributes
    ----------
    question, person : (n_compared,)
    d : (n_compared,)
        1 if the person is closer to the others, -1 if the judge is, 0 if both are as close.
    judge, own : (n_compared,)
        Scores of both; larger is better.
    """

    question: Longs
    person: Longs
    d: Floats
    judge: Floats
    own: Floats


def compare_with_people(panel: Panel, judged: Floats) -> Comparison:
    """Compare a judge with each person, by the other people who answered the question.

    Parameters
    ----------
    panel : Panel
    judged : (n_questions,)
        Answers of the judge, NaN where there is none.

    Examples
    --------
    >>> asked, who = np.array([0, 0, 0]), np.array([0, 1, 2])
    >>> answers = JudgedAnswers(asked, who, np.array([0.0, 0.0, 1.0]), np.array([0]))
    >>> found = compare_with_people(Panel.of(answers, np.full(3, True), 3), np.array([0.0]))
    >>> found.d.tolist(), found.own.tolist()
    ([0.0, 0.0, -1.0], [0.5, 0.5, 0.0])
    """
    rows = np.flatnonzero((panel.size[panel.question] >= 2) & ~np.isnan(judged[panel.question]))
    question, own = panel.question[rows], panel.answer[rows]
    said = judged[question]
    others = (panel.size[question] - 1).astype(np.float64)
    if panel.distance:
        scores, gap = _distances(panel, question, own, said - panel.centre[question], others)
    else:
        agree_own = panel.votes_for(question, own) - 1.0
        agree_judge = panel.votes_for(question, said) - (own == said)
        scores = (agree_judge / others, agree_own / others)
        gap = agree_own - agree_judge
    return Comparison(question, panel.person[rows], np.sign(gap), *scores)


def _distances(
    panel: Panel, question: Longs, own: Floats, said: Floats, others: Floats
) -> tuple[tuple[Floats, Floats], Floats]:
    """Return the scores of the judge and of the person, and how much better the person is.

    The difference of the sums of squares is a product, whose sign does not suffer from rounding
    where both answers are as far from the others.
    """
    total, squares = panel.total[question] - own, panel.squares[question] - own**2
    scores = []
    for x in (said, own):
        parts = squares + others * x**2
        far = parts - 2 * x * total
        scores.append(-np.sqrt(np.where(far <= 1e-14 * parts, 0.0, far) / others))
    gap = (said - own) * (others * (said + own) - 2 * total)
    size = others * (said**2 + own**2) + 2 * np.abs(total) * (np.abs(said) + np.abs(own))
    return (scores[0], scores[1]), np.where(np.abs(gap) <= ROUNDING * size, 0.0, gap)


class Means(NamedTuple):
    """Means of groups: number of values, mean, standard error and degrees of freedom."""

    n: Longs | Floats
    mean: Floats
    error: Floats
    df: Floats


def clustered_means(
    values: Floats, group: Longs, n_groups: int, cluster: Longs | None = None
) -> Means:
    r"""Return the means of groups of values, with errors robust to clusters.

    The variance of a mean of n values in G clusters is

    .. math:: \frac{G}{G - 1} \frac{1}{n^2} \sum_g \Bigl(\sum_{i \in g} (x_i - \bar x)\Bigr)^2

    with G - 1 degrees of freedom. If each value is a cluster, it is the usual one.

    Examples
    --------
    >>> found = clustered_means(np.array([0.0, 1.0, 2.0]), np.zeros(3, dtype=int), 1)
    >>> found.mean.tolist(), found.error.round(4).tolist(), found.df.tolist()
    ([1.0], [0.5774], [2.0])
    """
    n = np.bincount(group, minlength=n_groups)
    mean = np.bincount(group, values, n_groups) / np.maximum(n, 1)
    off = values - mean[group]
    if cluster is None:
        n_clusters, squares = n, np.bincount(group, off**2, n_groups)
    else:
        width = int(cluster.max(initial=0)) + 1
        names, place = np.unique(group.astype(np.int64) * width + cluster, return_inverse=True)
        sums = np.bincount(place.ravel(), off, len(names))
        n_clusters = np.bincount(names // width, minlength=n_groups)
        squares = np.bincount(names // width, sums**2, n_groups)
        # Rounding is not variance, if all values are the same.
        squares = np.where(squares <= 1e-24 * np.maximum(n, 1), 0.0, squares)
    df = (n_clusters - 1).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(squares * (n_clusters / df)) / n
    return Means(n, np.where(n > 0, mean, np.nan), np.where(df > 0, error, np.nan), df)


def below(means: Means, epsilon: float) -> Floats:
    """Return the p-values of means that are not below epsilon; without variance 0 or 1.

    Examples
    --------
    >>> below(clustered_means(np.array([-1.0, -1.0]), np.zeros(2, dtype=int), 1), 0.1).tolist()
    [0.0]
    """
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        p = stdtr(means.df, (means.mean - epsilon) / means.error)
    constant = np.where(means.mean < epsilon, 0.0, 1.0)
    p = np.where(means.error == 0, constant, p)
    return np.where(np.isnan(p), 1.0, p)  # a single cluster proves nothing


def benjamini_yekutieli(p: Floats, rate: float = FALSE_DISCOVERIES) -> Mask:
    r"""Return which p-values are significant, whatever their dependence.

    Of m p-values the k smallest are, for the largest k with
    :math:`p_{(k)} \le k r / (m H_m)`, where :math:`H_m = \sum_{i \le m} 1/i`. The last axis is
    that of the tests; NaN is none.

    References
    ----------
    Y. Benjamini, D. Yekutieli (2001). The control of the false discovery rate in multiple testing
    under dependency. Annals of Statistics 29(4), 1165-1188.

    Examples
    --------
    >>> benjamini_yekutieli(np.array([0.001, 0.04, np.nan, 0.012]))
    array([ True, False, False,  True])
    """
    p = np.where(np.isnan(p), np.inf, p)
    m = np.isfinite(p).sum(axis=-1, keepdims=True)
    ranks = np.arange(1, p.shape[-1] + 1)
    harmonic = np.append(0.0, np.cumsum(1.0 / ranks))[m]
    limit = ranks / np.maximum(m, 1) * (rate / np.maximum(harmonic, 1.0))
    ordered = np.sort(p, axis=-1)
    passed = ordered <= limit
    last = np.where(passed, ordered, -1.0).max(axis=-1, keepdims=True, initial=-1.0)
    return np.asarray(p <= last)


class AnnotatorTest(NamedTuple):
    """The test of one judge.

    Attributes
    ----------
    person : (n_tested,)
        Codes of the people who are compared.
    n, rho, p, beaten : (n_tested,)
        Their questions; the share of these where the judge is at least as close to the others; the
        p-value; and whether the judge beats them.
    omega, mean_rho : float
        Share of people beaten, and the mean of ``rho``; NaN if nobody can be compared.
    score, ceiling : float
        Mean score of the judge and of people against the same other people.
    n_questions : int
        Questions with an answer of the judge and of two people.
    """

    person: Longs
    n: Longs
    rho: Floats
    p: Floats
    beaten: Mask
    omega: float
    mean_rho: float
    score: float
    ceiling: float
    n_questions: int

    @property
    def passes(self) -> bool:
        """Whether the judge beats at least half of the people."""
        return bool(self.omega >= LEAST_SHARE)


def annotator_test(
    panel: Panel, judged: Floats, epsilon: float, cluster: Longs | None = None
) -> AnnotatorTest:
    """Test whether a judge may replace one of the people.

    Parameters
    ----------
    panel : Panel
    judged : (n_questions,)
        Answers of the judge, NaN where there is none.
    epsilon : float
        Advantage of the judge, because it is cheaper: 0.2 over experts, 0.15 over trained people,
        0.1 over a crowd.
    cluster : (n_questions,), optional
        Cluster of each question, such as the text that it is about.
    """
    found = compare_with_people(panel, judged)
    clusters = None if cluster is None else cluster[found.question]
    means = clustered_means(found.d, found.person, panel.n_people, clusters)
    n_answers = means.n.astype(np.int64)
    tested = np.flatnonzero(n_answers >= FEWEST_QUESTIONS)
    p = below(means, epsilon)[tested]
    beaten = benjamini_yekutieli(p)
    n = np.maximum(n_answers, 1)
    rho, score, own = (
        (np.bincount(found.person, x, panel.n_people) / n)[tested]
        for x in ((found.d <= 0).astype(np.float64), found.judge, found.own)
    )

    def mean(values: Floats | Mask) -> float:
        return float(values.mean()) if len(tested) else float("nan")

    return AnnotatorTest(
        tested, n_answers[tested], rho, p, beaten, mean(beaten), mean(rho), mean(score), mean(own),
        len(np.unique(found.question)),
    )  # fmt: skip
