"""Topology files that are right, and what the loader makes of them; the wrong ones are in test_wrong_topologies.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.errors import TopologyError
from twinlog.intake.topology_file import load
from twinlog.model.settings import settings_of
from twinlog.model.topology import Flow, Topology

CLUSTERS = """\
clusters:
  nyc: {bootstrap.servers: "nyc:9092"}
  lon: {bootstrap.servers: "lon:9092"}
"""


def loaded(folder: Path, text: str, environ: dict[str, str] | None = None) -> Topology:
    file = folder / "topology.yaml"
    file.write_text(text, encoding="utf-8")
    return load(file, environ or {})


def test_the_file_of_the_design(tmp_path: Path) -> None:
    topology = loaded(
        tmp_path,
        r"""
clusters:
  nyc: {bootstrap.servers: "kafka.nyc.example.com:9092", connection: kafka_nyc}
  lon: {bootstrap.servers: "kafka.lon.example.com:9092", connection: kafka_lon}
ledger: ./ledger
defaults: {replication.factor: 3, schedule: "* * * * *"}
flows:
  nyc->lon:
    topics: ["prod\\..*", orders]
    topics.exclude: ["test\\..*"]
    groups: [".*"]
    naming: prefixed
    sync: {configs: true, acls: false, group.offsets: true}
""",
    )
    assert topology.clusters["nyc"].connection == "kafka_nyc"
    assert topology.ledger == str(tmp_path / "ledger")
    assert topology.path == str(tmp_path / "topology.yaml")
    flow = topology.flow("nyc->lon")
    assert flow == Flow(
        "nyc",
        "lon",
        topics=(r"prod\..*", "orders"),
        topics_exclude=(r"test\..*",),
        replication_factor=3,
        sync_topic_acls_enabled=False,
        sync_group_offsets_enabled=True,
    )


def test_every_flow_setting_can_be_written(tmp_path: Path) -> None:
    written = {
        "naming": "custom",
        "naming.format": "${topic}.replica",
        "route": "records",
        "throttle": "12.5",
        "reconcile.throttle": "12.5",
        "replication.factor": "source",
        "topics": "a,b",
        "schedule": "@continuous",
        "canary.schedule": "@hourly",
    }
    lines = []
    for item in settings_of(Flow).values():
        default = item.default
        if item.name in written:
            value = written[item.name]
        elif item.name == "naming.policy":
            continue
        elif default is None:
            value = "7" if item.kind.label.startswith("whole") else "some.module:Thing"
        elif isinstance(default, tuple):
            value = ", ".join(default)
        else:
            value = str(default).lower() if isinstance(default, bool) else str(default)
        lines.append(f"    {item.name}: '{value}'")
    flow = loaded(tmp_path, CLUSTERS + "flows:\n  nyc->lon:\n" + "\n".join(lines)).flow("nyc->lon")
    assert (flow.throttle, flow.replication_factor, flow.topics) == (12.5, "source", ("a", "b"))
    assert flow.budget_records == 7
    assert flow.topics_exclude == Flow("a", "b").topics_exclude


def test_an_empty_flow_has_every_default(tmp_path: Path) -> None:
    assert loaded(tmp_path, CLUSTERS + "flows:\n  nyc->lon:\n").flow("nyc->lon") == Flow("nyc", "lon")


def test_yaml_words_that_look_like_truth_values_are_names(tmp_path: Path) -> None:
    text = """
clusters:
  no: {bootstrap.servers: "oslo:9092"}
  on: {bootstrap.servers: "ontario:9092"}
flows:
  no->on: {topics: [yes, null-values, 1.10]}
"""
    assert loaded(tmp_path, text).flow("no->on").topics == ("yes", "null-values", "1.10")


def test_anchors_and_merges(tmp_path: Path) -> None:
    text = (
        CLUSTERS
        + """
flows:
  nyc->lon: &both
    topics: orders
    groups: [a]
  lon->nyc:
    <<: *both
    groups: [b]
"""
    )
    flow = loaded(tmp_path, text).flow("lon->nyc")
    assert (flow.topics, flow.groups) == (("orders",), ("b",))


def test_a_flow_is_stronger_than_the_defaults(tmp_path: Path) -> None:
    text = CLUSTERS + "defaults: {lanes: 2, groups: [g]}\nflows:\n  nyc->lon: {lanes: 5}\n  lon->nyc:\n"
    topology = loaded(tmp_path, text)
    assert [(flow.lanes, flow.groups) for flow in topology.flows.values()] == [(5, ("g",)), (2, ("g",))]


def test_environment_variables_are_resolved_and_secrets_stay_references(tmp_path: Path) -> None:
    text = """
clusters:
  nyc:
    bootstrap.servers: ${env:HOST}:9092
    security.protocol: SASL_SSL
    sasl: {mechanism: PLAIN, username: "${env:USER_NAME}", password: "${env:PASSWORD}"}
    ssl.ca.location: ${file:/etc/ca.path}
    consumer.fetch.max.bytes: 1000000
  lon: {bootstrap.servers: ["a:1", "b:2"]}
flows:
  nyc->lon: {topics: "${env:TOPICS}", target.producer.ssl.key.password: "${file:/run/secrets:key}"}
"""
    environ = {"HOST": "k1", "USER_NAME": "mirror", "TOPICS": "x,y"}
    topology = loaded(tmp_path, text, environ)
    assert topology.clusters["lon"].bootstrap_servers == "a:1,b:2"
    assert topology.clusters["nyc"].bootstrap_servers == "k1:9092"
    assert topology.clusters["nyc"].settings == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "mirror",
        "sasl.password": "${env:PASSWORD}",
        "ssl.ca.location": "${file:/etc/ca.path}",
        "consumer.fetch.max.bytes": "1000000",
    }
    flow = topology.flow("nyc->lon")
    assert flow.topics == ("x", "y")
    assert flow.overrides == {"target.producer.ssl.key.password": "${file:/run/secrets:key}"}


def test_places_of_spark_queue_and_ledger(tmp_path: Path) -> None:
    text = """
clusters:
  nyc: {bootstrap.servers: "nyc:9092"}
  lon: {bootstrap.servers: "lon:9092", spark: spark_lon, queue: lon, ledger: "s3a://lon/ledger"}
ledger: /srv/ledger
spark: spark_home
flows:
  nyc->lon:
  lon->nyc: {ledger: here}
"""
    topology = loaded(tmp_path, text)
    there, back = topology.flow("nyc->lon"), topology.flow("lon->nyc")
    assert (topology.spark_for(there), topology.spark_for(back)) == ("spark_lon", "spark_home")
    assert (topology.queue_for(there), topology.queue_for(back)) == ("lon", None)
    assert (topology.ledger_for(there), topology.ledger_for(back)) == ("s3a://lon/ledger", str(tmp_path / "here"))


def test_two_way_identity_and_a_long_chain_are_no_circle(tmp_path: Path) -> None:
    text = """
clusters:
  a: {bootstrap.servers: "a:1"}
  b: {bootstrap.servers: "b:1"}
  c: {bootstrap.servers: "c:1"}
defaults: {naming: identity}
flows: {a->b: , b->a: , b->c: , a->c: {enabled: false}}
"""
    assert len(loaded(tmp_path, text).flows) == 4


def test_an_unknown_flow_is_named_with_the_nearest(tmp_path: Path) -> None:
    topology = loaded(tmp_path, CLUSTERS + "flows:\n  nyc->lon:\n")
    with pytest.raises(TopologyError, match='no flow is called "nyc->lno"; did you mean "nyc->lon"\\?'):
        topology.flow("nyc->lno")


def test_a_topology_has_a_version_and_the_site_that_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "topology.yaml"
    clusters = "{nyc: {bootstrap.servers: 'nyc:9092'}, lon: {bootstrap.servers: 'lon:9092'}}"
    text = f"clusters: {clusters}\nflows: {{nyc->lon: {{}}}}\n"
    path.write_text("version: 12\n" + text)
    named = load(path, environ={"TWINLOG_SITE": "edge-7"})
    unnamed = load(path, environ={})
    assert (named.version, named.site) == (12, "edge-7")
    assert unnamed.site
    path.write_text(text)
    assert load(path, environ={}).version is None
    path.write_text("version: latest\n" + text)
    with pytest.raises(TopologyError, match=r"topology.yaml:1: version: expected a whole number, not \"latest\""):
        load(path, environ={})
