from __future__ import annotations

import logging
import socket

from twinlog.cluster.connections import _receive


def test_what_came_before_the_end_is_given_before_the_end() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        theirs.sendall(b"your password is wrong")
        theirs.close()

        assert _receive(ours, None) == (b"your password is wrong", None)
        data, ended = _receive(ours, None)

    assert data == b""
    assert "the broker closed the connection" in str(ended)


def test_one_turn_reads_no_more_than_its_share() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.sendall(b"x" * 150_000)

        first, _ = _receive(ours, 1)
        second, ended = _receive(ours, None)

    assert len(first) <= 64 * 1024
    assert len(first) + len(second) == 150_000
    assert ended is None


def test_bodies_are_not_logged_at_any_level() -> None:
    assert not logging.getLogger("kafka.net.connection").isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("kafka.protocol.parser").isEnabledFor(logging.ERROR)
