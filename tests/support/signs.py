"""Flows that show signs of life on shared clusters, which are left without a heartbeats topic for other tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from support.syncing import Hand
from twinlog.model.naming import HEARTBEATS

SIGNS = {
    "emit_heartbeats_enabled": True,
    "heartbeats_replication_enabled": True,
    "emit_offset_syncs_enabled": True,
}


@contextmanager
def heartbeats_to_be_removed(servers: str) -> Iterator[None]:
    """No heartbeats topic before and after: every flow of a source mirrors it, and others count what they copy."""
    hand = Hand(servers)
    _remove(hand)
    try:
        yield
    finally:
        _remove(hand)


def _remove(hand: Hand) -> None:
    if HEARTBEATS in hand.topics():
        hand.delete(HEARTBEATS)
