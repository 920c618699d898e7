"""A cluster of three brokers moved to one of one broker while applications work, killed twice on the way."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from local.kafka import KafkaClusters, KafkaSpec, start
from support.crashing import ChildRun, Job, Step, Work
from support.feeding import Feeder
from support.groups import Value, read
from support.migrating import cut_over, migrate, migrating, migration
from support.mirroring import Twins, create_topic, producer, twins
from support.reading import Seen, read_committed
from support.source_logs import COMPACTED, clean_often, compacted_log, delete_records, fill
from support.syncing import Hand
from twinlog.model.flow_state import State
from twinlog.model.migration import Phase

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

ORDERS, PAYMENTS, CUSTOMERS, TRIMMED, EMPTY = (
    f"shop.{name}" for name in ("orders", "payments", "customers", "trimmed", "empty")
)
OF_KAFKA = {"__consumer_offsets", "__transaction_state"}
TOPICS = {ORDERS: 4, PAYMENTS: 3, CUSTOMERS: 1, TRIMMED: 1, EMPTY: 2}


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaClusters]:
    specs = [KafkaSpec("old", brokers=3, authorizer=True), KafkaSpec("new", authorizer=True)]
    with start(specs, tmp_path_factory.mktemp("moving")) as found:
        yield found


@dataclass
class Shop:
    """Applications that write to wherever they are told: orders one by one, payments in transactions."""

    servers: str
    orders: int = 0
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def open(self, servers: str) -> None:
        self.servers = servers
        self._over.clear()
        self._threads = [threading.Thread(target=work) for work in (self._order, self._pay)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _order(self) -> None:
        writer = producer(self.servers, acks="all", enable_idempotence=True)
        while not self._over.wait(0.005):
            writer.produce(ORDERS, str(self.orders), partition=self.orders % TOPICS[ORDERS])
            self.orders += 1
        assert writer.flush(30) == 0

    def _pay(self) -> None:
        feeder, seed = Feeder(self.servers, PAYMENTS, TOPICS[PAYMENTS]), 0
        while not self._over.wait(0.1):
            feeder.feed(seed := seed + 1, 30)


def filled(servers: str) -> None:
    """What the old cluster has held for long."""
    for topic, partitions in TOPICS.items():
        settings = {"min.insync.replicas": "2", "retention.ms": "86400000"} | (COMPACTED if topic == CUSTOMERS else {})
        create_topic(servers, topic, partitions, settings, replicas=3)
    for broker in "012":
        clean_often(servers, broker)
    Feeder(servers, PAYMENTS, TOPICS[PAYMENTS]).feed(0, 2_000)
    compacted_log(servers, CUSTOMERS)
    fill(servers, TRIMMED, range(500))
    delete_records(servers, TRIMMED, 480)


def last_values(records: list[Seen]) -> dict[bytes | None, bytes]:
    """What a compacted topic says: by its key, the last value that is no tombstone's."""
    found = {record.key: record.value for record in records}
    return {key: value for key, value in found.items() if value is not None}


def flow_between(clusters: KafkaClusters, folder: Path) -> Twins:
    return twins(
        clusters["old"].bootstrap_servers,
        clusters["new"].bootstrap_servers,
        folder,
        (r"shop\..*",),
        groups=(r"shop\..*",),
        naming="identity",
        sync_topic_acls_mode="full",
        transaction_bytes=20_000,
        emit_heartbeats_enabled=True,
        emit_offset_syncs_enabled=True,
        emit_checkpoints_enabled=True,
        checkpoints_topic_replication_factor=1,
        offset_syncs_topic_replication_factor=1,
    )


def test_nothing_is_lost_or_doubled_and_nothing_of_ours_is_left(clusters: KafkaClusters, tmp_path: Path) -> None:
    flow = flow_between(clusters, tmp_path)
    old, new = flow.source_servers, flow.target_servers
    filled(old)
    before = {servers: Hand(servers).topics() for servers in (old, new)}
    for who, operation in (("alice", "READ"), ("bob", "WRITE")):
        Hand(old).allow(who, operation, "shop.", pattern="PREFIXED")
    shop, seen = Shop(old), {topic: Counter[Value]() for topic in (ORDERS, PAYMENTS)}
    shop.open(old)
    try:
        for topic, count in seen.items():
            count.update(read(old, f"{topic}.readers", topic, 300))
        with ChildRun(Job(flow, "", Step.BEFORE_COMMIT, nth=8, work=Work.MIGRATE)) as child:
            child.await_killed()
        phase_after_kill = migration(flow).phase
        moved = migrate(flow)
    finally:
        shop.close()
    with ChildRun(Job(flow, "", Step.BEFORE_GROUPS, work=Work.CUT_OVER)) as child:
        child.await_killed(120)
    state_after_kill = flow.record().state
    over = cut_over(flow)
    logs = {topic: (read_committed(old, topic), read_committed(new, topic)) for topic in TOPICS}
    orders_then = shop.orders
    shop.open(new)
    for topic, count in seen.items():
        count.update(read(new, f"{topic}.readers", topic, 200))
    shop.close()
    for topic, count in seen.items():
        count.update(read(new, f"{topic}.readers", topic))
    cleaned = migrating(flow).clean_up()

    assert (phase_after_kill, state_after_kill) == (Phase.BACKFILL, State.FAILED_OVER)
    assert (moved.failures, over.failures, cleaned.failures) == ((), (), ())
    assert moved.migration.phase is Phase.CUT_OVER
    for topic, (source, target) in logs.items():
        if topic == CUSTOMERS:
            # Either cleaner goes on at its own time.
            assert last_values(target[0]) == last_values(source[0]) != {}
        else:
            assert target == source, topic
    assert sum(map(len, logs[TRIMMED][1].values())) == 20
    assert sum(map(len, logs[ORDERS][1].values())) == orders_then
    written = {number: [str(n).encode() for n in range(number, shop.orders, 4)] for number in range(4)}
    assert {
        number: [record.value for record in records] for number, records in read_committed(new, ORDERS).items()
    } == written
    for topic, count in seen.items():
        everything = Counter(
            (number, record.value) for number, records in read_committed(new, topic).items() for record in records
        )
        assert count == everything, topic
    # Nothing of ours, and all of theirs.
    assert Hand(old).topics() - before[old] - OF_KAFKA == set()
    assert Hand(new).topics() - before[new] - OF_KAFKA == set(TOPICS)
    assert Hand(new).groups() == {f"{topic}.readers" for topic in seen}
    allowed = {(who, operation, pattern) for who, _, operation, pattern, _ in Hand(new).acls("shop.")}
    assert allowed == {("User:alice", "READ", "PREFIXED"), ("User:bob", "WRITE", "PREFIXED")}
    assert Hand(new).overrides(ORDERS)["retention.ms"] == "86400000"
