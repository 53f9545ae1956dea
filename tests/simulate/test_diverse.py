from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError


def test_the_four_styles_by_hand():
    confusion = simulate.DiverseWorkers(0.4, 0.7, 0.6, 0.2).sample(5, 5, np.random.default_rng(0))
    np.testing.assert_allclose(confusion[0, 1], [0.12, 0.52, 0.12, 0.12, 0.12])
    np.testing.assert_allclose(confusion[1, 2], [0, 0, 0.7, 0.3, 0])
    np.testing.assert_allclose(confusion[1, 3], [0, 0, 0.3, 0.7, 0])
    np.testing.assert_allclose(confusion[1, 4], [0, 0, 0, 0, 1])
    np.testing.assert_allclose(confusion[2, 0], [0.6, 0.2, 0, 0, 0.2])
    np.testing.assert_allclose(np.diagonal(confusion[3]), 0.2)
    assert ((confusion[3] > 0).sum(axis=1) == 2).all()
    np.testing.assert_array_equal(confusion[4], confusion[0])


def test_defaults_have_the_papers_mean_accuracy_on_ten_classes():
    confusion = simulate.DiverseWorkers().sample(4, 10, np.random.default_rng(0))
    assert np.einsum("jkk->", confusion) / 40 == pytest.approx(0.45)


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4])
def test_rows_sum_to_one_for_few_classes(n_classes):
    confusion = simulate.DiverseWorkers().sample(8, n_classes, np.random.default_rng(0))
    np.testing.assert_allclose(confusion.sum(axis=2), 1.0)


def test_bad_parameters():
    with pytest.raises(ParameterError, match=r"^neighbour is "):
        simulate.DiverseWorkers(neighbour=-1)
