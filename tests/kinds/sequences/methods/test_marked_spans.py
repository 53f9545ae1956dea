"""Answers are bound to marked spans, their confidence counts the votes, and two workers can tie."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.aggregation import BSC, HMMCrowd, TokenWise
from wisecrowd.kinds.sequences import kernels
from wisecrowd.kinds.sequences.answers import SequencePrior
from wisecrowd.kinds.sequences.checks import example as small_sequences
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.methods.bsc import previous_tag
from wisecrowd.kinds.sequences.methods.marked_spans import MarkedSpans, span_confidence
from wisecrowd.kinds.sequences.methods.tag_chains import MOST_TIED, TagChains

METHODS = (BSC, HMMCrowd, TokenWise)
TYPES = ("LOC", "ORG", "PER")


def random_tags(rng, length, types=TYPES, share=0.5):
    """Return legal tags of spans of 1 to 3 tokens."""
    tags = []
    while len(tags) < length:
        if rng.random() < share:
            kind = types[rng.integers(len(types))]
            tags += [f"B-{kind}", *[f"I-{kind}"] * int(rng.integers(0, 3))]
        else:
            tags.append("O")
    return tags[:length]


def random_crowd(seed, n_tasks=6, types=TYPES, weighted=False):
    """Return labels that hardly agree, and other legal tags of the same tasks."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 10, n_tasks)
    rows = [
        (i, j, " ".join(random_tags(rng, n, types)))
        for i, n in enumerate(lengths)
        for j in range(4)
    ]
    task, worker, tags = map(list, zip(*rows, strict=True))
    weight = {"weight": rng.integers(0, 4, len(task)) / 2} if weighted else {}
    classes = ["O", *(f"{p}-{x}" for x in types for p in "BI")]
    data = CrowdSequences.from_arrays(task, worker, tags, classes=classes, **weight)
    place = {tag: k for k, tag in enumerate(data.classes.tolist())}
    path = [place[tag] for n in lengths for tag in random_tags(rng, n, types, 0.7)]
    return data, np.array(path, dtype=np.int32)


def spans_in(tags):
    """Return (start, end, type) of the spans of a list of tags."""
    found, start = [], None
    for t, tag in enumerate([*tags, "O"]):
        if start is not None and not tag.startswith("I-"):
            found.append((start, t, tags[start][2:]))
            start = None
        if tag.startswith("B-"):
            start = t
    return found


def bound_by_hand(data, path):
    """Return the spans of each task when lost answers are replaced one at a time, best first."""
    weight = np.ones(data.n_annotations) if data.weight is None else data.weight
    by_task = [{} for _ in data.tasks]
    often = {}
    for row, (i, tags) in enumerate(zip(data.task, data.to_dict()["tags"], strict=True)):
        for span in spans_in(tags.split()):
            if weight[row] > 0:
                by_task[i][span] = by_task[i].get(span, 0.0) + weight[row]
                often[span[2]] = often.get(span[2], 0.0) + weight[row]
    names, ends, result = data.classes[path], data.token_pointer, []
    for i, votes in enumerate(by_task):
        answers = spans_in(names[ends[i] : ends[i + 1]].tolist())
        kept = [span for span in answers if span in votes]
        pairs = []
        for lost in set(answers) - set(kept):
            for span, number in votes.items():
                common = min(lost[1], span[1]) - max(lost[0], span[0])
                if common > 0:
                    union = lost[1] - lost[0] + span[1] - span[0] - common
                    rank = (-number, -round(common / union, 9), lost[2] != span[2])
                    pairs.append((*rank, -often[span[2]], span, lost))
        done = set()
        for *_, span, lost in sorted(pairs):
            free = all(span[1] <= other[0] or other[1] <= span[0] for other in kept)
            if lost not in done and free:
                done.add(lost)
                kept.append(span)
        result.append(sorted(kept))
    return result


def named(data, path):
    limits = pairwise(data.token_pointer.tolist())
    return [spans_in(data.classes[path[a:b]].tolist()) for a, b in limits]


@pytest.mark.parametrize("weighted", [False, True])
def test_lost_answers_are_replaced_as_one_by_one(weighted):
    for seed in range(20):
        data, path = random_crowd(seed, weighted=weighted)
        found = MarkedSpans.of(data).bind(path, np.full(len(path), -1))
        assert named(data, found) == bound_by_hand(data, path), seed
        before = np.append(data.n_classes, found[:-1])
        before[data.token_pointer[:-1]] = data.n_classes
        assert data.tag_scheme.legal[before, found].all()
        assert np.array_equal(MarkedSpans.of(data).bind(found, np.full(len(path), -1)), found)


def bind_text(labels, path, **options):
    """Return what becomes of the tags of one text."""
    data = CrowdSequences.from_arrays(["s"] * len(labels), range(len(labels)), labels, **options)
    place = {tag: k for k, tag in enumerate(data.classes.tolist())}
    codes = np.array([place[tag] for tag in path.split()], dtype=np.int32)
    found = MarkedSpans.of(data).bind(codes, np.full(len(codes), -1))
    return " ".join(data.classes[found])


def test_votes_count_first_then_the_overlap_then_the_type():
    lost = "O B-X I-X O"
    assert bind_text(["B-X I-X I-X O", "O B-X O O", "O B-X O O"], lost) == "O B-X O O"
    assert bind_text(["B-X I-X I-X O", "O B-X O O"], lost) == "B-X I-X I-X O"
    assert bind_text(["O B-X O O", "O B-Y O O", "O B-Y O O", "O B-X O O"], lost) == "O B-X O O"


def test_an_answer_without_a_free_marked_span_is_dropped():
    assert bind_text(["B-X I-X O", "O O B-X"], "B-X B-X B-X") == "B-X I-X B-X"
    assert bind_text(["B-X I-X", "B-X O"], "B-X B-X") == "B-X O"  # the first was marked
    assert bind_text(["O B-X O", "O B-X O"], "O O B-X") == "O O O"


def test_labels_without_weight_mark_nothing():
    labels = ["B-X I-X O", "B-X O O"]
    assert bind_text(labels, "B-X I-X O", weight=[0.0, 1.0]) == "B-X O O"


def test_known_spans_stay():
    data = CrowdSequences.from_arrays(["s"], ["ann"], ["B-X O O"])
    path = np.array([1, 2, 0], dtype=np.int32)
    marked = MarkedSpans.of(data)
    assert marked.bind(path, path.astype(np.int64)).tolist() == [1, 2, 0]
    assert marked.bind(path, np.full(3, -1)).tolist() == [1, 0, 0]


def test_types_by_other_names_and_rows_in_another_order_change_nothing():
    for seed in range(10):
        data, path = random_crowd(seed)
        wanted = named(data, MarkedSpans.of(data).bind(path, np.full(len(path), -1)))
        other = {"LOC": "Z", "ORG": "M", "PER": "A"}
        table, order = data.to_dict(), np.random.default_rng(seed).permutation(data.n_annotations)
        texts = table["tags"].tolist()
        for old, new in other.items():
            texts = [text.replace(f"-{old}", f"-{new}") for text in texts]
        again = CrowdSequences.from_arrays(
            table["task"][order], [f"w{-j}" for j in table["worker"][order]],
            np.array(texts, dtype=object)[order],
            classes=["O", *(f"{p}-{x}" for x in other.values() for p in "BI")],
        )  # fmt: skip
        place = {tag: k for k, tag in enumerate(again.classes.tolist())}
        renamed = [tag[:2] + other[tag[2:]] if len(tag) > 1 else tag for tag in data.classes[path]]
        codes = np.array([place[tag] for tag in renamed], dtype=np.int32)
        found = named(again, MarkedSpans.of(again).bind(codes, np.full(len(codes), -1)))
        assert found == [[(a, b, other[x]) for a, b, x in one] for one in wanted], seed


@pytest.mark.parametrize("method", METHODS)
def test_no_fit_answers_a_span_that_nobody_marked(method, tmp_path):
    data = simulate.sequences(40, 6, simulate.PerTask(3), mean_length=8, random_state=1).data
    fitted = method().fit(data)
    again = fitted._predicted(data, None, None)
    for path in (fitted.path_, again.path):
        spans = data.tag_scheme.spans(path, data.token_pointer)
        assert len(spans.start) > 20
        assert MarkedSpans.of(data).votes_for(spans).min() > 0
    fitted.save(tmp_path / "model")
    loaded = wc.load(tmp_path / "model")
    assert loaded.tags_.tolist() == fitted.tags_.tolist()
    for name, column in fitted.main_columns().items():
        assert loaded.main_columns()[name].tolist() == column.tolist(), name


def chains_of(data):
    unknown = np.full(int(data.token_pointer[-1]), -1)
    model = TagChains(data, unknown, previous_tag(data.tag_scheme), variational=True)
    return model, model.run(20, 1e-3)


def test_the_confidence_counts_the_votes():
    data = small_sequences(BSC)
    model, run = chains_of(data)
    q = run.posterior.marginals
    rng = np.random.default_rng(0)
    n = data.labels_per_task
    tags = [data.tag_scheme.tags.index(tag) for size in data.length
            for tag in random_tags(rng, int(size), ("LOC", "PER"))]  # fmt: skip
    for path in (model.answers(run.counts, q).path, np.array(tags, dtype=np.int32)):
        _, found = model.claims(run.counts, path, q)
        evidence = model.kernels.evidence_without_own(
            model.labels, run.counts.tags, model.context.table, q
        )
        start, step = run.counts.expected()
        token_n = np.repeat(n, data.length)[:, None]
        chain = np.mean([
            span_confidence(
                data.tag_scheme, data.token_pointer, path,
                kernels.smooth(evidence * share, data.token_pointer, start, step), step,
            )
            for share in (1.0, 1 / (1 + 0.5 * (token_n - 1)))
        ], axis=0)  # fmt: skip
        given = data.to_dict()["tags"]
        for i, spans in enumerate(named(data, path)):
            for span in spans:
                votes = sum(span in spans_in(tags.split()) for tags in given[data.task == i])
                c, *chain = chain
                wanted = 0.9 * (0.8 * c + 0.2 * (votes + 1) / (n[i] + 2)) * (1 if votes else 0.3)
                own, *found = found
                assert own == pytest.approx(wanted, abs=1e-9)
        assert len(found) == 0


def test_tag_probabilities_are_half_those_of_the_votes():
    data = small_sequences(BSC)
    model, run = chains_of(data)
    answers = model.answers(run.counts, run.posterior.marginals)
    found = model.with_doubt(answers, SequencePrior(None), data.n_workers)
    votes = np.zeros_like(answers.marginals)
    np.add.at(votes, (data.token, data.tags), 1.0)
    votes /= votes.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.marginals, (answers.marginals + votes) / 2, atol=1e-12)
    np.testing.assert_allclose(BSC(max_iter=20).fit(data).marginals_, found.marginals, atol=1e-9)


def test_tokens_without_votes_keep_the_claims_of_the_chains():
    data = CrowdSequences.from_arrays(
        ["s", "s", "t"], ["ann", "bob", "ann"], ["B-X O", "B-X O", "O B-X"], weight=[1.0, 1.0, 0.0]
    )
    model, run = chains_of(data)
    answers = model.answers(run.counts, run.posterior.marginals)
    found = model.with_doubt(answers, SequencePrior(None), 3).marginals
    np.testing.assert_allclose(found[2:], answers.marginals[2:], atol=1e-12)


def test_plain_tags_and_a_tagger_s_spans_are_not_bound():
    """A span that nobody marked may then be an answer, at three tenths of its confidence."""
    marked = CrowdSequences.from_arrays(["s"] * 2, ["ann", "bob"], ["B-X O O", "O O O"])
    path, unknown = np.array([0, 0, 1], dtype=np.int32), np.full(3, -1)
    context = previous_tag(marked.tag_scheme)
    free = TagChains(marked, unknown, context, variational=True, other=np.zeros((3, 3)))
    assert free.bound(path).tolist() == [0, 0, 1]
    _, (confidence,) = free.claims(free.counts_of(free._votes()), path)
    assert confidence <= 0.3 * 0.9 * (0.8 + 0.2 / 4)
    bound = TagChains(marked, unknown, context, variational=True)
    assert bound.bound(path).tolist() == [0, 0, 0]
    plain = CrowdSequences.from_arrays(["s"], ["ann"], ["a b b"], scheme="plain")
    model = TagChains(plain, unknown, previous_tag(plain.tag_scheme), variational=True)
    assert model.bound(np.array([0, 0, 1], dtype=np.int32)).tolist() == [0, 0, 1]


def rows(*pairs, n=8):
    """Two workers: the first tags ``pairs[0]``, the second ``pairs[1]``, on n tasks."""
    task = np.repeat(np.arange(n), len(pairs))
    return task, ["x", "y", "z"][: len(pairs)] * n, list(pairs) * n


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("other", ["O O B-Y O O O", "O O O O O O", "B-X I-X O O O O"])
def test_contradictions_of_two_workers_take_no_side(method, other):
    fitted = method().fit(rows("B-X O O O O O", other))
    assert fitted.span_confidence_.max(initial=0.0) <= MOST_TIED
    again = fitted._predicted(rows("B-X O O O O O", other), None, None)
    assert again.confidence == pytest.approx(fitted.span_confidence_)


@pytest.mark.parametrize("method", METHODS)
def test_agreement_third_workers_and_gold_still_count(method):
    assert method().fit(rows("B-X O O", "B-X O O")).span_confidence_.min() > 0.8
    three = method().fit(rows("B-X O O", "B-X O O", "O O O"))
    assert three.span_confidence_.max() > MOST_TIED
    labels = rows("B-X O O", "O O O")
    known = method().fit(labels, gold=dict.fromkeys(range(6), "B-X O O"))
    assert known.span_confidence_.max() == 1
