"""Heartbeats: a record written to the source, mirrored like any other, whose age on the target is the flow's measured
recovery point.

    source  heartbeats       key (nyc, lon)   value 12:00:00      written by `twinlog heartbeat` and by every run
    target  nyc.heartbeats   key (nyc, lon)   value 12:00:00      brought by a run: all before 12:00:00 can be there

Both the time in a heartbeat and the time its age is counted to are those of the machine that Twinlog runs on. The
records are MirrorMaker 2's, but they are written to a flow's source, whereas its connector writes to the target and
leaves it to the flow the other way to mirror them: tools tell upstream clusters and hops by the topics' names only, and
those come out the same.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.committed_records import read_committed_records
from twinlog.cluster.plain_records import write_records
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import DENIED, principal_of, sentences
from twinlog.errors import ClusterError, MirrorMakerFormatError, NotAuthorizedError
from twinlog.intake.extensions import naming_of
from twinlog.model.naming import HEARTBEATS
from twinlog.model.offsets import TopicPartition
from twinlog.model.topology import Flow
from twinlog.operations.flow_gate import SOURCE_LEADS, reason_to_leave, record_of
from twinlog.operations.internal_topics import create_small_topic
from twinlog.wire.mirror_maker import Heartbeat

_NOT_WRITTEN = "no heartbeat is written; grant CREATE, WRITE and READ, or set emit.heartbeats.enabled: false"
_NOT_READ = "the flow's heartbeats can't be read; grant CREATE, WRITE and READ, or set emit.heartbeats.enabled: false"

_LOOK_BACK = (100, 10_000, None)
"""Offsets from the end: other flows' heartbeats, and what compaction has not removed yet, may lie in between."""


@dataclass(frozen=True, slots=True)
class HeartbeatResult:
    """What came of asking for one heartbeat."""

    flow: str
    cluster: str
    topic: str = HEARTBEATS
    timestamp_ms: int | None = None
    """The one that was written; None where none was."""
    skipped: str | None = None
    """Why not, in a sentence."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def emit_heartbeat(flow: Flow, access: ClusterAccess, target_access: ClusterAccess) -> HeartbeatResult:
    """Write one heartbeat of the flow to its source, which `access` leads to; after a failover nothing is written there
    any more, since what it has and the target has not must be told when it comes back."""
    if not flow.emit_heartbeats_enabled:
        return HeartbeatResult(flow.name, flow.source, skipped=f"{flow.name}: emit.heartbeats.enabled is false")
    with target_access.raw() as target, access.raw(beside=target) as source:
        reason = reason_to_leave(flow, target.run(record_of(flow, target)), None, SOURCE_LEADS)
        if reason is not None:
            said = f"{reason}, so no heartbeat is written to {flow.source}"
            return HeartbeatResult(flow.name, flow.source, skipped=said)
        written = source.run(_write(source, principal_of(access.settings), flow))
    return HeartbeatResult(flow.name, flow.source, timestamp_ms=written.timestamp_ms)


def beat_of_run(flow: Flow, access: ClusterAccess, source: RawClient) -> tuple[str, ...]:
    """A run's own heartbeat, at most one in emit.heartbeats.interval.seconds; what kept us from it fails no run."""
    if not flow.emit_heartbeats_enabled:
        return ()
    try:
        last = newest_heartbeat(flow, access, source, HEARTBEATS)
        # One of a clock that was ahead must not keep others away until its time has come.
        if last is None or not 0 <= _since_s(last) < flow.emit_heartbeats_interval_seconds:
            source.run(_write(source, principal_of(access.settings), flow))
    except (ClusterError, MirrorMakerFormatError) as refused:
        return (str(refused),)
    return ()


def heartbeat_age(flow: Flow, access: ClusterAccess, target: RawClient) -> float | None:
    """Seconds since the newest heartbeat of the flow that has reached its target; None where none has."""
    newest = newest_heartbeat(flow, access, target, naming_of(flow).target_name(HEARTBEATS))
    return None if newest is None else max(0.0, _since_s(newest))


def newest_heartbeat(flow: Flow, access: ClusterAccess, client: RawClient, topic: str) -> Heartbeat | None:
    """The flow's last heartbeat in a heartbeats topic; None where it has none, or there is no such topic."""
    try:
        return client.run(_newest(client, topic, flow))
    except NotAuthorizedError as refused:
        resource = {f"topic {topic}": DENIED}
        principal = principal_of(access.settings)
        raise NotAuthorizedError(*sentences(client.alias, principal, "READ", resource, _NOT_READ)) from refused


async def _newest(client: RawClient, topic: str, flow: Flow) -> Heartbeat | None:
    if (await client.metadata([topic])).topics[topic].is_missing:
        return None
    ours = Heartbeat(flow.source, flow.target, 0).key()
    for last in _LOOK_BACK:
        for record in reversed(await read_committed_records(client, TopicPartition(topic, 0), last)):
            if record.key == ours and record.value is not None:
                return Heartbeat.decode(ours, record.value, f"cluster {client.alias}: {topic}-0@{record.offset}")
    return None


async def _write(source: RawClient, principal: str, flow: Flow) -> Heartbeat:
    await create_small_topic(source, principal, HEARTBEATS, flow.heartbeats_topic_replication_factor, _NOT_WRITTEN)
    heartbeat = Heartbeat(flow.source, flow.target, int(time.time() * 1000))
    pair = (heartbeat.key(), heartbeat.value())
    await write_records(source, principal, TopicPartition(HEARTBEATS, 0), [pair], _NOT_WRITTEN)
    return heartbeat


def _since_s(heartbeat: Heartbeat) -> float:
    """Negative where the clock that it was written by is ahead of ours."""
    return time.time() - heartbeat.timestamp_ms / 1000
