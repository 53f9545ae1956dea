"""The lock of a place: one writer at a time, released at the end and after a failure."""

import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.storage.folder_lock import only_writer


def test_a_second_writer_is_refused_and_nothing_is_left(tmp_path):
    place = tmp_path / "crowd.pack"
    with only_writer(place):
        with pytest.raises(DataError, match="Another run writes"), only_writer(place):
            pass
        with only_writer(tmp_path / "other.pack"):
            pass
    with pytest.raises(ValueError, match="inside"), only_writer(place):
        raise ValueError("inside")
    with only_writer(place):
        pass
    assert list(tmp_path.iterdir()) == []
