from __future__ import annotations

import gc

import pytest

from twinlog.operations.collecting import collector_held_back


def test_it_is_held_back_inside_and_only_by_whoever_began() -> None:
    assert gc.isenabled()
    with collector_held_back():
        assert not gc.isenabled()
        with collector_held_back():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error() -> None:
    with pytest.raises(KeyError), collector_held_back():
        raise KeyError
    assert gc.isenabled()
