"""What can go wrong with a topic or a partition is named in the run's result, and the rest of the flow goes on."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from local.kafka import SASL_SSL, KafkaCluster, KafkaClusters, KafkaSpec, start
from support.mirroring import Twins, create_topic, twins
from support.reading import read_messages
from support.source_logs import delete_records, delete_topic, fill, recreate, transactional
from support.waiting import await_condition
from twinlog.cluster.copier import Outcome
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.intake.extensions import naming_of
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.lanes import journal_topic, lane_of, state_transactional_id, transactional_id
from twinlog.model.offsets import TopicPartition
from twinlog.model.topology import Cluster
from twinlog.operations.lag import Lag, measure
from twinlog.operations.mirror_result import MirrorResult

USER = "mirror"


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    """A flow for `topic` and `topic`.other, each of one partition."""
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(source, target, tmp_path, (topic, f"{topic}.other"))
    flow.create(topic)
    flow.create(f"{topic}.other")
    return flow


def only(result: MirrorResult) -> Finding:
    (finding,) = result.findings
    return finding


def values(records: dict[int, list], partition: int = 0) -> list[str]:
    return [record.value.decode() for record in records[partition]]


class TestSource:
    @pytest.mark.parametrize("decision", ["continue", "stop"])
    def test_retention_overtook_the_position(self, flow: Twins, topic: str, decision: str) -> None:
        flow = flow.with_settings(on_expired=decision)
        fill(flow.source_servers, topic, range(10))
        assert flow.mirror().failures == []
        fill(flow.source_servers, topic, range(10, 20))
        delete_records(flow.source_servers, topic, 16)
        fill(flow.source_servers, f"{topic}.other", range(3))

        result = flow.mirror()

        finding = only(result)
        assert (finding.kind, finding.partition, finding.offset) == (FindingKind.EXPIRED, TopicPartition(topic, 0), 10)
        assert "offsets 10 to 15 were removed by retention before they were copied" in finding.message
        went_on = decision == "continue"
        assert result.recorded.gaps == ({"expired": 6} if went_on else {})
        copied = [*range(10), *range(16, 20)] if went_on else range(10)
        assert values(flow.read_target(topic)) == [str(number) for number in copied]
        assert values(flow.read_target(f"{topic}.other")) == ["0", "1", "2"]

    def test_everything_expired_and_nothing_follows(self, flow: Twins, topic: str) -> None:
        fill(flow.source_servers, topic, range(4))
        flow.mirror()
        fill(flow.source_servers, topic, range(4))
        delete_records(flow.source_servers, topic, 8)
        first, again = flow.mirror(), flow.mirror()
        assert (only(first).kind, first.recorded.gaps) == (FindingKind.EXPIRED, {"expired": 4})
        assert again.findings == ()

    def test_from_latest_means_from_the_first_run_on(self, flow: Twins, topic: str) -> None:
        flow = flow.with_settings(topics_from="latest")
        fill(flow.source_servers, topic, ["before"])
        assert flow.mirror().recorded.records == 0
        fill(flow.source_servers, topic, ["between the runs"])
        assert flow.mirror().recorded.records == 1
        assert values(flow.read_target(topic)) == ["between the runs"]

    def test_an_open_transaction_holds_records_back(self, flow: Twins, topic: str) -> None:
        fill(flow.source_servers, topic, range(5))
        writer = transactional(flow.source_servers)
        writer.begin_transaction()
        writer.produce(topic, "undecided")
        writer.flush(30)
        fill(flow.source_servers, topic, ["behind"])

        held = flow.mirror()
        behind = lag_of(flow, topic)
        writer.commit_transaction(30)
        # The coordinator answers before it has written its markers.
        await_condition(lambda: len(list(read_messages(flow.source_servers, topic))) == 7, "the markers are there")
        free = flow.mirror()

        finding = only(held)
        assert (finding.kind, finding.offset) == (FindingKind.HELD_BACK, 5)
        assert "transactional id app-" in finding.message
        assert held.failures == []
        assert (held.recorded.records, free.recorded.records, free.findings) == (5, 2, ())
        # What waits is as old as its first record, decided or not.
        assert behind.records == 2
        assert behind.seconds is not None
        assert 0 <= behind.seconds < 300


def lag_of(flow: Twins, topic: str) -> Lag:
    ends = flow.ends()
    with ends.target.raw() as target, ends.source.raw(beside=target) as source:
        found = target.run(source.metadata([topic])).topics[topic]
        return target.run(measure(source, target, flow.flow, naming_of(flow.flow), [found]))


class TestTarget:
    def test_a_record_larger_than_the_target_accepts(self, flow: Twins, topic: str) -> None:
        create_topic(flow.target_servers, flow.twin(topic), 1, {"max.message.bytes": "10000"})
        fill(flow.source_servers, topic, ["small"])
        fill(flow.source_servers, topic, ["x" * 20_000, "behind it"])
        fill(flow.source_servers, f"{topic}.other", range(3))

        # A flow that syncs settings would lift the limit first.
        result = flow.with_settings(sync_topic_configs_enabled=False).mirror()

        finding = only(result)
        assert (finding.kind, finding.partition, finding.offset) == (FindingKind.TOO_LARGE, TopicPartition(topic, 0), 1)
        assert "offset 1: this record alone" in finding.message
        assert "the target accepts 10000" in finding.message
        assert values(flow.read_target(topic)) == ["small"]
        assert values(flow.read_target(f"{topic}.other")) == ["0", "1", "2"]

    def test_a_twin_that_is_gone_is_filled_from_the_beginning(self, flow: Twins, topic: str) -> None:
        fill(flow.source_servers, topic, range(10))
        flow.mirror()
        delete_topic(flow.target_servers, flow.twin(topic))
        fill(flow.source_servers, topic, range(10, 12))
        gone = flow.mirror()
        recreate(flow.target_servers, flow.twin(topic))
        made_again = flow.mirror()

        for result in (gone, made_again):
            assert result.recorded.records == 12
            assert only(result).kind is FindingKind.TARGET_REPLACED
            assert "the new one is filled from the source's beginning" in only(result).message
        assert flow.mirror().findings == ()
        assert flow.read_target(topic) == flow.read_source(topic)

    def test_a_twin_with_fewer_partitions_is_grown(self, kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> None:
        source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
        flow = twins(source, target, tmp_path, (topic,))
        flow.create(topic, partitions=3)
        create_topic(target, flow.twin(topic), 1, {})
        for partition in range(3):
            fill(source, topic, range(5), partition)
        assert flow.mirror().findings == ()
        assert flow.read_target(topic) == flow.read_source(topic)

    def test_somebody_else_writes_to_the_twin(self, flow: Twins, topic: str) -> None:
        fill(flow.source_servers, topic, range(10))
        fill(flow.source_servers, f"{topic}.other", range(10))
        flow.mirror()
        fill(flow.target_servers, flow.twin(topic), ["foreign"] * 3)
        aborted = transactional(flow.target_servers)
        aborted.begin_transaction()
        aborted.produce(flow.twin(f"{topic}.other"), "no reader sees it")
        aborted.flush(30)
        aborted.abort_transaction(30)
        for name in (topic, f"{topic}.other"):
            fill(flow.source_servers, name, range(10, 20))

        result, again = flow.mirror(), flow.mirror()

        finding = only(result)
        assert (finding.kind, finding.partition, finding.offset) == (FindingKind.FOREIGN, TopicPartition(topic, 0), 11)
        assert "holds 3 records between offsets 11 and 13 that somebody else wrote" in finding.message
        assert again.findings == ()
        assert values(flow.read_target(topic)) == [*map(str, range(10)), *["foreign"] * 3, *map(str, range(10, 20))]

    def test_a_journal_that_refuses_an_entry_leaves_nothing_open(self, flow: Twins, topic: str) -> None:
        fill(flow.source_servers, topic, range(5))
        flow.mirror()
        journal = journal_topic(flow.flow.source, flow.flow.target)
        set_topic(flow.target_servers, journal, "max.message.bytes", "100")
        fill(flow.source_servers, topic, range(5, 10))

        failed = flow.mirror()
        # Readers of the twin wait for whatever is open; a transaction that nobody ends is there for a minute.
        await_condition(lambda: is_decided(flow, topic), "the transaction is rolled back", timeout_s=20)
        set_topic(flow.target_servers, journal, "max.message.bytes", "1000000")
        mended = flow.mirror()

        (failure,) = failed.failures
        assert f"{journal}-" in failure
        assert "raise max.message.bytes" in failure
        assert (failed.recorded.records, mended.recorded.records, mended.failures) == (0, 5, [])
        assert values(flow.read_target(topic)) == [str(number) for number in range(10)]


def is_decided(flow: Twins, topic: str) -> bool:
    """Whether no open transaction hides anything of the twin from readers of committed records."""
    with flow.ends().target.raw() as target:
        twin = TopicPartition(flow.twin(topic), 0)
        view = target.run(target.metadata([twin.topic]))
        stable, end = (
            target.run(list_offsets(target, view, [twin], at)).offsets[twin]
            for at in (OffsetAt.LAST_STABLE, OffsetAt.LOG_END)
        )
    return stable == end


def set_topic(servers: str, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": servers})
    admin.incremental_alter_configs([resource])[resource].result()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A cluster that allows nothing to USER but what a test grants."""
    spec = KafkaSpec("guarded", tls=True, plain={USER: "a word"}, authorizer=True)
    with start([spec], tmp_path_factory.mktemp("guarded")) as clusters:
        yield clusters["guarded"]


def grant(
    cluster: KafkaCluster, kind: ResourceType, name: str, *operations: AclOperation, prefix: bool = False
) -> None:
    pattern = ResourcePatternType.PREFIXED if prefix else ResourcePatternType.LITERAL
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    bindings = [
        AclBinding(kind, name, pattern, f"User:{USER}", "*", operation, AclPermissionType.ALLOW)
        for operation in operations
    ]
    for future in admin.create_acls(bindings).values():
        future.result()


def as_user(flow: Twins, side: str, cluster: KafkaCluster) -> Twins:
    """The flow with the `side` reached as USER through the guarded listener."""
    alias = getattr(flow.flow, side)
    settings = dict(cluster.client_settings(SASL_SSL, USER))
    reached = Cluster(alias, settings.pop("bootstrap.servers"), settings=settings)
    return replace(flow, topology=replace(flow.topology, clusters={**flow.topology.clusters, alias: reached}))


class TestPermissions:
    def test_transactions_are_not_allowed_to_one_lane(
        self, kafka_pair: KafkaClusters, guarded: KafkaCluster, tmp_path: Path, topic: str
    ) -> None:
        source = kafka_pair["nyc"].bootstrap_servers
        flow = as_user(twins(source, guarded.bootstrap_servers, tmp_path, (topic,)), "target", guarded)
        # The first two share a lane, and the last one is in the other.
        flow.create(topic, partitions=3)
        for partition in (0, 2):
            fill(source, topic, range(5), partition)
        name = flow.flow.name
        grant(guarded, ResourceType.BROKER, "kafka-cluster", AclOperation.CREATE, AclOperation.DESCRIBE)
        for prefix in ("twinlog.", f"{flow.flow.source}."):
            operations = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE_CONFIGS)
            grant(guarded, ResourceType.TOPIC, prefix, *operations, prefix=True)
        grant(guarded, ResourceType.GROUP, "twinlog", AclOperation.READ, prefix=True)
        for allowed in (state_transactional_id(name), transactional_id(name, 0)):
            grant(guarded, ResourceType.TRANSACTIONAL_ID, allowed, AclOperation.WRITE, AclOperation.DESCRIBE)

        result = flow.mirror()

        outcomes = {report.lane: report.outcome for report in result.lanes}
        assert outcomes == {0: Outcome.DONE, 1: Outcome.FAILED}
        (failure,) = result.failures
        lane = transactional_id(name, 1)
        assert f"User:{USER} is not allowed DESCRIBE and WRITE on transactional id {lane}, so it can't" in failure
        copied = flow.read_target(topic)
        by_lane = {lane_of(TopicPartition(flow.twin(topic), number), 2): values(copied, number) for number in (0, 2)}
        assert by_lane == {0: ["0", "1", "2", "3", "4"], 1: []}

    def test_reading_one_topic_is_not_allowed(
        self, kafka_pair: KafkaClusters, guarded: KafkaCluster, tmp_path: Path, topic: str
    ) -> None:
        target = kafka_pair["lon"].bootstrap_servers
        flow = twins(guarded.bootstrap_servers, target, tmp_path, (topic, f"{topic}.other"))
        flow = as_user(flow, "source", guarded)
        for name in (topic, f"{topic}.other"):
            flow.create(name)
            fill(guarded.bootstrap_servers, name, range(5))
            grant(guarded, ResourceType.TOPIC, name, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
        grant(guarded, ResourceType.TOPIC, f"{topic}.other", AclOperation.READ)

        result = flow.mirror()

        finding = only(result)
        assert (finding.kind, finding.partition) == (FindingKind.NOT_ALLOWED, TopicPartition(topic, 0))
        assert f"User:{USER} is not allowed READ on topic {topic}, so nothing of it is copied" in finding.message
        assert values(flow.read_target(f"{topic}.other")) == ["0", "1", "2", "3", "4"]
