"""MirrorMaker 2's files as topologies: both dialects, secrets, and where every key went."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.imports import assert_every_key_is_somewhere, everything_shown, loaded, reasons
from twinlog.errors import ImportSourceError
from twinlog.intake import properties
from twinlog.intake.connector_file import read_connectors
from twinlog.intake.imported import Imported
from twinlog.intake.mm2 import import_mm2
from twinlog.model.client_settings import client_settings

DATA = Path(__file__).resolve().parents[2] / "data" / "mm2"


@pytest.fixture
def imports(tmp_path):
    def from_text(text: str, name: str = "mm2.properties") -> Imported:
        path = tmp_path / name
        path.write_text(text, encoding="latin-1")
        return import_mm2(path)

    return from_text


ESTATE = """
clusters = NYC, LON
NYC.bootstrap.servers = nyc:9092
LON.bootstrap.servers = lon:9092
NYC->LON.enabled = true
"""


@pytest.fixture(scope="module")
def imported() -> Imported:
    return import_mm2(DATA / "dedicated.properties")


class TestDedicated:
    def test_flows(self, imported) -> None:
        topology = loaded(imported)
        assert {name: flow.enabled for name, flow in topology.flows.items()} == {
            "NYC->LON": True,
            "NYC->PAR": False,
            "LON->NYC": False,
        }
        flow = topology.flows["NYC->LON"]
        assert flow.topics == ("orders", r"prod\..*")
        assert flow.topics_exclude == (r"prod\.test.*",)
        assert flow.naming == "identity"
        assert flow.replication_factor == 3
        assert flow.lanes == 16
        assert flow.sync_group_offsets_enabled
        assert not flow.sync_topic_acls_enabled
        assert flow.topics_from == "latest"

    def test_clusters_and_precedence(self, imported) -> None:
        topology = loaded(imported)
        nyc, lon, par = (topology.clusters[alias] for alias in ("NYC", "LON", "PAR"))
        assert nyc.bootstrap_servers == "kafka-1.nyc.example.com:9093,kafka-2.nyc.example.com:9093"
        assert nyc.settings["security.protocol"] == lon.settings["security.protocol"] == "SASL_SSL"
        assert par.settings["security.protocol"] == "PLAINTEXT"
        consumer = client_settings(topology, topology.flows["NYC->LON"], "source", "consumer")
        assert consumer["fetch.max.bytes"] == "104857600"
        assert consumer["client.rack"] == "use1-az1"

    def test_no_secret_is_left_and_variables_are_named(self, imported) -> None:
        assert "swordfish" not in everything_shown(imported)
        assert imported.variables == ("NYC_SASL_PASSWORD", "KAFKA_SSL_KEY_PASSWORD")
        assert any("NYC_SASL_PASSWORD" in note for note in imported.notes)
        clusters = loaded(imported).clusters
        assert clusters["NYC"].settings["sasl.username"] == "mirror"
        assert clusters["NYC"].settings["sasl.password"] == "${env:NYC_SASL_PASSWORD}"

    def test_a_file_provider_stays_a_reference_under_our_name(self, imported) -> None:
        lon = loaded(imported).clusters["LON"]
        assert lon.settings["sasl.password"] == "${file:/run/secrets/kafka.properties:lon}"

    def test_every_key_is_somewhere(self, imported) -> None:
        read = properties.read(DATA / "dedicated.properties")
        assert_every_key_is_somewhere(imported, [e.key for e in (*read.entries, *read.shadowed)])

    def test_reasons(self, imported) -> None:
        why = reasons(imported)
        assert "translation is exact" in why["NYC->LON.offset.lag.max"]
        assert "Kafka Connect worker" in why["LON.offset.storage.replication.factor"]
        assert "without a cluster in front" in why["producer.acks"]
        assert "`clusters` does not name" in why["NYC->ROM.enabled"]
        assert "the default" in why["topic.filter.class"]
        assert "the last one counts" in why["tasks.max"]
        assert "neither MirrorMaker 2 nor Twinlog" in why["nonsense"]

    def test_flows_that_are_off_are_noted(self, imported) -> None:
        assert "NYC->PAR is off, as it is in the input." in imported.notes
        assert "# NYC->PAR is off, as it is in the input.\n" in imported.topology_yaml


@pytest.mark.parametrize(
    ("line", "attribute", "value"),
    [
        ("NYC->LON.topics = a, b", "topics", ("a", "b")),
        ("topics = a", "topics", ("a",)),
        ("NYC->LON.groups.blacklist = g", "groups_exclude", ("g",)),
        ("config.properties.blacklist = x", "config_properties_exclude", ("x",)),
        ("replication.policy.separator = _", "replication_policy_separator", "_"),
        ("replication.factor = -1", "replication_factor", "target"),
        ("NYC->LON.emit.heartbeats.enabled = false", "emit_heartbeats_enabled", False),
        ("offset-syncs.topic.location = target", "offset_syncs_topic_location", "target"),
        ("refresh.groups.interval.seconds = 7", "refresh_groups_interval_seconds", 7),
        ("NYC->LON.consumer.auto.offset.reset = latest", "topics_from", "latest"),
        ("NYC->LON.source.consumer.auto.offset.reset = latest", "topics_from", "latest"),
        ("replication.policy.class = org.apache.kafka.connect.mirror.DefaultReplicationPolicy", "naming", "prefixed"),
        ("NYC->LON.replication.policy.class = org.x.IdentityReplicationPolicy", "naming", "identity"),
        ("topics = a\nNYC->LON.topics = b", "topics", ("b",)),
        ("LON->NYC.topics = a", "enabled", True),
        ("offset-syncs.topic.replication.factor = 1", "journal_topic_replication_factor", 1),
    ],
)
def test_one_setting(imports, line: str, attribute: str, value: object) -> None:
    imported = imports(ESTATE + line)
    assert getattr(loaded(imported).flows["NYC->LON"], attribute) == value
    assert imported.left_out == ()


def test_enabled_for_all_makes_a_flow_of_every_pair(imports) -> None:
    topology = loaded(imports(ESTATE.replace("NYC->LON.enabled", "enabled")))
    assert {name: flow.enabled for name, flow in topology.flows.items()} == {"NYC->LON": True, "LON->NYC": True}


@pytest.mark.parametrize("value", ["false", "yes", "1", ""])
def test_what_java_takes_for_false_is_never_taken_for_true(imports, value: str) -> None:
    topology = loaded(imports(ESTATE + f"LON->NYC.enabled = {value}"))
    assert not topology.flows["LON->NYC"].enabled


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("replication.policy.class = com.example.MyPolicy", "write one in Python"),
        ("topic.filter.class = com.example.MyFilter", "name it in topic.filter"),
        ("NYC.topics = a", "ignores it for a cluster"),
        ("NYC.fetch.max.bytes = 5", "does not hand it to its clients"),
        ("NYC->LON.source.cluster.ssl.key.password = x", "write it for the cluster"),
        ("NYC.sasl.kerberos.service.name = kafka", "Kerberos is not supported"),
        ("NYC.consumer.fetch.max.bytes = lots", "whole number"),
        ("NYC->LON.replication.factor = many", "does not accept the value"),
        ("NYC.sasl.mechanism = ${vault:kafka:mechanism}", "config provider 'vault'"),
        ("replication.factor = ${file:/x:y}", "only client properties"),
        ("naming = identity", "neither MirrorMaker 2 nor Twinlog"),
        ("NYC.security.protocol =", "it has no value"),
        ("security.protocol = SSL\nNYC.security.protocol = SSL\nLON.security.protocol = SSL", "its own"),
    ],
)
def test_left_out_with_its_reason(imports, line: str, reason: str) -> None:
    imported = imports(ESTATE + line)
    (left,) = imported.left_out
    assert reason in left.reason
    loaded(imported)


class TestSecrets:
    @pytest.mark.parametrize(
        ("line", "setting", "written"),
        [
            ("NYC.sasl.password = swordfish", "sasl.password", "${env:NYC_SASL_PASSWORD}"),
            ("NYC.ssl.keystore.key = swordfish", "ssl.keystore.key", "${env:NYC_SSL_KEYSTORE_KEY}"),
            (
                "NYC.consumer.ssl.key.password = swordfish",
                "consumer.ssl.key.password",
                "${env:NYC_CONSUMER_SSL_KEY_PASSWORD}",
            ),
            ("NYC.sasl.password = ${env:PW}", "sasl.password", "${env:PW}"),
            ("NYC.sasl.password = ${file:/x:pw}", "sasl.password", "${file:/x:pw}"),
            ("NYC.sasl.password = ${directory:/run/secrets:pw}", "sasl.password", "${file:/run/secrets/pw}"),
            ("NYC.sasl.password = ${vault:kafka:pw}", "sasl.password", "${env:NYC_SASL_PASSWORD}"),
            ("NYC.sasl.password = swordfish${env:PW}", "sasl.password", "${env:NYC_SASL_PASSWORD}"),
            (
                "NYC.sasl.oauthbearer.token.endpoint.url = https://u:swordfish@idp.example.com/token",
                "sasl.oauthbearer.token.endpoint.url",
                "from-the-environment",
            ),
            (
                'NYC.sasl.jaas.config = com.example.Login required token="swordfish";',
                "sasl.jaas.config",
                "${env:NYC_SASL_JAAS_CONFIG}",
            ),
            (
                "NYC.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required "
                'username="u" password="swordfish" tokenauth="true";',
                "sasl.jaas.config",
                "${env:NYC_SASL_JAAS_CONFIG}",
            ),
        ],
    )
    def test_become_references(self, imports, line: str, setting: str, written: str) -> None:
        imported = imports(ESTATE + line)
        assert loaded(imported).clusters["NYC"].settings[setting] == written
        assert "swordfish" not in everything_shown(imported)

    def test_a_provider_called_file_may_be_something_else(self, imports) -> None:
        imported = imports(
            ESTATE + "config.providers = file\nconfig.providers.file.class = com.example.Vault\n"
            "NYC.sasl.password = ${file:kafka:pw}"
        )
        assert imported.variables == ("NYC_SASL_PASSWORD",)

    def test_two_secrets_never_share_a_variable(self, imports) -> None:
        text = ESTATE.replace("NYC", "a-b").replace("LON", "a_b")
        imported = imports(text + "a-b.sasl.password = one\na_b.sasl.password = two")
        assert imported.variables == ("A_B_SASL_PASSWORD", "A_B_SASL_PASSWORD_2")

    def test_left_out_values_are_masked(self, imports) -> None:
        imported = imports(
            ESTATE + "listeners.https.ssl.key.password = s3cr3t\nx.api.key = s3cr3t\nproxy = http://u:s3cr3t@host"
        )
        assert "s3cr3t" not in everything_shown(imported)
        assert {left.value_masked for left in imported.left_out} == {"********", "http://********@host"}


@pytest.mark.parametrize(("lines", "noted"), [("", True), ("NYC.ssl.truststore.type = PEM\n", False)])
def test_a_java_key_store_is_noted_since_it_can_not_be_read(imports, lines: str, noted: bool) -> None:
    imported = imports(ESTATE + "NYC.ssl.truststore.location = /etc/kafka/trust\n" + lines)
    wanted = "NYC: ssl.truststore.location is a JKS store, which Twinlog can't read"
    assert any(note.startswith(wanted) for note in imported.notes) is noted


class TestConnectors:
    FILES = (DATA / "source-connector.json", DATA / "checkpoint-connector.properties")

    def test_two_connectors_of_one_flow_come_together(self) -> None:
        imported = import_mm2(*self.FILES)
        topology = loaded(imported)
        (flow,) = topology.flows.values()
        assert flow.name == "east->west"
        assert flow.enabled
        assert flow.topics == ("orders", "payments")
        assert flow.groups == ("billing-.*",)
        assert flow.lanes == 4
        assert flow.sync_group_offsets_interval_seconds == 30
        assert flow.replication_factor == 3
        assert flow.overrides == {
            "target.producer.max.request.size": "26214400",
            "consumer.fetch.min.bytes": "65536",
        }
        assert topology.clusters["east"].bootstrap_servers == "east-1.example.com:9096,east-2.example.com:9096"

    def test_keys_and_secrets(self) -> None:
        imported = import_mm2(*self.FILES)
        keys = [key for path in self.FILES for c in read_connectors(path) for key in c.values]
        assert_every_key_is_somewhere(imported, keys)
        assert "hunter2" not in everything_shown(imported)
        assert imported.variables == ("EAST_SASL_PASSWORD", "WEST_SASL_OAUTHBEARER_CLIENT_SECRET")

    def test_what_two_connectors_disagree_on_is_named(self) -> None:
        imported = import_mm2(*self.FILES)
        (left,) = [left for left in imported.left_out if left.key == "replication.factor"]
        assert "already has another value" in left.reason
        assert left.place.endswith("checkpoint-connector.properties:10")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no setting"),
        ("# only a comment", "holds no setting"),
        ("a = b", "is not MirrorMaker 2's"),
        ("connector.class = io.confluent.X", "is not MirrorMaker 2's"),
        ("{", "is not valid JSON"),
        ("[1]", "must hold a connector"),
        ('{"config": []}', "config must be an object"),
        ('{"connector.class": {}}', "connector.class must be a text"),
        ("clusters = NYC", r":1: clusters must name two or more"),
        ("clusters = A, B\nA.bootstrap.servers = a:1\nA->B.enabled = true", "cluster B has no bootstrap.servers"),
        ("clusters = A, B\nbootstrap.servers = a:1", "has no flow"),
        (ESTATE + "NYC->LON.topics = (", r":6: NYC->LON.topics: .*not a regular expression.*correct it"),
        (ESTATE + r"NYC->LON.topics = \\p{Alpha}+", "not a regular expression"),
        (ESTATE + "NYC->LON.topics = [a-z&&[^b]]", "something else in Python than in Java"),
        (ESTATE + "NYC->LON.topics =", "no topic is named"),
        (ESTATE.replace("NYC", "us.east"), 'alias "us.east" cannot be kept'),
        (
            "connector.class = x.MirrorSourceConnector\nsource.cluster.alias = a\ntarget.cluster.alias = a",
            "mirrors a to itself",
        ),
    ],
)
def test_what_cannot_be_imported_is_one_sentence(imports, text: str, message: str) -> None:
    with pytest.raises(ImportSourceError, match=message):
        imports(text)


def test_an_estate_is_imported_by_itself() -> None:
    with pytest.raises(ImportSourceError, match="import it by itself"):
        import_mm2(DATA / "dedicated.properties", DATA / "source-connector.json")


NAMES = st.sampled_from(
    [
        "topics", "topics.exclude", "groups", "enabled", "tasks.max", "replication.factor", "replication.policy.class",
        "replication.policy.separator", "sync.topic.acls.enabled", "emit.heartbeats.interval.seconds",
        "offset.lag.max", "bootstrap.servers", "security.protocol", "ssl.key.password", "sasl.jaas.config",
        "sasl.mechanism", "ssl.truststore.location", "consumer.fetch.max.bytes", "producer.acks", "admin.retries",
        "source.consumer.client.rack", "target.producer.max.request.size", "producer.override.batch.size",
        "consumer.auto.offset.reset", "offset.storage.topic", "config.providers", "group.id", "client.id", "x.y", "",
    ]
)  # fmt: skip
PREFIXES = st.sampled_from(["", "A.", "B.", "C.", "A->B.", "B->A.", "A->C.", "source.cluster.", "A->D."])
VALUES = st.sampled_from(
    ["true", "false", "3", "0", "-1", "a,b", ".*", "latest", "SSL", "x.IdentityReplicationPolicy", "TOPSECRET", "", "_"]
)


@settings(max_examples=60)
@given(st.dictionaries(st.tuples(PREFIXES, NAMES).map("".join), VALUES, max_size=25))
def test_whatever_is_written_every_key_is_taken_or_left_out(tmp_path_factory, written: dict[str, str]) -> None:
    base = {
        "clusters": "A, B, C",
        **{f"{alias}.bootstrap.servers": f"{alias}:9092" for alias in "ABC"},
        "A->B.enabled": "true",
    }
    keys = {key: value for key, value in written.items() if not key.endswith("bootstrap.servers")} | base
    path = tmp_path_factory.getbasetemp() / "property-based.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in keys.items() if key), encoding="latin-1")
    try:
        imported = import_mm2(path)
    except ImportSourceError as error:
        assert "no topic is named" in str(error)  # noqa: PT017 - the one thing this input may be refused for
        return
    assert_every_key_is_somewhere(imported, [key for key in keys if key])
    loaded(imported)
    secret = {key for key, value in keys.items() if value == "TOPSECRET" and key.endswith(("password", "jaas.config"))}
    shown = {left.value_masked for left in imported.left_out if left.key in secret}
    assert "TOPSECRET" not in shown
    assert all(f"{key}: TOPSECRET" not in imported.topology_yaml for key in ("ssl.key.password", "sasl.jaas.config"))
