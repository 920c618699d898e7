from __future__ import annotations

import json

from twinlog.model.flow import Flow
from twinlog.model.naming import policy_of
from twinlog.model.schemas import SchemaId, Schemas, conflicts, id_of, ids_in, read_schemas
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Cluster, Topology


def record(subject: str, version: int, number: int, schema: str = "{}", **more: object) -> tuple[bytes, bytes]:
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    return json.dumps(key).encode(), json.dumps({"id": number, "schema": schema, **more}).encode()


def test_the_last_record_of_a_version_counts_and_other_records_do_not() -> None:
    found = read_schemas(
        [
            (b'{"keytype":"NOOP","magic":0}', None),
            (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}'),
            (None, b"?"),
            (b"no json", b"?"),
            record("orders", 1, 1, "a"),
            record("orders", 1, 1, "b", deleted=True),
            record("gone", 1, 2),
            (record("gone", 1, 2)[0], None),
            record(":.emea:orders", 1, 1, "c", schemaType="JSON"),
        ]
    )
    assert {str(place): one.schema for place, one in found.ids.items()} == {"1": "b", "1 of context .emea": "c"}
    assert found.ids[SchemaId(".emea", 1)].schema_type == "JSON"


def test_one_id_for_two_schemas_and_one_version_under_two_ids_are_conflicts() -> None:
    here = read_schemas([record("a", 1, 1, "x"), record("b", 1, 2, "y"), record("c", 1, 3, "z")])
    there = read_schemas([record("a", 1, 1, "x"), record("d", 1, 2, "other"), record("c", 1, 4, "z")])
    first, second = conflicts(here, there)
    assert (first.what, str(first.here), str(first.there)) == (
        "schema id 2",
        "subject b version 1",
        "subject d version 1",
    )
    assert "id 3 on the one side and 4 on the other" in second.what
    assert list(conflicts(here, here)) == []
    assert list(conflicts(here, Schemas({}))) == []


def test_ids_are_read_where_every_value_begins_with_one() -> None:
    assert id_of(b"\x00\x00\x00\x01\x00rest") == 256
    assert id_of(b"\x01\x00\x00\x01\x00") is id_of(b"\x00\x00") is id_of(None) is None
    framed = b"\x00\x00\x00\x00\x05."
    assert ids_in([framed, None, framed]) == {5: 2}
    assert ids_in([framed, b"plain"]) == {}
    assert ids_in([b"\x00\x00\x00\x00\x00\x00\x00\x09"]) == {}, "a long number is none"


def test_the_registrys_topic_keeps_its_name_and_is_taken_whatever_topics_says() -> None:
    flow = Flow("nyc", "lon", topics=("orders",), schemas_topic="_schemas")
    policy = policy_of(flow)
    assert (policy.target_name("_schemas"), policy.source_name("_schemas")) == ("_schemas", "_schemas")
    assert (policy.target_name("orders"), policy.source_name("nyc._schemas")) == ("nyc.orders", None)
    clusters = {name: Cluster(name, f"{name}:1") for name in ("nyc", "lon")}
    selection = TopicSelection(Topology(clusters, {flow.name: flow}), flow)
    assert selection.left_out("_schemas") is None
    assert selection.left_out("_other") is not None
