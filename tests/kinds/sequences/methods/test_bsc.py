"""BSC: exact confidence, its own simulator, real data."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import BSC, HMMCrowd, TokenWise
from wisecrowd.core.exceptions import DataError
from wisecrowd.inference.dirichlet import expectation
from wisecrowd.io.tables import read, read_truth
from wisecrowd.kinds.sequences import kernels
from wisecrowd.kinds.sequences.answers import known_tags
from wisecrowd.kinds.sequences.checks import example as small_sequences
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.methods.bsc import previous_tag
from wisecrowd.kinds.sequences.methods.marked_spans import span_confidence
from wisecrowd.kinds.sequences.methods.tag_chains import TagChains
from wisecrowd.kinds.sequences.tag_scheme import TagScheme

SCHEME = TagScheme.of(["B-LOC", "B-PER", "O"])


def test_the_confidence_of_a_span_is_the_probability_that_it_is_there():
    rng = np.random.default_rng(0)
    K, n = len(SCHEME.tags), 4
    evidence, pointer = rng.normal(size=(n, K)), np.array([0, n])
    start = SCHEME.legal[-1] * rng.uniform(0.1, 1, K)
    step = SCHEME.legal[:-1] * rng.uniform(0.1, 1, (K, K))
    posterior = kernels.smooth(evidence, pointer, start, step)
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


def test_claims_are_the_mean_of_two_posteriors_and_never_certain():
    data = small_sequences(BSC)
    unknown = np.full(int(data.token_pointer[-1]), -1)
    model = TagChains(data, unknown, previous_tag(data.tag_scheme), variational=True)
    run = model.run(20, 1e-3)
    q = run.posterior.marginals
    found = model.answers(run.counts, q)
    evidence = model.kernels.evidence_without_own(
        model.labels, run.counts.tags, model.context.table, q
    )
    start, step = run.counts.expected()
    n = np.repeat(data.labels_per_task, data.length)[:, None]
    wanted = [
        kernels.smooth(evidence * share, data.token_pointer, start, step).marginals
        for share in (1.0, 1 / (1 + 0.5 * (n - 1)))
    ]
    np.testing.assert_allclose(found.marginals, sum(wanted) / 2, atol=1e-9)
    assert found.confidence.max() < 0.9


def test_known_spans_are_certain():
    data = small_sequences(BSC)
    known = " ".join(["B-LOC", *["I-LOC"] * (int(data.length[0]) - 1)])
    fitted = BSC().fit(data, gold={data.tasks[0]: known})
    assert fitted.span_confidence_[0] == pytest.approx(1)
    assert fitted.span_confidence_[1:].max() < 0.9


def test_tokens_that_nobody_marked_stay_outside():
    """Everybody else's first token is a name, and the only reader of the last text is careless."""
    tags = ["B-PER"] * 10 + ["O"] * 6
    task = [f"s{n // 2}" for n in range(10)] + [f"s{n}" for n in range(5)] + ["t"]
    worker = ["ann", "bob"] * 5 + ["cem"] * 6
    for method in (BSC(), HMMCrowd(), TokenWise()):
        assert method.fit((task, worker, tags)).tags_[-1] == "O", method


def test_a_tagger_s_output_counts():
    data = small_sequences(BSC)
    n, K = int(data.token_pointer[-1]), data.n_classes
    plain = BSC().fit(data)
    flat = BSC().fit(data, task_prior=np.full((n, K), 1 / K))
    np.testing.assert_allclose(flat.marginals_, plain.marginals_, atol=1e-9)
    made = simulate.sequences(60, 6, simulate.PerTask(2), mean_length=6, random_state=0)
    data, known = made.data, dict(enumerate(made.truth))
    truth = known_tags(known, data)
    prior = np.full((len(truth), data.n_classes), 0.2 / (data.n_classes - 1))
    prior[np.arange(len(truth)), truth] = 0.8
    for method in (BSC(), HMMCrowd(), TokenWise()):
        before = method.fit(data).score(data, known)
        led = method.fit(data, task_prior=prior)
        assert led.score(data, known) > before + 0.05, method
    parts = np.split(prior, data.token_pointer[1:-1])
    by_task = dict(zip(data.tasks.tolist(), parts, strict=True))
    for form in (parts, by_task, np.log(prior)):
        again = TokenWise().fit(data, task_prior=form)
        np.testing.assert_allclose(again.marginals_, led.marginals_, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p, data: p[:-1], "one row per token"),
        (lambda p, data: p * np.sign(np.arange(len(p)) - 2.5)[:, None], "both signs"),
        (lambda p, data: p * np.nan, "not numbers"),
        (lambda p, data: 0 * p - np.inf, "rules out all tags"),
        (lambda p, data: [p], "1 arrays for"),
        (lambda p, data: np.split(p, data.token_pointer[1:-1] + 1), "The task prior of task"),
        (lambda p, data: {}, "lacks task"),
    ],
)
def test_a_bad_prior_is_one_sentence(change, message):
    data = small_sequences(BSC)
    prior = np.full((int(data.token_pointer[-1]), data.n_classes), 0.2)
    with pytest.raises(DataError, match=message):
        BSC().fit(data, task_prior=change(prior, data))


@pytest.mark.data
def test_named_entities(data_directory):
    folder = data_directory / "ner_mturk"
    data = read(folder / "answers.csv", type="sequences")
    table = read_truth(folder / "truth.csv")
    truth = dict(zip(table["task"].to_pylist(), table["label"].to_pylist(), strict=True))
    assert BSC().fit(data).score(data, truth) >= 0.765  # the vote has .683
