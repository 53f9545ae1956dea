import numpy as np
import pytest

from wisecrowd.inference.quadrature import beta_rule
from wisecrowd.kernels.arguments import TaskLabels, TaskPriors
from wisecrowd.kinds.classes.kernels import belief_propagation, belief_propagation_fast
from wisecrowd.kinds.classes.kernels.belief_propagation import Edges, MessageOutput, WorkerNodes


def problem(K, weighted, with_prior, seed=0):
    rng = np.random.default_rng(seed)
    per_task = rng.integers(0, 5, 30)
    indptr = np.concatenate([[0], np.cumsum(per_task)])
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
    labels = TaskLabels(indptr, worker, label, weight)
    nodes = WorkerNodes(rule_start, node_start, values, share)
    return rng, labels, TaskPriors(log_class, rows, index), nodes


def both(name, arguments, message, update):
    priors, nodes = arguments[-2:]
    n, K = len(arguments[0].indptr) - 1, len(priors.log_class)
    results = []
    for module in (belief_propagation, belief_propagation_fast):
        output = MessageOutput(
            message.copy(), np.zeros(len(nodes.share)), np.zeros(K), np.empty((n, K))
        )
        value = getattr(module, name)(*arguments, output, 0.25, 1e-6, update)
        results.append((*value, *output))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    return results[0]


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("update", [True, False])
def test_coin_messages_agree(K, weighted, with_prior, update):
    rng, *arguments = problem(K, weighted, with_prior)
    message = rng.normal(size=len(arguments[0].worker))
    value = both("coin_messages", arguments, message, update)
    assert (value[1] > 0) == update
    np.testing.assert_allclose(value[5].sum(axis=1), 1)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("update", [True, False])
def test_matrix_messages_agree_with_each_other_and_with_coins(K, weighted, update):
    rng, labels, priors, coins = problem(K, weighted, True)
    off = (1 - coins.values) / (K - 1)
    same = np.eye(K, dtype=bool)
    matrices = np.where(same, coins.values[:, None, None], off[:, None, None])
    edges = Edges(labels.indptr, np.arange(len(labels.worker) + 1), labels.worker)
    ratio = rng.normal(size=len(labels.worker))
    message = np.zeros((len(labels.worker), K))
    message[np.arange(len(message)), labels.label] = ratio
    arguments = edges, labels, priors, coins._replace(values=matrices)
    full = both("matrix_messages", arguments, message, update)
    thin = both("coin_messages", (labels, priors, coins), ratio, update)
    np.testing.assert_allclose(full[3], thin[3], atol=1e-10)  # node sums
    np.testing.assert_allclose(full[5], thin[5], atol=1e-10)  # beliefs
    np.testing.assert_allclose(full[0], thin[0], atol=1e-8)  # evidence: scale-free in messages


def test_an_edge_with_two_labels_multiplies_their_likelihoods():
    """Two labels on one edge equal one label whose column is the product of the two."""
    rng = np.random.default_rng(1)
    matrices = rng.dirichlet(np.ones(3), size=(4, 3)).transpose(0, 2, 1)  # (S, L, K)
    joined = np.concatenate([matrices, matrices[:, :1] * matrices[:, 1:2]], axis=1)  # 3 = 0 and 1
    share = rng.uniform(size=4)
    priors = TaskPriors(np.log(np.full(3, 1 / 3)), np.zeros((1, 3)), None)

    def run(module, edge_start, label, table):
        output = MessageOutput(np.zeros((2, 3)), np.zeros(4), np.zeros(3), None)
        edges = Edges(np.array([0, 1, 2]), np.array(edge_start), np.zeros(2, np.int32))
        worker, label = np.zeros(len(label), np.int32), np.array(label, np.int32)
        labels = TaskLabels(np.array(edge_start), worker, label, None)
        nodes = WorkerNodes(np.array([0]), np.array([0, 4]), np.ascontiguousarray(table), share)
        module.matrix_messages(edges, labels, priors, nodes, output, 0.0, 1e-6, True)
        return output.message, output.node_sums

    for module in (belief_propagation, belief_propagation_fast):
        twice = run(module, [0, 2, 3], [0, 1, 2], matrices)
        once = run(module, [0, 1, 2], [3, 2], joined)
        for a, b in zip(twice, once, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)
