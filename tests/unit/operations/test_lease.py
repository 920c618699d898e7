"""Keeping a lease on a target that does not answer."""

from __future__ import annotations

import time

import pytest

from support.silent import closed_port, silent_server
from support.waiting import NOT_HUNG_S
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.secrets import ResolvedSettings
from twinlog.model.flow import Flow
from twinlog.model.flow_state import Holder
from twinlog.operations import lease
from twinlog.operations.lease import kept

FLOW = Flow("nyc", "lon")
HOLDER = Holder("run-7", "host/1")


def target(servers: str) -> ClusterAccess:
    return ClusterAccess("lon", ResolvedSettings({"bootstrap.servers": servers}))


def test_a_lease_that_cant_be_given_back_is_not_the_runs_failure(caplog: pytest.LogCaptureFixture) -> None:
    with kept(FLOW, target(closed_port()), HOLDER, lease_s=1.0):
        pass

    (warning,) = caplog.messages
    assert warning.startswith(
        "nyc->lon: the lease of run run-7 of host/1 was not given back; it ends by itself 1 s after"
    )
    assert "cluster lon" in warning


def test_what_ended_the_run_is_what_is_raised(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError), kept(FLOW, target(closed_port()), HOLDER, lease_s=1.0):
        raise ZeroDivisionError
    assert "was not given back" in caplog.text


def test_a_target_that_hangs_is_not_waited_for(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "GIVEN_BACK_WITHIN_S", 0.2)
    with silent_server() as servers:
        began = time.monotonic()
        with kept(FLOW, target(servers), HOLDER, lease_s=60.0):
            pass
        took_s = time.monotonic() - began

    assert took_s < NOT_HUNG_S
    assert "cluster lon did not take back the lease of run run-7 of host/1 within 0 s" in caplog.text
