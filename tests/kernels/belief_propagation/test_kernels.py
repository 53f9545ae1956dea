import numpy as np
import pytest

from wisecrowd.inference.quadrature import beta_rule
from wisecrowd.kernels.belief_propagation import fast, reference


def problem(K, weighted, with_prior, seed=0, offset=0):
    rng = np.random.default_rng(seed)
    per_task = rng.integers(0, 5, 30)
    indptr = np.concatenate([[0], np.cumsum(per_task)]) + offset
    n, J = len(per_task), 12
    E = int(indptr[-1])
    worker = rng.integers(0, J, E).astype(np.int32)
    label = rng.integers(0, K, E).astype(np.int32)
    weight = rng.uniform(0.5, 2.5, E) if weighted else None
    rows = np.log(rng.dirichlet(np.ones(K), n)) if with_prior else np.zeros((1, K))
    index = np.arange(n, dtype=np.int32) if with_prior else None
    sizes = np.array([3, 5])
    rules = [beta_rule(2, 1, int(s)) for s in sizes]
    rule_of = rng.integers(0, 2, J)
    rule_start = np.array([0, 3])[rule_of]
    node_start = np.concatenate([[0], np.cumsum(sizes[rule_of])])
    share = rng.uniform(0.1, 1.0, node_start[-1])
    values = np.concatenate([r.nodes for r in rules])
    log_class = np.log(rng.dirichlet(np.ones(K)))
    return rng, indptr, worker, label, weight, log_class, rows, index, rule_start, node_start, \
        values, share  # fmt: skip


def both(name, arguments, message, n, K, n_nodes, update):
    results = []
    for module in (reference, fast):
        own, sums, mass = message.copy(), np.zeros(n_nodes), np.zeros(K)
        probas = np.empty((n, K))
        value = getattr(module, name)(*arguments, own, sums, mass, probas, 0.25, 1e-6, update)
        results.append((value[0], value[1], own, sums, mass, probas))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    return results[0]


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("update", [True, False])
@pytest.mark.parametrize("offset", [0, 7])
def test_coin_messages_agree(K, weighted, with_prior, update, offset):
    made = problem(K, weighted, with_prior, offset=offset)
    rng, indptr, *graph, rule_start, node_start, values, share = made
    arguments = (indptr, *graph, rule_start, node_start, values, (1 - values) / (K - 1), share)
    message = rng.normal(size=int(indptr[-1] - offset))
    value = both("coin_messages", arguments, message, len(indptr) - 1, K, len(share), update)
    assert (value[1] > 0) == update
    np.testing.assert_allclose(value[5].sum(axis=1), 1)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("update", [True, False])
def test_matrix_messages_agree_with_each_other_and_with_coins(K, weighted, update):
    made = problem(K, weighted, True)
    rng, indptr, worker, label, weight, *prior, rule_start, node_start, values, share = made
    off = (1 - values) / (K - 1)
    nodes = np.where(np.eye(K, dtype=bool), values[:, None, None], off[:, None, None])
    edge_start = np.arange(int(indptr[-1]) + 1)
    arguments = (indptr, edge_start, worker, label, weight, *prior, rule_start, node_start, nodes,
                 share)  # fmt: skip
    ratio = rng.normal(size=len(worker))
    message = np.zeros((len(worker), K))
    message[np.arange(len(worker)), label] = ratio
    full = both("matrix_messages", arguments, message, len(indptr) - 1, K, len(share), update)
    coin = (indptr, worker, label, weight, *prior, rule_start, node_start, values, off, share)
    thin = both("coin_messages", coin, ratio, len(indptr) - 1, K, len(share), update)
    np.testing.assert_allclose(full[3], thin[3], atol=1e-10)  # node sums
    np.testing.assert_allclose(full[5], thin[5], atol=1e-10)  # beliefs
    np.testing.assert_allclose(full[0], thin[0], atol=1e-8)  # evidence: scale-free in messages


def test_an_edge_with_two_labels_multiplies_their_likelihoods():
    """Two labels on one edge equal one label whose column is the product of the two."""
    rng = np.random.default_rng(1)
    nodes = rng.dirichlet(np.ones(3), size=(4, 3)).transpose(0, 2, 1)  # (S, L, K)
    joined = np.concatenate([nodes, nodes[:, :1] * nodes[:, 1:2]], axis=1)  # label 3 = 0 and 1
    share = rng.uniform(size=4)
    log_class, rows = np.log(np.full(3, 1 / 3)), np.zeros((1, 3))
    starts = np.array([0]), np.array([0, 4])

    def run(module, edge_start, label, table):
        message, sums, mass = np.zeros((2, 3)), np.zeros(4), np.zeros(3)
        label = np.array(label, np.int32)
        module.matrix_messages(
            np.array([0, 1, 2]), np.array(edge_start), np.zeros(2, np.int32), label, None,
            log_class, rows, None, *starts, np.ascontiguousarray(table), share, message, sums, mass,
            None, 0.0, 1e-6, True,
        )  # fmt: skip
        return message, sums

    for module in (reference, fast):
        twice = run(module, [0, 2, 3], [0, 1, 2], nodes)
        once = run(module, [0, 1, 2], [3, 2], joined)
        for a, b in zip(twice, once, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)
