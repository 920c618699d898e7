"""Confluent Replicator's connectors as topologies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.imports import assert_every_key_is_somewhere, everything_shown, loaded, reasons
from twinlog.errors import ImportSourceError
from twinlog.intake.imported import Imported
from twinlog.intake.replicator import import_replicator

ORDERS = Path(__file__).resolve().parents[2] / "data" / "replicator" / "orders.json"
BASE = {
    "connector.class": "io.confluent.connect.replicator.ReplicatorSourceConnector",
    "topic.whitelist": "orders",
    "src.kafka.bootstrap.servers": "src:9092",
    "dest.kafka.bootstrap.servers": "dest:9092",
}


@pytest.fixture
def imports(tmp_path):
    def from_configs(*configs: dict[str, object], **aliases: str) -> Imported:
        paths = []
        for number, config in enumerate(configs):
            path = tmp_path / f"connector-{number}.json"
            path.write_text(json.dumps({"name": f"c{number}", "config": config}), encoding="utf-8")
            paths.append(path)
        return import_replicator(*paths, **aliases)

    return from_configs


@pytest.fixture(scope="module")
def imported() -> Imported:
    return import_replicator(ORDERS, source="home", target="away")


class TestOneConnector:
    def test_flow(self, imported) -> None:
        flow = loaded(imported).flows["home->away"]
        assert flow.topics == ("orders", r"customer\.events", r"prod\..*")
        assert flow.topics_exclude == (r"prod\.scratch", "__.*")
        assert (flow.naming, flow.naming_format) == ("custom", "${topic}.replica")
        assert flow.lanes == 4
        assert flow.replication_factor == 3
        assert flow.sync_topic_configs_enabled
        assert flow.sync_topic_configs_interval_seconds == 120
        assert flow.refresh_topics_interval_seconds == 60
        assert flow.sync_group_offsets_enabled
        assert not flow.sync_topic_acls_enabled
        assert flow.overrides == {"source.consumer.max.partition.fetch.bytes": "4194304"}

    def test_clusters(self, imported) -> None:
        clusters = loaded(imported).clusters
        assert clusters["home"].bootstrap_servers == "src-1.example.com:9092,src-2.example.com:9092"
        assert clusters["home"].settings["sasl.password"] == "${env:HOME_SASL_PASSWORD}"
        assert clusters["away"].settings == {"ssl.key.password": "${env:AWAY_SSL_KEY_PASSWORD}"}

    def test_every_key_is_somewhere_and_no_secret_anywhere(self, imported) -> None:
        document = json.loads(ORDERS.read_text(encoding="utf-8"))
        assert_every_key_is_somewhere(imported, ["name", *document["config"]])
        assert "s3cr3t" not in everything_shown(imported)
        assert imported.variables == ("HOME_SASL_PASSWORD", "AWAY_SSL_KEY_PASSWORD")

    def test_reasons(self, imported) -> None:
        why = reasons(imported)
        assert "the journal prevents loops" in why["provenance.header.enable"]
        assert "schema registry" in why["schema.registry.topic"]
        assert "licence" in why["confluent.license"]
        assert "not in a group of the source" in why["src.consumer.group.id"]
        assert "neither Replicator nor Twinlog" in why["something.else"]


@pytest.mark.parametrize(
    ("rename", "naming", "naming_format"),
    [
        (None, "identity", None),
        ("${topic}", "identity", None),
        ("source.${topic}", "prefixed", None),
        ("dc1.${topic}", "custom", "dc1.${topic}"),
        ("${topic}.replica", "custom", "${topic}.replica"),
    ],
)
def test_names(imports, rename: str | None, naming: str, naming_format: str | None) -> None:
    config = BASE | ({"topic.rename.format": rename} if rename else {})
    flow = loaded(imports(config)).flows["source->target"]
    assert (flow.naming, flow.naming_format) == (naming, naming_format)


@pytest.mark.parametrize(
    ("key", "value", "attribute", "expected"),
    [
        ("dest.topic.replication.factor", "0", "replication_factor", "source"),
        ("dest.topic.replication.factor", 2, "replication_factor", 2),
        ("topic.config.sync", False, "sync_topic_configs_enabled", False),
        ("offset.translator.tasks.max", "0", "sync_group_offsets_enabled", False),
        ("topic.poll.interval.ms", "1", "refresh_topics_interval_seconds", 1),
        ("tasks.max", 9, "lanes", 9),
    ],
)
def test_one_setting(imports, key: str, value: object, attribute: str, expected: object) -> None:
    assert getattr(loaded(imports(BASE | {key: value})).flows["source->target"], attribute) == expected


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("topic.auto.create", "false", "cannot be told not to"),
        ("topic.preserve.partitions", False, "could not be exact"),
        ("provenance.header.enable", "false", "Twinlog's default"),
        ("topic.poll.interval.ms", "often", "whole number"),
        ("transforms", "mask", "single message transforms"),
        ("src.kafka.sasl.kerberos.service.name", "kafka", "Kerberos"),
        ("topic.config.sync", None, "does not accept"),
    ],
)
def test_left_out_with_its_reason(imports, key: str, value: object, reason: str) -> None:
    assert reason in reasons(imports(BASE | {key: value}))[key]


def test_several_connectors_share_clusters_by_their_servers(imports) -> None:
    back = BASE | {"src.kafka.bootstrap.servers": "dest:9092", "dest.kafka.bootstrap.servers": "src:9092"}
    onward = BASE | {"src.kafka.bootstrap.servers": "dest:9092", "dest.kafka.bootstrap.servers": "third:9092"}
    topology = loaded(imports(BASE, back, onward))
    assert list(topology.flows) == ["source->target", "target->source", "target->target2"]
    assert topology.clusters["target2"].bootstrap_servers == "third:9092"


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ([BASE | {"connector.class": "x.MirrorSourceConnector"}], "must be Replicator's"),
        ([{k: v for k, v in BASE.items() if k != "topic.whitelist"}], "names no topics"),
        ([{k: v for k, v in BASE.items() if not k.startswith("src.")}], "has no src.kafka.bootstrap.servers"),
        ([BASE | {"dest.kafka.bootstrap.servers": "src:9092"}], "the same cluster"),
        ([BASE | {"topic.regex": "("}], "not a regular expression"),
        ([BASE | {"topic.rename.format": "all"}], "cannot be a name with"),
        ([BASE, BASE], "a second connector from source to target"),
        ([BASE | {"tasks.max": [1]}], "tasks.max must be a text"),
    ],
)
def test_what_cannot_be_imported_is_one_sentence(imports, configs: list[dict[str, object]], message: str) -> None:
    with pytest.raises(ImportSourceError, match=message):
        imports(*configs)


def test_properties_do_as_well(tmp_path) -> None:
    path = tmp_path / "replicator.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in BASE.items()), encoding="latin-1")
    assert loaded(import_replicator(path)).flows["source->target"].topics == ("orders",)


KEYS = st.sampled_from(
    [
        "name", "tasks.max", "topic.regex", "topic.blacklist", "topic.config.sync", "topic.poll.interval.ms",
        "topic.auto.create", "dest.topic.replication.factor", "provenance.header.enable", "offset.start",
        "src.consumer.fetch.max.bytes", "src.consumer.group.id", "src.kafka.ssl.key.password", "src.kafka.x",
        "dest.kafka.sasl.jaas.config", "dest.kafka.client.id", "producer.override.max.request.size", "x.y",
        "schema.registry.url", "offset.translator.tasks.max", "topic.rename.format", "config.providers",
    ]
)  # fmt: skip
VALUES = st.sampled_from(["true", "false", "0", "3", "orders", "${topic}", "a.${topic}", "", "${vault:a:b}"])


@settings(max_examples=60)
@given(st.dictionaries(KEYS, VALUES))
def test_whatever_is_written_every_key_is_taken_or_left_out(tmp_path_factory, written: dict[str, str]) -> None:
    config = written | BASE
    if "${topic}" not in config.get("topic.rename.format", "${topic}"):
        config["topic.rename.format"] = "${topic}-copy"
    if "vault" in config.get("topic.regex", ""):
        config["topic.regex"] = ".*"
    path = tmp_path_factory.getbasetemp() / "property-based.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    imported = import_replicator(path)
    assert_every_key_is_somewhere(imported, list(config))
    loaded(imported)
