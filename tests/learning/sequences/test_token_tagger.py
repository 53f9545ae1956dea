"""TokenTagger: recovers planted tags, masks padding, and comes back from disk."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from wisecrowd import simulate  # noqa: E402
from wisecrowd.core.exceptions import DataError, NotFittedError, ParameterError  # noqa: E402
from wisecrowd.learning.sequences import TokenTagger  # noqa: E402

N, NEW = 120, 40


@pytest.fixture(scope="module")
def texts():
    """Texts whose token ids say the tag, up to a few readings, and a crowd on the first ones."""
    made = simulate.sequences(
        N + NEW, 6, simulate.PerTask(3), mean_length=8, miss=0.15, cut=0.15, random_state=0
    )
    names = made.data.classes.tolist()
    rng = np.random.default_rng(0)
    codes = [[names.index(tag) for tag in text.split()] for text in made.truth]
    ids = [[1 + 3 * code + int(rng.integers(3)) for code in own] for own in codes]
    return made.data[np.arange(N)], ids, made.truth.tolist()


def tagger(**options):
    torch.manual_seed(0)
    return TokenTagger(**{"module": nn.Embedding(30, 8), "epochs": 10, "lr": 0.05, **options})


def test_training_recovers_the_planted_tags(texts):
    data, ids, truth = texts
    model = tagger().fit(ids[:N], data)
    new = model.score(ids[N:], truth[N:])
    other = [str(tags.replace("B-", "b-").replace("I-", "i-").split()) for tags in truth[N:]]
    assert model.score(ids[N:], other) == new
    assert new > model.method_.score(data, dict(enumerate(truth)))  # than what it has learnt from
    assert new > 0.9
    assert len(model.history_) == 10
    assert model.history_[-1] < model.history_[0]


def test_rounds_improve_the_answers_to_the_training_texts(texts):
    data, ids, truth = texts
    known = dict(enumerate(truth))
    once, again = (tagger(rounds=n).fit(ids[:N], data).method_ for n in (1, 2))
    assert again.score(data, known) > once.score(data, known) + 0.02


def test_tags_are_legal_and_spans_have_a_confidence(texts):
    data, ids, _ = texts
    model = tagger(epochs=1).fit(ids[:N], data)
    for text in model.predict(ids[N:]):
        before = "O"
        for tag in text.split():
            assert not tag.startswith("I-") or before[1:] == tag[1:]
            before = tag
    spans = model.predict_spans({"a": ids[N], "b": ids[N + 1]})
    assert set(spans["task"]) <= {"a", "b"}
    assert ((spans["confidence"] >= 0) & (spans["confidence"] <= 1)).all()


def test_padding_does_not_count(texts):
    data, ids, _ = texts
    model = tagger(epochs=1).fit(ids[:N], data)
    alone = [model.predict_proba([one])[0] for one in ids[:5]]
    together = model.predict_proba(ids[:5])
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    # Batches of one text have no padding; the loss is that of tokens alone.
    rows = [0, 1]
    one = tagger(epochs=1, batch_size=1, lr=1e-12).fit([ids[i] for i in rows], data[rows])
    both = tagger(epochs=1, batch_size=2, lr=1e-12).fit([ids[i] for i in rows], data[rows])
    assert one.history_[0] == pytest.approx(both.history_[0], rel=1e-5)


class WithMask(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside = nn.Embedding(30, 7)

    def forward(self, x, mask):
        assert mask.dtype == torch.bool
        return self.inside(x) * mask[..., None]


def test_a_module_may_take_the_mask_and_return_logits(texts):
    data, ids, truth = texts
    model = tagger(module=WithMask(), head=False).fit(ids[:N], data)
    assert model.score(ids[N:], truth[N:]) > 0.8


def test_features_and_mappings(texts):
    data, ids, truth = texts
    one_hot = {i: np.eye(30)[own] for i, own in enumerate(ids)}
    model = tagger(module=nn.Linear(30, 8)).fit({i: one_hot[i] for i in range(N)}, data)
    assert model.score([one_hot[i] for i in range(N, N + NEW)], truth[N:]) > 0.8


def test_the_same_seed_gives_the_same_tagger_and_torch_is_left_alone(texts):
    data, ids, _ = texts
    first, second = (tagger(epochs=1).fit(ids[:N], data) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(ids[N:])[0], second.predict_proba(ids[N:])[0])
    model = tagger(epochs=1)
    state = torch.get_rng_state()
    model.fit(ids[:N], data)
    assert torch.equal(state, torch.get_rng_state())


def test_save_and_load(texts, tmp_path):
    data, ids, _ = texts
    model = tagger(epochs=1).fit(ids[:N], data)
    model.save(tmp_path / "tagger")
    loaded = TokenTagger.load(tmp_path / "tagger", nn.Embedding(30, 8))
    assert loaded.predict(ids[N:]) == model.predict(ids[N:])
    with pytest.raises(DataError, match="does not fit the network"):
        TokenTagger.load(tmp_path / "tagger", nn.Embedding(30, 9))


@pytest.mark.parametrize(
    ("options", "rows", "error", "message"),
    [
        ({"module": "lstm"}, None, ParameterError, "give a torch module"),
        ({"module": nn.Flatten()}, None, ParameterError, "must return"),
        ({"head": False}, None, ParameterError, "8 outputs per token for 7 tags"),
        ({"method": "dawid-skene"}, None, ParameterError, "a method for sequences"),
        ({"rounds": 0}, None, ParameterError, "rounds"),
        ({}, slice(0, 3), DataError, "X has 3 texts for 120 tasks"),
        ({}, "short", DataError, "tags and 1 tokens in X"),
        ({}, "words", DataError, "give ids"),
    ],
)
def test_bad_input_is_one_sentence(texts, options, rows, error, message):
    data, ids, _ = texts
    given = ids[:N]
    if isinstance(rows, slice):
        given = given[rows]
    elif rows == "short":
        given = [[1], *given[1:]]
    elif rows == "words":
        given = [["a"] * len(given[0]), *given[1:]]
    with pytest.raises(error, match=message):
        tagger(**options).fit(given, data)


def test_it_must_be_fitted_first():
    with pytest.raises(NotFittedError, match="fit it to texts"):
        tagger().predict([[1, 2]])
