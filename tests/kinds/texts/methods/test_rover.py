"""ROVER: votes over words by hand, ties, spelling, weights of workers, real transcriptions."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import load, simulate
from wisecrowd.aggregation import EmbeddingMedoid, Rover, TextMedoid
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.io.tables import read, read_frame
from wisecrowd.kinds.texts.container import CrowdTexts
from wisecrowd.kinds.texts.metrics import word_error_rate


def text_of(*texts, **options):
    workers = [f"worker-{k}" for k in range(len(texts))]
    return Rover(**options).fit((["t"] * len(texts), workers, list(texts)))


def test_every_slot_is_a_vote():
    fitted = text_of("a x c d", "a b c e", "f b c d", rounds=0)
    assert fitted.texts_[0] == "a b c d"  # a text that nobody wrote
    squares = {2: 4 / (4 + 1 + kappa(fitted)), 3: 9 / (9 + kappa(fitted))}
    assert fitted.word_confidence_ == pytest.approx(
        [squares[2], squares[2], squares[3], squares[2]]
    )
    assert fitted.confidence_[0] == pytest.approx(fitted.word_confidence_.mean())


def kappa(fitted):
    rate = fitted.pooled_error_rate_
    return max(rate / (1 - rate), 0.05)


@pytest.mark.parametrize("method", [Rover, TextMedoid, EmbeddingMedoid])
@pytest.mark.parametrize("unit", ["word", "character"])
@pytest.mark.parametrize(
    "text",
    ["Dear Ann,\n\n  well -- known   words ...  ", "...", " ", "\ta\r\nb", "a\u0301 e", "' x"],
)
def test_unanimous_texts_come_back_to_the_letter(method, unit, text, tmp_path):
    data = CrowdTexts.from_arrays([*"tttuu"], [*"abcab"], [text, text, text, "x  y", "x y z"])
    fitted = method(unit=unit).fit(data)
    assert fitted.texts_[0] == fitted.predict(data)[0] == text
    assert "  " not in fitted.texts_[1]  # words make it
    fitted.save(tmp_path / "model")
    assert load(tmp_path / "model").texts_.tolist() == fitted.texts_.tolist()


def test_only_counted_answers_are_unanimous():
    data = CrowdTexts.from_arrays([*"ttt"], [*"abc"], ["a  b", "a  b", "c"], weight=[1, 1, 0])
    assert Rover().fit(data).texts_[0] == "a  b"
    kept = Rover(normalise=lambda word: "" if word == "um" else word)
    assert kept.fit(CrowdTexts.from_arrays([*"tt"], [*"ab"], ["a um b"] * 2)).texts_[0] == "a b"


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (("a b", "a"), "a b"),  # a word before nothing
        (("a bb", "a ccc"), "a ccc"),  # the longer word
        (("a dog", "a cat"), "a cat"),  # the first by alphabet
        (("a b", "a", "a"), "a"),
        (("", "", "a b"), ""),
        (("", "yes"), "yes"),
    ],
)
def test_ties_and_nothing(texts, wanted):
    assert text_of(*texts, rounds=0).texts_[0] == wanted
    assert text_of(*texts[::-1], rounds=0).texts_[0] == wanted


def test_the_commonest_spelling_is_returned():
    assert text_of("The well-known Dog", "the well-known dog.", "the well known Dog").texts_[0] == (
        "the well-known Dog"
    )
    assert text_of("It's", "its", "IT\u2019S").texts_[0] == "IT\u2019S"  # by alphabet
    assert text_of("你好。", "你们好", "你好", unit="character").texts_[0] == "你好"


def test_words_and_forms_that_are_equal():
    texts = ("Mr Yule", "mister yule", "Mister Yale")
    plain = text_of(*texts, rounds=0)
    fitted = text_of(*texts, rounds=0, normalise=lambda word: {"mr": "mister"}.get(word, word))
    assert plain.texts_[0] == "Mister Yule"  # of equally common spellings the first by alphabet
    assert fitted.texts_[0] == "Mister Yule"
    assert plain.word_confidence_[0] < fitted.word_confidence_[0]


def test_the_error_rates_of_a_small_crowd_by_hand():
    texts = ["a b c d", "a b c d", "a b x x", "p q", "p q", "p q"]
    data = CrowdTexts.from_arrays([1, 1, 1, 2, 2, 2], list("xyz") * 2, texts)
    fitted = Rover(rounds=0).fit(data)
    # The others of x and y tie with z, which goes to c d; z is wrong in two words.
    pooled = (2 * 3 / 4 + 1) / (18 + 5)
    assert fitted.pooled_error_rate_ == pytest.approx(pooled)
    assert fitted.error_rate_[2] == pytest.approx((1.5 + 5 * pooled) / 11)
    assert fitted.error_rate_[0] == pytest.approx(5 * pooled / 11)
    assert fitted.compared_words_.tolist() == [6, 6, 6]


def test_one_answer_per_task_judges_nobody():
    fitted = Rover().fit(([1, 2, 3], ["a", "a", "b"], ["x y", "z", "w"]))
    assert fitted.texts_.tolist() == ["x y", "z", "w"]
    assert fitted.error_rate_ == pytest.approx([0.2, 0.2])
    assert fitted.confidence_ == pytest.approx([0.8] * 3)
    assert fitted.compared_words_.tolist() == [0, 0]


def test_it_recovers_the_error_rates_of_its_simulator():
    made = simulate.texts(200, 12, simulate.PerTask(5), random_state=1)
    fitted = Rover().fit(made.data)
    truth = dict(enumerate(made.truth))
    assert fitted.score(made.data, truth) > 0.97
    assert fitted.score(made.data, truth) > np.mean(
        [1 - word_error_rate(made.truth[made.data.task], made.data.text)]
    )
    true = made.mistakes.sum(axis=1)
    assert np.corrcoef(true, fitted.error_rate_)[0, 1] > 0.95
    assert abs(fitted.pooled_error_rate_ - true.mean()) < 0.05


def test_weights_listen_to_the_good_workers():
    good = simulate.texts(60, 2, simulate.Dense(), substitute=0.02, drop=0, insert=0)
    bad = simulate.texts(60, 3, simulate.Dense(), substitute=0.7, drop=0, insert=0, shared=0.9)
    data = CrowdTexts.from_arrays(
        np.concatenate([good.data.task, bad.data.task]),
        np.concatenate([good.data.worker, bad.data.worker + 2]),
        np.concatenate([good.data.text, bad.data.text]),
    )
    truth = dict(enumerate(good.truth))
    weighted, plain = Rover().fit(data), Rover(rounds=0).fit(data)
    assert weighted.score(data, truth) > plain.score(data, truth) + 0.1
    assert weighted.worker_weight_[:2].min() > 2 * weighted.worker_weight_[2:].max()


def test_three_excellent_workers_in_a_poor_crowd_are_not_certain():
    rng = np.random.default_rng(0)
    rows = []
    for i in range(30):
        for j in range(9):
            text = (
                f"the words of text {i}" if j < 3 else " ".join(map(str, rng.integers(0, 999, 5)))
            )
            rows.append((i, j, text))
    fitted = Rover().fit(tuple(map(list, zip(*rows, strict=True))))
    assert fitted.texts_.tolist() == [f"the words of text {i}" for i in range(30)]
    assert fitted.word_confidence_.max() < 0.9995


def test_bad_parameters():
    for options in ({"rounds": -1}, {"pseudo_words": 0}, {"unit": "line"}, {"normalise": 3}):
        with pytest.raises(ParameterError):
            text_of("a", **options)


@pytest.mark.data
def test_real_transcriptions(data_directory):
    folder = data_directory / "crowdspeech"
    data = read(folder / "answers.csv", type="texts")
    table = read_frame(folder / "truth.csv")
    truth = dict(zip(table["task"].to_pylist(), table["text"].to_pylist(), strict=True))
    fitted = Rover().fit(data)
    assert 1 - fitted.score(data, truth) <= 0.098
    assert abs(fitted.confidence_.mean() - fitted.score(data, truth)) < 0.03


def test_low_agreement_is_called_agreement():
    said = ["the cat sat on a mat", "a feline rested upon the rug", "there was one cat lying down"]
    task, worker = np.divmod(np.arange(36), 3)
    found = {one.id: one for one in Rover().fit((task, worker, said * 12)).findings_}
    assert found["low-agreement"].severity == "info"
    assert "confidences are this agreement" in found["low-agreement"].explanation
    same = Rover().fit((task, worker, ["x y"] * 36))
    assert "low-agreement" not in [one.id for one in same.findings_]
