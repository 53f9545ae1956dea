"""Simulated texts have the mistakes that they were asked for."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.texts.metrics import word_error_rate


def test_without_mistakes_every_text_is_the_truth():
    made = simulate.texts(30, 4, substitute=0, drop=0, insert=0)
    assert made.data.text.tolist() == made.truth[made.data.task].tolist()


@pytest.mark.parametrize("mistake", ["substitute", "drop", "insert"])
def test_each_mistake_has_its_rate(mistake):
    rates = {"substitute": 0.0, "drop": 0.0, "insert": 0.0, mistake: 0.2}
    made = simulate.texts(400, 10, simulate.PerTask(3), **rates)
    own = made.mistakes[:, ["substitute", "drop", "insert"].index(mistake)]
    wanted = own[made.data.worker].mean()
    found = word_error_rate(made.truth[made.data.task], made.data.text)
    assert found == pytest.approx(wanted, abs=0.02)
    change = np.mean([len(text.split()) for text in made.data.text]) / np.mean(
        [len(text.split()) for text in made.truth[made.data.task]]
    )
    assert change == pytest.approx(
        {"substitute": 1, "drop": 1 - wanted, "insert": 1 + wanted}[mistake], abs=0.02
    )


def test_shared_mistakes_are_equal():
    def share(shared):
        made = simulate.texts(300, 2, simulate.Dense(), substitute=0.5, drop=0, insert=0,
                              mean_length=1, shared=shared)  # fmt: skip
        both = made.data.text.reshape(300, 2)
        wrong = (both[:, 0] != made.truth) & (both[:, 1] != made.truth)
        return (both[wrong, 0] == both[wrong, 1]).mean()

    assert share(1.0) == 1
    assert share(0.0) < 0.1


def test_the_same_seed_gives_the_same_texts_and_bad_rates_are_refused():
    one, two = (simulate.texts(10, 3, random_state=5) for _ in range(2))
    assert one.data.text.tolist() == two.data.text.tolist()
    for options in ({"drop": 1.5}, {"substitute": 0.8, "drop": 0.5}, {"n_words": 1}):
        with pytest.raises(ParameterError):
            simulate.texts(10, 3, **options)
