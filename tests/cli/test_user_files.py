"""Every command in a folder full of a user's files that have our names: none is changed."""

from __future__ import annotations

import os

import pytest
from tests.support.user_files import CASES, make_folder, run_case

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="commands run in forks")


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    pytest.importorskip("torch")  # some of the commands train
    folder = tmp_path_factory.mktemp("crowded")
    make_folder(folder)
    return folder


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_of_a_user_stay_as_they_are(case, crowded):
    assert run_case(case, crowded) == ""
