"""Medoids of vectors: the user's vectors decide, weights follow distances."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import EmbeddingMedoid
from wisecrowd.core.exceptions import DataError, ParameterError

TEN, ELEVEN = 3.2469727802, 3.8157482522  # quantiles of chi-squared at 0.025
MEANING = {"big": 1.0, "large": 1.1, "huge": 1.2, "tiny": -1.0}


def meaning(texts):
    return np.array([[sum(MEANING.get(word, 0.0) for word in text.split())] for text in texts])


def test_texts_of_other_words_and_the_same_meaning():
    answers = (["t"] * 4, list("abcd"), ["big", "large", "huge", "tiny"])
    assert EmbeddingMedoid(embed=meaning, rounds=0).fit(answers).texts_[0] == "big"  # mean 0.575
    several = (["t", "u"] * 4, np.repeat(list("abcd"), 2), np.repeat(answers[2], 2))
    fitted = EmbeddingMedoid(embed=meaning).fit(several)
    assert fitted.worker_weight_.argmin() == 3
    assert fitted.worker_weight_.argmax() in (0, 1)


def test_the_weights_by_hand():
    answers = (["t"] * 3, list("abc"), ["big", "huge", "tiny"])
    fitted = EmbeddingMedoid(embed=meaning, rounds=1).fit(answers)
    distance = np.array([(1.0 - 0.1) ** 2, 1.2**2, (-1.0 - 1.1) ** 2])
    typical = TEN / (10 * distance.mean())
    wanted = ELEVEN / (distance + 10 * distance.mean()) / typical
    assert fitted.worker_weight_ == pytest.approx(wanted)


@pytest.mark.parametrize(
    "embed", [lambda texts: np.zeros(3), lambda texts: np.full((len(texts), 2), np.nan)]
)
def test_bad_vectors(embed):
    with pytest.raises(DataError, match="embed returns an array of shape"):
        EmbeddingMedoid(embed=embed).fit((["t"], ["a"], ["x"]))


def test_bad_parameters():
    for options in ({"embed": 3}, {"alpha": 0.0}):
        with pytest.raises(ParameterError):
            EmbeddingMedoid(**options).fit((["t"], ["a"], ["x"]))
