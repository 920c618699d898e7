"""A flow's journal, as those who read it know it."""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.cluster.raw import RawClient


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal topic on the flow's target, and the client to read it with."""

    topic: str
    topic_id: str
    client: RawClient
    principal: str
    """Who the target takes the client for: whoever lacks a permission is named."""
    patience_s: float = 120.0
    """How long to wait where an open transaction holds the journal back."""
