from __future__ import annotations

import socket

import pytest

from local import ports
from local.errors import PreconditionError


def test_free_ports_differ_and_are_never_given_twice() -> None:
    first, second = ports.free_ports(20), ports.free_ports(20)
    assert len({*first, *second}) == 40
    ports.require_free(first + second)


def test_a_taken_port_is_refused_by_its_number() -> None:
    with socket.create_server((ports.HOST, 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(PreconditionError, match=rf"^Port {port} on 127\.0\.0\.1 is taken;"):
            ports.require_free([port])


def test_a_port_asked_for_twice_is_refused() -> None:
    [port] = ports.free_ports(1)
    with pytest.raises(PreconditionError, match=rf"^Port {port} is asked for twice;"):
        ports.require_free([port, port])


def test_a_port_is_open_while_something_listens() -> None:
    with socket.create_server((ports.HOST, 0)) as listener:
        port = listener.getsockname()[1]
        assert ports.is_open(port)
    assert not ports.is_open(port)
