"""BSC: exact confidence, its own simulator, real data."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from wisecrowd.aggregation import BSC
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.core.tag_scheme import TagScheme
from wisecrowd.families.tag_chains import TagChains, previous_tag, span_confidence
from wisecrowd.inference.dirichlet import expectation
from wisecrowd.io.tables import read, read_truth
from wisecrowd.kernels.tag_chains import reference
from wisecrowd.testing.crowds import small_sequences

SCHEME = TagScheme.of(["B-LOC", "B-PER", "O"])


def test_the_confidence_of_a_span_is_the_probability_that_it_is_there():
    rng = np.random.default_rng(0)
    K, n = len(SCHEME.tags), 4
    evidence, pointer = rng.normal(size=(n, K)), np.array([0, n])
    start = SCHEME.legal[-1] * rng.uniform(0.1, 1, K)
    step = SCHEME.legal[:-1] * rng.uniform(0.1, 1, (K, K))
    posterior = reference.smooth(evidence, pointer, start, step)
    path = np.array([0, 3, 4, 0], dtype=np.int32)  # O B-PER I-PER O
    total = wanted = 0.0
    for tags in product(range(K), repeat=n):
        weight = start[tags[0]] * np.exp(evidence[range(n), tags].sum())
        weight *= np.prod([step[a, b] for a, b in pairwise(tags)])
        total += weight
        spans = SCHEME.spans(np.array(tags), pointer)
        wanted += weight * ((1, 3, 1) in zip(spans.start, spans.end, spans.kind, strict=True))
    found = span_confidence(SCHEME, pointer, path, posterior, step)
    assert found == pytest.approx([wanted / total])


def simulated(n=400, seed=0):
    """Return tags drawn from the model, the true tags and the workers' matrices."""
    rng = np.random.default_rng(seed)
    K, J = len(SCHEME.tags), 5
    legal = SCHEME.legal
    step = legal * rng.uniform(0.2, 1, legal.shape)
    step /= step.sum(axis=1, keepdims=True)
    theta = legal[None, :, None, :] * (0.08 + 3 * np.eye(K))[None, None]
    theta = theta * rng.uniform(0.3, 1.7, (J, 1, K, K)) + 1e-9
    theta /= theta.sum(axis=-1, keepdims=True)
    rows, truth = [], {}
    for i in range(n):
        z = [K]
        for _ in range(8):
            z.append(rng.choice(K, p=step[z[-1]]))
        truth[i] = [SCHEME.tags[k] for k in z[1:]]
        for j in range(J):
            y = [K]
            for k in z[1:]:
                y.append(rng.choice(K, p=theta[j, y[-1], k]))
            rows.append((i, j, " ".join(SCHEME.tags[tag] for tag in y[1:])))
    task, worker, tags = map(list, zip(*rows, strict=True))
    data = CrowdSequences.from_arrays(task, worker, tags, classes=list(SCHEME.tags))
    return data, truth, theta


def test_it_recovers_its_own_model():
    data, truth, theta = simulated()
    fitted = BSC().fit(data)
    assert fitted.score(data, truth) > 0.97
    found = expectation(fitted.tag_counts_)[:-1]
    seen = fitted.tag_counts_[:-1].sum(axis=-1) > 100
    assert np.abs(found - theta)[seen].mean() < 0.02
    assert np.abs(found - theta)[seen].max() < 0.2


def test_many_tags_need_three_contexts():
    tags = TagScheme.of([f"B-{n:02d}" for n in range(25)])
    context = previous_tag(tags)
    assert len(context.prior) == 3
    begin, inside, other = (tags.tags.index(tag) for tag in ("B-07", "I-07", "B-09"))
    assert context.table[begin, inside] == 1
    assert context.table[other, inside] == 2
    assert context.table[len(tags.tags), inside] == 0  # the start
    assert context.prior[0, 0, inside] < context.prior[0, 0, begin]
    assert context.prior[2, inside, inside] < context.prior[1, inside, inside]


def test_the_bound_and_the_likelihood_rise():
    data = small_sequences(BSC)
    unknown = np.full(int(data.token_pointer[-1]), -1)
    for variational in (True, False):
        model = TagChains(data, unknown, previous_tag(data.tag_scheme), variational)
        history = np.array(model.run(30, 0.0).history)
        assert (np.diff(history) > -1e-9 * np.abs(history[1:])).all()


def test_an_unknown_worker_counts_less_than_a_good_one():
    data, _, _ = simulated(100)
    fitted = BSC().fit(data)
    good = fitted._predicted((["x"], [0], ["O B-PER I-PER"]), None, None)
    with pytest.warns(UserWarning, match="were not in the fit"):
        strange = fitted._predicted((["x"], ["nobody"], ["O B-PER I-PER"]), None, None)
    assert strange.confidence.max(initial=0) < good.confidence.max()


@pytest.mark.data
def test_named_entities(data_directory):
    folder = data_directory / "ner_mturk"
    data = read(folder / "answers.csv", type="sequences")
    table = read_truth(folder / "truth.csv")
    truth = dict(zip(table["task"].to_pylist(), table["label"].to_pylist(), strict=True))
    assert BSC().fit(data).score(data, truth) >= 0.765  # the vote has .683
