"""TCP ports on the loopback address.

Free ports are taken from below the range that systems hand out to outgoing connections: a broker that is
stopped and started again then finds its port as it left it, rather than in use by somebody's client socket.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable

from local.errors import PreconditionError

HOST = "127.0.0.1"

_LOWEST, _HIGHEST = 15_000, 32_000

_given_out: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Different ports that nothing listens on; no port is given out twice in the life of this process."""
    candidates = list(set(range(_LOWEST, _HIGHEST)) - _given_out)
    random.shuffle(candidates)  # two processes that ask at the same time should not try the same ones
    chosen: list[int] = []
    for port in candidates:
        if len(chosen) == count:
            break
        if _is_free(port):
            chosen.append(port)
    if len(chosen) < count:
        raise PreconditionError(
            f"Of the ports {_LOWEST} to {_HIGHEST} fewer than {count} are free; stop what uses them."
        )
    _given_out.update(chosen)
    return chosen


def require_free(ports: Iterable[int]) -> None:
    seen: set[int] = set()
    for port in ports:
        if port in seen:
            raise PreconditionError(f"Port {port} is asked for twice; give each broker its own.")
        seen.add(port)
        if not _is_free(port):
            raise PreconditionError(f"Port {port} on {HOST} is taken; stop what listens there, or choose another port.")


def is_open(port: int) -> bool:
    """Whether something accepts connections there."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port whose last connections are still in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
