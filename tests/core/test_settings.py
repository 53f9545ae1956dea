from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from wisecrowd.core.settings import Settings, current_settings, with_settings


def test_changes_add_up_inside_and_are_gone_afterwards():
    with with_settings(for_shell=True):
        with with_settings(listener=print):
            assert current_settings() == Settings(for_shell=True, listener=print)
        assert current_settings() == Settings(for_shell=True)
    assert current_settings() == Settings()


def test_settings_are_back_after_an_error():
    with pytest.raises(KeyboardInterrupt), with_settings(for_shell=True):
        raise KeyboardInterrupt
    assert current_settings() == Settings()


def test_another_thread_has_its_own():
    with with_settings(for_shell=True), ThreadPoolExecutor(1) as pool:
        assert pool.submit(current_settings).result() == Settings()


def test_an_unknown_setting_is_an_error():
    with pytest.raises(TypeError), with_settings(colour="red"):
        pass
