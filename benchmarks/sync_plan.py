"""How long a sync takes to plan for 10,000 topics, without a cluster: `python -P benchmarks/sync_plan.py [TOPICS]`.

Every tenth topic differs in a setting, every hundredth is missing, every topic has two ACLs. Aim: under 2 s. What a
sync takes on top is the clusters': some 0.4 s for the settings of 500 topics, 33 of each.
"""

from __future__ import annotations

import sys
import time
from uuid import UUID

from twinlog.model.acls import Acl, AclMode, AclRules, Pattern, compare_acls, wanted_acls
from twinlog.model.filters import config_filter
from twinlog.model.flow import Flow
from twinlog.model.naming import policy_of
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Cluster, Topology
from twinlog.model.twin_settings import SettingRules, TopicSettings
from twinlog.model.twin_topics import TopicFacts, plan_topics

SETTINGS = {f"setting.{number}": "0" for number in range(30)}
EFFECTIVE = {**SETTINGS, "retention.ms": "1000", "retention.bytes": "-1", "max.message.bytes": "1048588"}


def main(count: int) -> None:
    flow = Flow("nyc", "lon", topics=("topic-.*",))
    topology = Topology({"nyc": Cluster("nyc", "nyc:9092"), "lon": Cluster("lon", "lon:9092")}, {flow.name: flow})
    policy = policy_of(flow)
    names = [f"topic-{number:05}" for number in range(count)]
    acls = [
        Acl("topic", name, Pattern.LITERAL, f"User:{user}", "*", "READ", "ALLOW")
        for name in names
        for user in ("alice", "bob")
    ]

    started = time.perf_counter()
    selection = TopicSelection(topology, flow)
    taken = sorted(name for name in names if selection.left_out(name) is None)
    sources = {policy.target_name(name): TopicFacts(name, UUID(int=1), 12, 3) for name in taken}
    targets = {name: facts for number, (name, facts) in enumerate(sources.items()) if number % 100}
    topics = plan_topics(sources, targets, {})
    rules = SettingRules(config_filter(flow).accepts, defaults_from_source=False, target_defaults=EFFECTIVE)
    changes = 0
    for number, name in enumerate(sources):
        here = TopicSettings({"retention.ms": "5"}, {**EFFECTIVE, "retention.ms": "5"})
        wanted = rules.wanted(here, 3)
        there = dict(wanted.values) if number % 10 else {}
        changes += sum(1 for _ in rules.differences(name, wanted, TopicSettings(there, EFFECTIVE)))
    acl_rules = AclRules(AclMode.SAFE, policy, lambda name: selection.left_out(name) is None, lambda _: True, taken)
    found = compare_acls(wanted_acls(acls, acl_rules), frozenset(), frozenset())
    seconds = time.perf_counter() - started
    print(
        f"{count:,} topics: {len(topics.missing):,} to create, {changes:,} settings to change, "
        f"{len(found.add):,} ACLs to add, planned in {seconds:.2f} s"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
