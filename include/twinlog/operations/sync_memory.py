"""What a sync must know before it changes anything: the flow's state, and what Twinlog has made on either side.

A topic that we may not see is missing from the list of all topics. So what is not listed is asked for by name: hidden
is not the same as not there, and what can't be read is never taken for empty.
"""

from __future__ import annotations

from twinlog.cluster.flow_store import FlowStore
from twinlog.cluster.made_store import MadeStore
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, refusal_named, sentences
from twinlog.errors import ClusterError, FlowStateError
from twinlog.model.acls import AclMode
from twinlog.model.lanes import state_topic
from twinlog.model.made import Made
from twinlog.operations.flow_gate import SOURCE_LEADS, reason_to_leave
from twinlog.operations.sync_result import SyncResult
from twinlog.operations.sync_scope import Memory, SyncRules
from twinlog.operations.twin_planning import Sides


async def not_in_step(sides: Sides, rules: SyncRules, *, dry_run: bool) -> SyncResult | None:
    """The result where the flow's topics on the target are not to be changed, or None."""
    flow, target = rules.flow, sides.target
    topic = state_topic(flow.source, flow.target)
    consequence = f"it is not known whether {flow.name} has failed over, and its topics on {flow.target} are left alone"
    there = await _is_there(target, sides.target_view, topic)
    if there is False:
        return None
    if isinstance(there, Refusal):
        unknown = _hidden(target, rules.target_principal, topic, there, consequence)
        return SyncResult(flow.name, dry_run=dry_run, skipped=unknown, failed=(unknown,))
    try:
        record = await FlowStore(target, flow.name, topic).read()
    except ClusterError as failure:
        if failure.retriable:
            raise
        unknown = f"{failure}; so {consequence}"
        return SyncResult(flow.name, dry_run=dry_run, skipped=unknown, failed=(unknown,))
    # A dry run changes nothing, so only that there are no twins any more stands in its way.
    reason = (
        reason_to_leave(flow, record, None, SOURCE_LEADS)
        if dry_run
        else reason_to_leave(flow, record, rules.description)
    )
    if reason is None:
        return None
    said = f"{reason}, so its topics on {flow.target} are left as they are"
    return SyncResult(flow.name, dry_run=dry_run, skipped=said)


async def read_memory(sides: Sides, rules: SyncRules) -> Memory:
    """What was made on both sides, as far as it may be read."""
    flow = rules.flow
    here, lost_here = await _made(
        sides.target,
        sides.target_view,
        rules.target_principal,
        MadeStore(sides.target, flow.source, flow.target),
        "no ACL or quota is compared, no topic is deleted, and a topic that is created now will never be",
    )
    opposite, lost_opposite = Made(), None
    store = MadeStore(sides.source, flow.target, flow.source)
    if _needs_opposite(sides, rules, store.topic):
        opposite, lost_opposite = await _made(
            sides.source,
            sides.source_view,
            rules.source_principal,
            store,
            f"no ACL or quota is compared, and topics that may have come from {flow.target} are neither created there "
            "nor are their settings compared",
        )
    return Memory(here, opposite, rules.may_have_come, lost_here, lost_opposite, await _holds(sides, rules))


async def _holds(sides: Sides, rules: SyncRules) -> bool:
    topic = state_topic(rules.flow.source, rules.flow.target)
    if topic not in sides.target_view.topics:
        return False
    migration = (await FlowStore(sides.target, rules.flow.name, topic).read()).migration
    return migration is not None and migration.holding


def _needs_opposite(sides: Sides, rules: SyncRules, memory: str) -> bool:
    """Whether anything that the opposite flow made could be sent back: under prefixed names hardly anything could."""
    if not rules.has_opposite and memory not in sides.source_view.topics:
        return False
    if rules.acl_mode is AclMode.FULL and rules.flow.sync_topic_acls_enabled:
        return True
    return any(rules.may_have_come(topic) and rules.takes(topic) for topic in sides.source_view.topics)


async def _made(
    client: RawClient, view: ClusterMetadata, principal: str, store: MadeStore, consequence: str
) -> tuple[Made, str | None]:
    """A memory, or the sentence that says why it can't be read."""
    there = await _is_there(client, view, store.topic)
    if there is False:
        return Made(), None
    if isinstance(there, Refusal):
        return Made(), _hidden(client, principal, store.topic, there, consequence)
    try:
        return await store.read(), None
    except (ClusterError, FlowStateError) as failure:
        if failure.retriable:
            raise
        return Made(), f"{failure}; so {consequence}"


async def _is_there(client: RawClient, view: ClusterMetadata, topic: str) -> bool | Refusal:
    """Whether a topic exists, or why the cluster does not tell."""
    if topic in view.topics:
        return True
    found = (await client.metadata([topic])).topics[topic]
    if found.error is None:
        return True
    return False if found.is_missing else refusal_named(found.error)


def _hidden(client: RawClient, principal: str, topic: str, found: Refusal, consequence: str) -> str:
    return next(sentences(client.alias, principal, "DESCRIBE", {f"topic {topic}": found}, consequence))
