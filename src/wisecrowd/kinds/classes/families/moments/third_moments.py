r"""Third moments of labels: of three groups of workers, and of three workers.

Group ``g`` responds to a task with :math:`X_g`, the number of its labels of each class. Given the
class, the groups are independent, so with :math:`\mu_g(k) = E[X_g \mid z = k]`

.. math::
    E[X_g X_h^\top] = \sum_k w_k \mu_g(k) \mu_h(k)^\top, \qquad
    E[X_a \otimes X_b \otimes X_c] = \sum_k w_k \mu_a(k) \otimes \mu_b(k) \otimes \mu_c(k)

Three workers have a joint table of their labels on the tasks that all three labelled:

.. math::
    T_{jj'j''}[l, l', l''] = \sum_k \pi_k \theta_{jkl} \theta_{j'kl'} \theta_{j''kl''}

Pairs may not identify the parameters; triples of full-rank workers do. There can be as many triples
as workers cubed, so a budget limits their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.moments.pair_moments import counted_annotations
from wisecrowd.kinds.classes.families.posteriors import worker_weights
from wisecrowd.kinds.classes.families.skill_vote import sum_by, vote_agreement

FLOOR = 1e-9  # least probability of an estimate, where noise gives a negative value
STRETCH = 1 << 22  # numbers processed at once
CUTOFF = 1e-6  # eigenvalues below this share of the largest are zero
N_STARTS = 100
N_ROUNDS = 100
WORK = 20_000_000  # products per round beyond which fewer starts are tried
SETTLED = 1e-13  # squared change of the unit vectors that counts as converged
ROWS = 4_000_000  # annotations that are matched at once
DRAWS = 4  # triples drawn per triple of the budget


@dataclass(frozen=True, eq=False)
class GroupMoments:
    """Mean products of the responses of three groups, each known up to its own scale.

    Attributes
    ----------
    pairs : (3, 3, K, K)
        ``pairs[g, h, l, m]``: label ``l`` by group ``g`` and label ``m`` by group ``h``; the
        diagonal blocks are not used.
    triple : (K, K, K)
    """

    pairs: Floats
    triple: Floats


def connected_parts(labels: CrowdLabels) -> tuple[Ints, int]:
    """Return the connected component of each worker, and the number of components."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    task, worker, *_ = counted_annotations(labels)
    size = labels.n_workers + labels.n_tasks
    place = worker, labels.n_workers + task
    graph = coo_array((np.ones(len(task), np.int8), place), shape=(size, size))
    n_parts, part = connected_components(graph, directed=False)
    return part[: labels.n_workers], int(n_parts)


def busiest_first(labels: CrowdLabels) -> NDArray[np.intp]:
    """Sort the workers by their number of labels, independently of their names.

    Ties are broken by agreement with the vote, then by the number of labels of the workers' tasks.
    """
    total = worker_weights(labels)
    agreement = vote_agreement(labels, np.full(labels.n_tasks, -1))
    company = sum_by(labels.worker, labels.labels_per_task[labels.task], labels.n_workers)
    return np.lexsort((-company, -agreement.round(9), -total.round(9)))


def balanced_groups(size: Floats, order: Ints) -> Ints:
    """Return the group (0, 1 or 2) of each worker, with about equal numbers of labels.

    In the given order, each worker joins the group with the fewest labels so far.

    Examples
    --------
    >>> balanced_groups(np.array([9.0, 2.0, 5.0, 4.0]), np.array([0, 2, 3, 1]))
    array([0, 2, 1, 2])
    """
    group = np.zeros(len(size), dtype=np.int64)
    share = size / max(float(size.sum()), 1e-300)
    filled = np.zeros(3)
    for worker in order:
        group[worker] = filled.round(9).argmin()  # rounding must not break ties
        filled[group[worker]] += share[worker]
    return group


def responses_of(
    task: Ints, group: Ints, label: Ints, weight: Floats, shape: tuple[int, int]
) -> Floats:
    """Return the responses (3, N, K): weights of the labels of each task by each group."""
    n_tasks, n_classes = shape
    cell = (group * n_tasks + task) * n_classes + label
    return sum_by(cell, weight, 3 * n_tasks * n_classes).reshape(3, n_tasks, n_classes)


def group_moments(responses: Floats) -> GroupMoments:
    """Return the moments of responses (3, N, K)."""
    n_tasks, n_classes = responses.shape[1:]
    pairs = np.einsum("gnl,hnm->ghlm", responses, responses, optimize=True) / n_tasks
    triple = np.zeros((n_classes, n_classes**2))
    step = max(1, STRETCH // n_classes**2)
    for start in range(0, n_tasks, step):
        a, b, c = responses[:, start : start + step]
        triple += a.T @ (b[:, :, None] * c[:, None, :]).reshape(len(b), -1)
    return GroupMoments(pairs, triple.reshape((n_classes,) * 3) / n_tasks)


def group_means(moments: GroupMoments, rng: np.random.Generator) -> tuple[Floats, Floats] | None:
    """Return the class weights (K,) and each group's label distribution by class (3, K, K).

    The tensor power method finds the means of each group in turn, and those of the two others
    follow by least squares. The solution that fits all moments best is returned. The classes are in
    arbitrary order, the same for all groups. Returns None if no solution exists, because there are
    fewer independent classes than labels.
    """
    best: tuple[float, Floats, Floats] | None = None
    for group in range(3):
        found = _from_group(moments, group, rng)
        if found is None:
            continue
        misfit = _misfit(moments, *found)
        if np.isfinite(misfit) and (best is None or misfit < best[0]):
            best = (misfit, *found)
    return None if best is None else best[1:]


def _from_group(
    moments: GroupMoments, c: int, rng: np.random.Generator
) -> tuple[Floats, Floats] | None:
    a, b = (c + 1) % 3, (c + 2) % 3
    inverse = pseudo_inverse(moments.pairs[a, b])
    if inverse is None:
        return None
    # Responses of groups a and b, expressed as responses of group c.
    from_a, from_b = moments.pairs[c, b] @ inverse, moments.pairs[c, a] @ inverse.T
    second = moments.pairs[c, b] @ inverse @ moments.pairs[a, c]
    ordered = moments.triple.transpose(a, b, c)
    third = np.einsum("abc,ia,jb->ijc", ordered, from_a, from_b, optimize=True)
    mixture = mixture_of(second, third, rng)
    if mixture is None:
        return None
    weights, means = mixture
    inverse = pseudo_inverse(weights[:, None] * means)
    if inverse is None:
        return None
    every = np.empty((3, *means.shape))
    every[c] = means
    for g in (a, b):
        every[g] = (moments.pairs[g, c] @ inverse).T
    return weights, as_probabilities(every)


def pseudo_inverse(matrix: Floats) -> Floats | None:
    """Return the inverse of a square matrix, or None if it has less than full rank."""
    u, values, vt = np.linalg.svd(matrix)
    if not values[-1] > CUTOFF * values[0]:
        return None
    return np.asarray((vt.T / values) @ u.T)


def as_probabilities(rows: Floats) -> Floats:
    """Normalise rows (..., K) to probabilities of at least about 1e-9."""
    total = rows.sum(axis=-1, keepdims=True)
    scaled = rows / np.where(np.abs(total) > FLOOR, total, 1.0)  # flips rows of the wrong sign
    positive = np.maximum(scaled, FLOOR)
    return np.asarray(positive / positive.sum(axis=-1, keepdims=True))


def _misfit(moments: GroupMoments, weights: Floats, means: Floats) -> float:
    """Return the distance of the moments from the model's, each at its best scale; 0 is exact."""
    model = np.einsum("k,gkl,hkm->ghlm", weights, means, means, optimize=True)
    triple = np.einsum("k,ka,kb,kc->abc", weights, *means, optimize=True)
    cases = [(moments.pairs[g, h], model[g, h]) for g, h in ((0, 1), (0, 2), (1, 2))]
    total = 0.0
    for given, fitted in (*cases, (moments.triple, triple)):
        size = float((given**2).sum() * (fitted**2).sum())
        total += 1 - float((given * fitted).sum()) ** 2 / size if size > 0 else 1.0
    return total


def worker_tables(
    task: Ints, cell: Ints, weight: Floats, responses: Floats, n_workers: int
) -> Floats:
    """Return joint tables (J, 3, K, K) of workers and groups; ``cell`` is worker · K + label."""
    from scipy.sparse import csr_array

    n_tasks, n_classes = responses.shape[1:]
    given = csr_array((weight, (cell, task)), shape=(n_workers * n_classes, n_tasks))
    tables = [np.asarray(given @ response) for response in responses]
    return np.stack([x.reshape(n_workers, n_classes, n_classes) for x in tables], axis=1)


def worker_confusions(
    tables: Floats, group: Ints, weights: Floats, means: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    r"""Return confusion matrices (J, K, K), and whether each worker has any data for it.

    The joint table of a worker and another group is
    :math:`C_{jg} = \theta_j^\top \mathrm{diag}(w) \mu_g`: least squares over the groups that the
    worker is not in, weighted by the shared tasks.

    Parameters
    ----------
    tables : (J, 3, K, K)
        ``tables[j, g, l, m]``: weight of label ``l`` by worker ``j`` and ``m`` by group ``g``.
    group : (J,)
    weights, means : (K,) and (3, K, K)
    """
    other = np.arange(3) != group[:, None]
    shared = np.where(other, tables.sum(axis=(2, 3)), 0.0)  # (J, 3)
    design = weights[:, None] * means  # (3, K, K)
    gram = np.einsum("jg,gkm,gim->jki", shared, design, design, optimize=True)
    right = np.einsum("jg,jglm,gkm->jkl", other.astype(float), tables, design, optimize=True)
    known = shared.sum(axis=1) > 0
    gram[~known] = np.eye(len(weights))
    return as_probabilities(np.linalg.pinv(gram, rcond=CUTOFF, hermitian=True) @ right), known


def class_shares(labels: CrowdLabels, mass: Floats) -> Floats:
    """Return each class's share of ``mass`` (K,), or of the soft votes if it is zero."""
    if not mass.sum() > 0:
        weight = labels.weights
        total = sum_by(labels.task, weight, labels.n_tasks)[labels.task]
        share = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
        mass = sum_by(labels.label, share, labels.n_classes)
    total_mass = float(mass.sum())
    return mass / total_mass if total_mass > 0 else np.full(len(mass), 1 / len(mass))


def unidentified_workers(
    labels: CrowdLabels,
    lacking: NDArray[np.bool_],
    why: str = "share too few tasks with others for moments to identify them",
    then: str = "they are fitted to what the others are like, or to the soft vote",
) -> tuple[Finding, ...]:
    """Return a finding about the workers whom the moments do not identify, or None."""
    if not lacking.any():
        return ()
    text = f"{int(lacking.sum())} of {labels.n_workers} workers {why}; {then}."
    ids = tuple(labels.workers[lacking].tolist())
    return (Finding("unidentified-workers", "medium", float(lacking.mean()), ids, text, ""),)


def mixture_of(
    second: Floats, third: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats] | None:
    """Return the weights (K,) and the means (K, K), one per row, or None if they do not exist.

    Parameters
    ----------
    second, third : (K, K) and (K, K, K)
        The moments; noise may make them slightly asymmetric.
    rng : numpy.random.Generator
        Generator for the starts of the power iterations.

    Examples
    --------
    >>> weights, means = np.array([0.3, 0.7]), np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> second = np.einsum("k,ka,kb->ab", weights, means, means)
    >>> third = np.einsum("k,ka,kb,kc->abc", weights, means, means, means)
    >>> found, found_means = mixture_of(second, third, np.random.default_rng(0))
    >>> order = found.argsort()
    >>> found[order].round(6), found_means[order].round(6).tolist()
    (array([0.3, 0.7]), [[0.9, 0.1], [0.2, 0.8]])
    """
    values, vectors = np.linalg.eigh(0.5 * (second + second.T))
    if not values[0] > CUTOFF * abs(values[-1]):
        return None  # fewer independent components than classes
    root = np.sqrt(values)
    whitener = vectors / root
    core = np.einsum("abc,ai,bj,ck->ijk", third, whitener, whitener, whitener, optimize=True)
    strength, directions = tensor_components(symmetric(core), rng)
    if not (strength > CUTOFF * strength.max()).all():
        return None
    weights = strength**-2
    means = strength[:, None] * (directions @ (vectors * root).T)
    return weights / weights.sum(), means


def symmetric(tensor: Floats) -> Floats:
    """Return the mean of a cubic tensor over all permutations of its axes."""
    return np.asarray(sum(tensor.transpose(axes) for axes in permutations(range(3))) / 6)


def tensor_components(tensor: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    r"""Return the strengths (K,) and orthonormal directions (K, K), in rows, of a symmetric tensor.

    Power iteration :math:`v \leftarrow T(I, v, v) / \|\cdot\|` from many starts at once; the
    strongest limit is a component, which is then subtracted.

    References
    ----------
    A. Anandkumar, R. Ge, D. Hsu, S. M. Kakade and M. Telgarsky (2014). Tensor decompositions for
    learning latent variable models. JMLR 15, 2773-2832.
    """
    size = len(tensor)
    n_starts = int(np.clip(WORK // size**3, 10, N_STARTS))
    rest = tensor
    strengths, directions = np.empty(size), np.empty((size, size))
    for number in range(size):
        vector = _strongest(rest, _unit_rows(rng.normal(size=(n_starts, size))))
        strength = float(np.einsum("abc,a,b,c->", rest, vector, vector, vector, optimize=True))
        strengths[number], directions[number] = strength, vector
        rest = rest - strength * np.einsum("a,b,c->abc", vector, vector, vector)
    return strengths, directions


def _strongest(tensor: Floats, vectors: Floats) -> Floats:
    """Iterate all vectors (n, K) and return the one on which the tensor is largest."""
    flat = tensor.reshape(len(tensor), -1)
    for _ in range(N_ROUNDS):
        squares = (vectors[:, :, None] * vectors[:, None, :]).reshape(len(vectors), -1)
        moved = _unit_rows(squares @ flat.T)
        change = float(((moved - vectors) ** 2).sum(axis=1).max())
        vectors = moved
        if change <= SETTLED:
            break
    squares = (vectors[:, :, None] * vectors[:, None, :]).reshape(len(vectors), -1)
    return np.asarray(vectors[int(((squares @ flat.T) * vectors).sum(axis=1).argmax())])


def _unit_rows(vectors: Floats) -> Floats:
    norm = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norm > 0, norm, 1.0))


@dataclass(frozen=True, eq=False)
class TripleMoments:
    """Joint label counts of triples of workers.

    Attributes
    ----------
    workers : (n_triples, 3) int32
        Each row ascending; rows sorted.
    counts : (n_triples, n_classes, n_classes, n_classes)
        Weight of the shared tasks by the three labels, in the order of ``workers``.
    n_shared : (n_triples,)
        Weight of the shared tasks: the total of each table.
    findings : tuple of Finding
        Findings about omitted data.
    """

    workers: NDArray[np.int32]
    counts: Floats
    n_shared: Floats
    n_workers: int
    n_classes: int
    findings: tuple[Finding, ...] = ()

    @property
    def n_triples(self) -> int:
        """Number of triples."""
        return len(self.workers)

    @cached_property
    def tables(self) -> Floats:
        """(n_triples, K, K, K): each joint table, normalised to sum one."""
        return self.counts / self.n_shared[:, None, None, None]


def triple_moments(
    labels: CrowdLabels,
    *,
    min_shared: float = 1,
    max_triples: int = 20_000,
    rng: np.random.Generator | None = None,
) -> TripleMoments:
    """Return the joint label counts of triples of workers who share enough tasks.

    Parameters
    ----------
    labels : CrowdLabels
    min_shared : float
        Minimum weight of the tasks that all three labelled.
    max_triples : int
        Maximum number of triples. If there are no more combinations of three workers, all are
        counted. Otherwise each worker gets the same number of draws of one of its tasks and two
        others who labelled it; the drawn triples that share most tasks are kept. A finding reports
        this.
    rng : Generator, optional
        Generator for the draws; by default they are the same every time.

    Examples
    --------
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 1]])
    >>> triples = triple_moments(labels)
    >>> triples.workers.tolist(), triples.n_shared.tolist(), float(triples.counts[0, 0, 0, 1])
    ([[0, 1, 2]], [3.0], 2.0)
    """
    check_number("min_shared", min_shared, 0.0)
    check_integer("max_triples", max_triples, 1)
    J, K = labels.n_workers, labels.n_classes
    annotations = counted_annotations(labels)
    active = np.unique(annotations[1])
    left_out: tuple[Finding, ...] = ()
    if len(active) * (len(active) - 1) * (len(active) - 2) // 6 <= max_triples:
        workers = _all_triples(active)
    else:
        rng = np.random.default_rng(0) if rng is None else rng
        workers = _drawn_triples(annotations, J, DRAWS * max_triples, rng)
        text = "Triples of workers are drawn: there are too many to look at all of them."
        left_out = (Finding("triples-drawn", "medium", float(len(workers)), (), text, ""),)
    counts = _triple_counts(annotations, workers, labels.n_tasks, K)
    shared = counts.sum(axis=(1, 2, 3))
    kept = np.flatnonzero((shared > 0) & (shared >= min_shared))
    if len(kept) > max_triples:
        kept = np.sort(kept[np.argsort(-shared[kept], kind="stable")[:max_triples]])
    return TripleMoments(workers[kept], counts[kept], shared[kept], J, K, left_out)


def _all_triples(active: Ints) -> NDArray[np.int32]:
    """Return all triples of some workers, sorted."""
    n = len(active)
    a, b = np.triu_indices(n, 1)
    later = n - 1 - b
    pair = np.repeat(np.arange(len(a)), later)
    c = np.arange(later.sum()) - np.repeat(np.cumsum(later) - later, later) + b[pair] + 1
    return active[np.stack([a[pair], b[pair], c], axis=1)].astype(np.int32)


def _drawn_triples(
    annotations: tuple[Ints, Ints, Ints, Floats], n_workers: int, n_draws: int, rng: Any
) -> NDArray[np.int32]:
    """Return distinct random triples: each worker, and two others who did one of its tasks."""
    task, worker, *_ = annotations
    begin = np.searchsorted(task, task)
    size = np.searchsorted(task, task, side="right") - begin
    usable = np.flatnonzero(size >= 3)
    usable = usable[np.argsort(worker[usable], kind="stable")]
    if not len(usable):
        return np.empty((0, 3), dtype=np.int32)
    own, where, n_own = np.unique(worker[usable], return_index=True, return_counts=True)
    each = -(-n_draws // len(own))
    start, many = np.repeat(where, each), np.repeat(n_own, each)
    e = usable[start + (rng.random(len(start)) * many).astype(np.int64)]
    others = begin[e][:, None] + (rng.random((len(e), 2)) * size[e][:, None]).astype(np.int64)
    drawn = np.sort(np.column_stack([worker[e], worker[others]]), axis=1)
    distinct = (drawn[:, 0] < drawn[:, 1]) & (drawn[:, 1] < drawn[:, 2])
    return np.unique(drawn[distinct], axis=0).astype(np.int32)


def _triple_counts(
    annotations: tuple[Ints, Ints, Ints, Floats], workers: Ints, n_tasks: int, n_classes: int
) -> Floats:
    """Return the (T, K, K, K) counts by matching each triple's annotations on the same task."""
    task, worker, label, weight = annotations
    order = np.argsort(worker, kind="stable")
    key = worker[order].astype(np.int64) * n_tasks + task[order]  # sorted
    label, weight = label[order], weight[order]
    n_own = np.bincount(worker, minlength=int(workers.max(initial=0)) + 1)
    begin = np.cumsum(n_own) - n_own
    counts = np.zeros((len(workers), n_classes, n_classes, n_classes))
    rows = np.cumsum(n_own[workers[:, 0]]) if len(workers) else np.empty(0)
    chunk = (rows // ROWS).astype(np.int64)
    for part in np.split(np.arange(len(workers)), np.flatnonzero(np.diff(chunk)) + 1):
        a, b, c = workers[part].T
        triple, e = _ranges(begin[a], n_own[a])
        on_task = key[e] - a[triple].astype(np.int64) * n_tasks
        cell, product = label[e].astype(np.int64), weight[e]
        for other in (b, c):
            wanted = other[triple].astype(np.int64) * n_tasks + on_task
            left = np.searchsorted(key, wanted)
            row, f = _ranges(left, np.searchsorted(key, wanted, side="right") - left)
            triple, on_task = triple[row], on_task[row]
            cell = cell[row] * n_classes + label[f]
            product = product[row] * weight[f]
        flat = np.bincount(triple * n_classes**3 + cell, product, len(part) * n_classes**3)
        counts[part] = flat.reshape(len(part), n_classes, n_classes, n_classes)
    return counts


def _ranges(begin: Ints, size: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all rows of the ranges ``begin`` to ``begin + size``, as (range, row)."""
    owner = np.repeat(np.arange(len(begin), dtype=np.int64), size)
    offset = np.cumsum(size) - size
    row = np.arange(len(owner), dtype=np.int64) - offset[owner] + begin[owner]
    return owner, np.asarray(row, dtype=np.int64)
