"""Scale and bias per worker: forms, gauge and loss."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.nn import AffineOutput, WorkerNumbers, number_loss
from wisecrowd.nn.number_heads import NUMBER_LAYERS

WORKER = torch.tensor([0, 1, 2, 2])
F = torch.tensor([1.0, -2.0, 0.5, 4.0])


def head_with(kind: str) -> WorkerNumbers:
    head = WorkerNumbers(3, kind)
    with torch.no_grad():
        if head.scale is not None:
            head.scale.copy_(torch.tensor([0.5, 1.5, 3.0]))
        if head.bias is not None:
            head.bias.copy_(torch.tensor([2.0, -1.0, 0.25]))
    return head


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("S", [0.5, -3.0, 1.5, 12.0]),
        ("B", [3.0, -3.0, 0.75, 4.25]),
        ("S+B", [2.5, -4.0, 1.75, 12.25]),
        ("B+S", [1.5, -4.5, 2.25, 12.75]),
    ],
)
def test_forms(kind, expected):
    torch.testing.assert_close(head_with(kind)(F, WORKER), torch.tensor(expected))


@pytest.mark.parametrize("kind", NUMBER_LAYERS)
def test_the_gauge_moves_level_and_unit_to_the_network_and_changes_no_prediction(kind):
    head, network = head_with(kind), AffineOutput(nn.Identity())
    count = torch.tensor([5, 3, 2])
    before = head(network(F[:, None]), WORKER)
    scale, shift = head.gauge(count)
    network.move(scale=scale, shift=shift)
    torch.testing.assert_close(head(network(F[:, None]), WORKER), before)
    share = count / count.sum()
    if head.scale is not None:
        assert float((share * head.scale.detach()).sum()) == pytest.approx(1, abs=1e-6)
    if head.bias is not None:
        assert float((share * head.bias.detach()).sum()) == pytest.approx(0, abs=1e-6)
    assert (scale, shift) != (1.0, 0.0)


def test_a_second_gauge_changes_nothing():
    head, count = head_with("S+B"), torch.tensor([5, 3, 2])
    head.gauge(count)
    assert head.gauge(count) == (pytest.approx(1, abs=1e-6), pytest.approx(0, abs=1e-6))


def test_the_loss_is_a_weighted_mean_over_annotations():
    expected, value = torch.tensor([0.0, 0.0]), torch.tensor([1.0, 3.0])
    assert float(number_loss(expected, value)) == 5.0
    assert float(number_loss(expected, value, torch.tensor([3.0, 1.0]))) == 3.0
    assert float(number_loss(expected[:0], value[:0])) == 0.0


def test_an_unknown_form_is_refused():
    with pytest.raises(ParameterError, match="choose one of S, B"):
        WorkerNumbers(3, "X")
