"""MirrorMaker 1's two files and its command line as a topology."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.imports import assert_every_key_is_somewhere, everything_shown, loaded, reasons
from twinlog.errors import ImportSourceError
from twinlog.intake import properties
from twinlog.intake.imported import Imported
from twinlog.intake.mm1 import import_mm1

DATA = Path(__file__).resolve().parents[2] / "data" / "mm1"
CONSUMER, PRODUCER = DATA / "consumer.properties", DATA / "producer.properties"
OPTIONS = {
    "whitelist": r"orders,prod\..*",
    "num.streams": "6",
    "abort.on.send.failure": "true",
    "offset.commit.interval.ms": "10000",
    "message.handler": "com.example.Handler",
    "mystery": "1",
}


@pytest.fixture(scope="module")
def imported() -> Imported:
    return import_mm1(CONSUMER, PRODUCER, OPTIONS, source="old", target="new")


def test_flow(imported) -> None:
    flow = loaded(imported).flows["old->new"]
    assert flow.naming == "identity"
    assert flow.topics == (r"orders|prod\..*",)
    assert flow.topics_exclude == ("__.*",)
    assert flow.topics_from == "earliest"
    assert flow.lanes == 6
    assert not flow.sync_topic_configs_enabled
    assert not flow.sync_topic_acls_enabled
    assert flow.overrides["source.consumer.fetch.max.bytes"] == "52428800"
    assert flow.overrides["target.producer.max.request.size"] == "10485760"


def test_clusters_and_secrets(imported) -> None:
    clusters = loaded(imported).clusters
    assert clusters["old"].bootstrap_servers == "old-1.example.com:9092,old-2.example.com:9092"
    assert clusters["old"].settings["ssl.keystore.password"] == "${env:OLD_SSL_KEYSTORE_PASSWORD}"
    assert clusters["new"].bootstrap_servers == "new.example.com:9092"
    assert "opensesame" not in everything_shown(imported)


def test_every_key_is_somewhere(imported) -> None:
    files = [entry.key for path in (CONSUMER, PRODUCER) for entry in properties.read(path).entries]
    assert_every_key_is_somewhere(imported, [*files, *OPTIONS])


def test_reasons(imported) -> None:
    why = reasons(imported)
    assert "always stops" in why["abort.on.send.failure"]
    assert "committed with the records" in why["offset.commit.interval.ms"]
    assert "where and select" in why["message.handler"]
    assert "kept on the target" in why["group.id"]
    assert why["exclude.internal.topics"] == "internal topics are never mirrored"
    assert "neither MirrorMaker 1 nor Twinlog" in why["mystery"]


@pytest.mark.parametrize(
    ("whitelist", "pattern"),
    [(".*", ".*"), ("a, b", "a|b"), ("'a|b'", "a|b"), ('"a"', "a")],
)
def test_a_whitelist_is_one_java_pattern_with_commas_for_or(whitelist: str, pattern: str) -> None:
    assert loaded(import_mm1(CONSUMER, PRODUCER, {"include": whitelist})).flows["source->target"].topics == (pattern,)


def test_without_auto_offset_reset_it_starts_at_the_end(tmp_path) -> None:
    consumer = tmp_path / "consumer.properties"
    consumer.write_text("bootstrap.servers=old:9092\n", encoding="latin-1")
    imported = import_mm1(consumer, PRODUCER, {"whitelist": "a"})
    assert loaded(imported).flows["source->target"].topics_from == "latest"
    assert any("before MirrorMaker 1 is stopped" in note for note in imported.notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs its topics"),
        ({"whitelist": " "}, "needs its topics"),
        ({"whitelist": "a", "include": "b"}, "needs its topics"),
        ({"whitelist": "("}, "not a regular expression"),
    ],
)
def test_topics_are_needed_once_and_right(options: dict[str, str], message: str) -> None:
    with pytest.raises(ImportSourceError, match=message):
        import_mm1(CONSUMER, PRODUCER, options)


def test_an_old_consumer_has_no_brokers_to_ask(tmp_path) -> None:
    consumer = tmp_path / "consumer.properties"
    consumer.write_text("zookeeper.connect=zk:2181\n", encoding="latin-1")
    with pytest.raises(ImportSourceError, match=r"has no bootstrap\.servers"):
        import_mm1(consumer, PRODUCER, {"whitelist": "a"})


def test_two_clusters_need_two_names() -> None:
    with pytest.raises(ImportSourceError, match="two aliases"):
        import_mm1(CONSUMER, PRODUCER, {"whitelist": "a"}, source="x", target="x")


KEYS = st.sampled_from(
    ["group.id", "acks", "client.id", "fetch.max.bytes", "max.request.size", "auto.offset.reset", "sasl.password",
     "security.protocol", "key.serializer", "zookeeper.connect", "x.y", "retries", "linger.ms"]
)  # fmt: skip
FILES = st.dictionaries(KEYS, st.sampled_from(["1", "SSL", "latest", "all", "", "TOPSECRET"]))


@settings(max_examples=60)
@given(FILES, FILES, st.dictionaries(st.sampled_from(["num.streams", "x", "message.handler"]), st.just("2")))
def test_whatever_is_written_every_key_is_taken_or_left_out(tmp_path_factory, consumer, producer, options) -> None:
    paths, keys = [], []
    for name, content in (("consumer", consumer), ("producer", producer)):
        written = {"bootstrap.servers": f"{name}:9092", **content}
        path = tmp_path_factory.getbasetemp() / f"property-based-{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in written.items()), encoding="latin-1")
        paths.append(path)
        keys += written
    given_options = {"whitelist": ".*", **options}
    imported = import_mm1(paths[0], paths[1], given_options)
    assert_every_key_is_somewhere(imported, [*keys, *given_options])
    loaded(imported)
    assert "sasl.password: TOPSECRET" not in imported.topology_yaml
