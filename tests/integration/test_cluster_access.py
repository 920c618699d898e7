"""Both client libraries reach real clusters from the same settings, and say clearly why they do not."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic
from kafka.protocol.metadata import CoordinatorType, MetadataRequest

from local.kafka import PLAINTEXT, SASL_SSL, KafkaCluster, KafkaClusters, KafkaSpec, start
from support.admin import admin_of
from support.silent import closed_port, silent_server
from support.waiting import NOT_HUNG_S
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.inventory import settled_metadata, settled_offsets
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.cluster.raw import RawClient
from twinlog.cluster.secrets import mask, resolve
from twinlog.errors import AuthenticationError, ClusterUnreachableError
from twinlog.model.offsets import TopicPartition

WRONG = "not the Right 'word'"


def access(alias: str, settings: Mapping[str, str]) -> ClusterAccess:
    return ClusterAccess(alias, resolve(settings, environ={}))


def test_both_clients_reach_one_broker_in_plain_text(kafka_pair: KafkaClusters) -> None:
    reached = access("nyc", kafka_pair["nyc"].client_settings(PLAINTEXT))

    with reached.raw(10) as raw:
        metadata = raw.run(raw.metadata())
    admin = admin_of(reached)
    with admin.errors():
        listed = admin.list_topics(timeout=10)

    assert set(metadata.brokers) == set(listed.brokers) == {0}
    assert metadata.cluster_id == listed.cluster_id


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_both_clients_reach_three_brokers_through_tls_and_a_password(trio: KafkaCluster, user: str) -> None:
    reached = access("trio", trio.client_settings(SASL_SSL, user))
    topic = f"reached-by-{user}"
    admin = admin_of(reached)
    with admin.errors():
        admin.create_topics([NewTopic(topic, 6, 3)])[topic].result(20)

    with reached.raw(20) as raw:
        # Brokers hear of a new topic one after the other.
        metadata = raw.run(settled_metadata(raw, [topic]))
        partitions = [TopicPartition(topic, number) for number in range(6)]
        ends = raw.run(settled_offsets(raw, metadata, partitions, OffsetAt.LAST_STABLE))
        coordinator = raw.run(raw.coordinator(CoordinatorType.GROUP, "some-group"))

    assert len(metadata.brokers) == 3
    described = metadata.topics[topic]
    assert described.topic_id is not None
    assert [len(partition.replicas) for partition in described.partitions] == [3] * 6
    assert {partition.leader for partition in described.partitions} == set(metadata.brokers)
    assert ends.offsets == dict.fromkeys(partitions, 0)
    assert coordinator in metadata.brokers


def test_offsets_of_what_does_not_exist_are_named_beside_the_others(kafka_pair: KafkaClusters) -> None:
    reached = access("nyc", kafka_pair["nyc"].client_settings(PLAINTEXT))
    admin = admin_of(reached)
    with admin.errors():
        admin.create_topics([NewTopic("offsets-here", 1, 1)])["offsets-here"].result(20)
    with reached.raw(10) as raw:
        metadata = raw.run(raw.metadata())
        asked = [TopicPartition("offsets-here", 0), TopicPartition("never-made", 0), TopicPartition("offsets-here", 9)]
        listing = raw.run(list_offsets(raw, metadata, asked, OffsetAt.LOG_START))

    assert listing.offsets == {asked[0]: 0}
    assert set(listing.failed) == set(asked[1:])


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_a_wrong_password_is_refused_at_once_and_never_shown(trio: KafkaCluster, user: str) -> None:
    settings = trio.client_settings(SASL_SSL, user)
    settings.pop("sasl.jaas.config", None)
    reached = access("trio", {**settings, "sasl.username": user, "sasl.password": WRONG})

    begun = time.monotonic()
    with pytest.raises(AuthenticationError) as refused:
        reached.raw(120)
    assert time.monotonic() - begun < NOT_HUNG_S

    admin = admin_of(reached)
    with pytest.raises(AuthenticationError) as refused_admin, admin.errors():
        admin.list_topics(timeout=3)
    for error in (refused.value, refused_admin.value):
        said = "".join(traceback.format_exception(error)) + repr(reached) + repr(reached.settings)
        assert str(error).startswith("cluster trio (")
        assert "did not accept our credentials" in str(error)
        assert WRONG not in said


def test_an_unknown_authority_is_refused_at_once(trio: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = trio.client_settings(SASL_SSL, "alice")
    for name in [name for name in settings if name.startswith(("ssl.truststore", "ssl.ca"))]:
        del settings[name]

    with pytest.raises(AuthenticationError, match=r"could not agree on TLS .*CERTIFICATE_VERIFY_FAILED"):
        access("trio", settings).raw(30)


def test_plain_text_to_a_tls_listener_is_named(trio: KafkaCluster) -> None:
    settings = {"bootstrap.servers": trio.client_settings(SASL_SSL, "alice")["bootstrap.servers"]}

    with pytest.raises(ClusterUnreachableError, match="cluster trio"):
        access("trio", settings).raw(3)


def test_a_cluster_that_is_down_is_named_within_the_time_out() -> None:
    server = closed_port()
    reached = access("lon", {"bootstrap.servers": server})

    begun = time.monotonic()
    with pytest.raises(
        ClusterUnreachableError, match=rf"^cluster lon \({server}\) could not be reached: Connection refused$"
    ):
        reached.raw(5)
    admin = admin_of(reached)
    with pytest.raises(ClusterUnreachableError, match="Connection refused"), admin.errors():
        admin.list_topics(timeout=2)
    assert time.monotonic() - begun < NOT_HUNG_S


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_cluster_that_hangs_is_named_within_the_time_out(protocol: str) -> None:
    with silent_server() as server:
        reached = access("lon", {"bootstrap.servers": server, "security.protocol": protocol})
        begun = time.monotonic()
        with pytest.raises(ClusterUnreachableError, match=r"cluster lon .* could not be reached"):
            reached.raw(1.5)
        assert time.monotonic() - begun < NOT_HUNG_S


def test_a_request_to_a_broker_that_stopped_answering_ends_with_its_time_out(tmp_path: Path) -> None:
    with start([KafkaSpec("paused")], tmp_path) as clusters:
        cluster = clusters["paused"]
        with access("paused", cluster.client_settings(PLAINTEXT)).raw(10) as raw:
            assert raw.send(MetadataRequest(topics=[])).brokers
            cluster.pause_broker(0)
            begun = time.monotonic()
            try:
                with pytest.raises(ClusterUnreachableError, match=r"cluster paused .* timed out after"):
                    raw.send(MetadataRequest(topics=[]), node_id=0, timeout_s=1)
            finally:
                cluster.resume_broker(0)
            assert time.monotonic() - begun < NOT_HUNG_S
            assert raw.send(MetadataRequest(topics=[]), node_id=0, timeout_s=20).brokers, "it connects anew"


def test_many_requests_share_a_connection(kafka_pair: KafkaClusters) -> None:
    with access("nyc", kafka_pair["nyc"].client_settings(PLAINTEXT)).raw(10) as raw:
        answers = raw.run(raw.gather(raw.metadata([]) for _ in range(200)))
    assert len(answers) == 200


def test_the_first_error_of_many_is_raised_after_all_have_ended(kafka_pair: KafkaClusters) -> None:
    ended: list[int] = []

    async def work(raw: RawClient, number: int) -> None:
        try:
            await raw.metadata([])
            if number == 0:
                raise ClusterUnreachableError("the first")
        finally:
            ended.append(number)

    reached = access("nyc", kafka_pair["nyc"].client_settings(PLAINTEXT))
    with reached.raw(10) as raw, pytest.raises(ClusterUnreachableError, match="the first"):
        raw.run(raw.gather(work(raw, number) for number in range(3)))
    assert sorted(ended) == [0, 1, 2]


def test_a_name_that_nobody_knows_is_said() -> None:
    with pytest.raises(ClusterUnreachableError, match=r"no-such-host\.invalid"):
        access("lon", {"bootstrap.servers": "no-such-host.invalid:9092"}).raw(10)


def test_one_live_bootstrap_server_is_enough(kafka_pair: KafkaClusters) -> None:
    with silent_server() as silent:
        servers = f"{closed_port()},{silent},{kafka_pair['nyc'].bootstrap_servers}"
        with access("nyc", {"bootstrap.servers": servers}).raw(6) as raw:
            assert [broker.node_id for broker in raw.brokers()] == [0]


def test_closing_leaves_no_thread_or_socket_behind(kafka_pair: KafkaClusters) -> None:
    before = set(threading.enumerate())
    for _ in range(3):
        with access("nyc", kafka_pair["nyc"].client_settings(PLAINTEXT)).raw(10) as raw:
            raw.run(raw.metadata())
    assert not {thread for thread in threading.enumerate() if thread.name.startswith("look up")} - before


def test_the_launchers_passwords_are_masked_once_resolved(trio: KafkaCluster) -> None:
    settings = resolve(trio.client_settings(SASL_SSL, "alice"), environ={})

    assert trio.spec.scram["alice"] not in mask(f"the word is {trio.spec.scram['alice']}")
    assert trio.spec.scram["alice"] not in repr(settings)
