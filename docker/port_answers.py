"""A health check for a server without an HTTP page: exit 0 where HOST PORT accepts a connection."""

from __future__ import annotations

import socket
import sys

if __name__ == "__main__":
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5).close()
