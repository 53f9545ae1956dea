"""The medoid: the closest text by hand, and with weights."""

from __future__ import annotations

import numpy as np

from wisecrowd import simulate
from wisecrowd.aggregation import TextMedoid
from wisecrowd.kinds.texts.metrics import edit_distance


def closest(texts):
    """Return the text with the smallest sum of distances, of equal ones the longest words first."""
    cost = [round(sum(edit_distance([one], [two]) for two in texts), 9) for one in texts]
    best = min(cost)
    found = [text for text, own in zip(texts, cost, strict=True) if own == best]
    return min(found, key=lambda text: [(-len(word), word) for word in text.split()])


def test_it_is_the_closest_answer():
    made = simulate.texts(25, 5, simulate.Dense(), substitute=0.4, random_state=2)
    fitted = TextMedoid(rounds=0).fit(made.data)
    for i in range(25):
        assert fitted.texts_[i] == closest(made.data.text[made.data.task == i].tolist())


def test_it_is_always_somebodys_answer():
    made = simulate.texts(30, 6, simulate.PerTask(4), substitute=0.5, random_state=3)
    fitted = TextMedoid().fit(made.data)
    for i in range(30):
        assert fitted.texts_[i] in made.data.text[made.data.task == i]


def test_good_workers_weigh_more():
    texts, tasks, workers = [], [], []
    rng = np.random.default_rng(0)
    for i in range(40):
        words = [f"w{k}" for k in rng.integers(0, 50, 6)]
        for j in range(4):
            own = list(words)
            if j > 1:  # two workers change two words each, the same ones
                own[0], own[1] = "bad", f"wrong{i % 2}"
            texts.append(" ".join(own) + (f" extra{j}" if j in (1, 3) else ""))
            tasks.append(i)
            workers.append(j)
    fitted = TextMedoid().fit((tasks, workers, texts))
    assert fitted.worker_weight_[0] >= fitted.worker_weight_[3]
