from __future__ import annotations

import pytest

from wisecrowd.inference.monitor import Progress, report, reporting, stage


def test_nobody_listens_by_default():
    report(Progress(1, 2))


def test_listener_hears_only_inside_the_block():
    seen = []
    with reporting(seen.append):
        report(Progress(1, 10, -3.0))
    report(Progress(2, 10, -2.0))
    assert seen == [Progress(1, 10, -3.0)]


def test_inner_listener_replaces_the_outer_for_a_while():
    outer, inner = [], []
    with reporting(outer.append):
        report(Progress(1, 3))
        with reporting(inner.append):
            report(Progress(2, 3))
        report(Progress(3, 3))
    assert [p.iteration for p in outer] == [1, 3]
    assert [p.iteration for p in inner] == [2]


def test_listener_is_gone_after_an_error():
    seen = []

    def interrupted():
        with reporting(seen.append):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    report(Progress(1, 1))
    assert seen == []


def test_fits_report_their_stage():
    seen = []
    with reporting(seen.append):
        with stage("wawa"):
            report(Progress(1, 3, -1.0))
        report(Progress(2, 3, -1.0))
    assert seen == [Progress(1, 3, -1.0, "wawa"), Progress(2, 3, -1.0)]


def test_a_stage_needs_no_listener():
    with stage("wawa"):
        report(Progress(1, 3))
