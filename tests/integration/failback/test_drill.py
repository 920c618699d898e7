"""A drill on real clusters: shadow groups, real consumers, every record checked, and nothing of production touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from local.kafka import KafkaClusters
from support.failing_back import commit, committed, fail_back, fail_over, named, new_name, numbered, twin_of, write
from support.mirroring import NO_HEARTBEATS, Twins, twins
from support.silent import closed_port
from twinlog import cli
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.secrets import ResolvedSettings
from twinlog.errors import DrillError
from twinlog.operations.drill import Drill, DrillLimits
from twinlog.operations.recovery_series import RecoverySeries
from twinlog.operations.status import status


def groups_of(servers: str) -> set[str]:
    admin = AdminClient({"bootstrap.servers": servers})
    return {group.group_id for group in admin.list_consumer_groups().result().valid}


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path) -> Twins:
    topic = new_name()
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    made = twins(nyc, lon, tmp_path, (topic,), emit_checkpoints_enabled=True, recovery_time_seconds=60)
    made.create(topic, partitions=2)
    for partition in (0, 1):
        write(nyc, topic, numbered(f"a{partition}.", 50), partition)
    return made


def test_consumers_resume_on_shadow_groups_and_every_record_is_checked(flow: Twins) -> None:
    topic = flow.flow.topics[0]
    group, other = new_name("billing"), new_name("done")
    commit(flow.source_servers, group, topic, 30)
    commit(flow.source_servers, other, topic, 50)
    assert flow.mirror().failures == []
    before = groups_of(flow.target_servers)
    ends = flow.ends()
    drill = Drill(flow.topology, flow.flow, ends.source, ends.target, flow.ledger)

    result = drill.run()
    assert result.faults == ()
    assert {(row["group"], row["records"]) for row in result.groups} == {(group, 20), (other, 0)}
    assert (result.records, result.compared) == (20, 20)
    assert result.recovery_time_s is not None
    assert result.objectives.time.met is True
    assert groups_of(flow.target_servers) == before, "the shadow groups are gone, and no other was made"
    assert committed(flow.target_servers, group, flow.twin(topic)) < 0, "the group itself has no offset there"
    (kept,) = RecoverySeries(flow.ledger).events()
    assert (kept.kind, kept.groups, kept.groups_ready, kept.records_checked, kept.faults) == ("drill", 2, 2, 20, 0)
    (row,) = status(flow.topology, lambda _, side: getattr(ends, side)).flows
    assert row.objectives.time.measured_by == "drill"

    # The source is not asked for anything that a disaster would take away.
    gone = ClusterAccess(flow.flow.source, ResolvedSettings({"bootstrap.servers": closed_port()}))
    alone = Drill(flow.topology, flow.flow, gone, ends.target, flow.ledger).run(DrillLimits(groups=group, records=5))
    assert (alone.faults, alone.records, alone.compared) == ((), 5, 0)
    assert any("held against the ledger alone" in note for note in alone.notes)


def test_records_of_somebody_else_are_a_fault(flow: Twins, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topic = flow.flow.topics[0]
    commit(flow.source_servers, new_name("billing"), topic, 48)
    assert flow.mirror().failures == []
    write(flow.target_servers, flow.twin(topic), ["somebody else"])
    write(flow.source_servers, topic, ["more"])
    assert flow.mirror(tasks=1).recorded.records == 1

    file = tmp_path / "topology.yaml"
    clusters = {alias: {"bootstrap.servers": one.bootstrap_servers} for alias, one in flow.topology.clusters.items()}
    settings = {"topics": [topic], "replication.factor": 1, "journal.topic.replication.factor": 1, "lanes": 2}
    flows = {flow.flow.name: {**settings, **NO_HEARTBEATS}}
    file.write_text(yaml.safe_dump({"clusters": clusters, "flows": flows, "ledger": flow.topology.ledger}))
    assert cli.main(["--topology", str(file), "--json", "drill", flow.flow.name]) == 1
    said = json.loads(capsys.readouterr().out)
    assert [(fault["what"], fault["offset"]) for fault in said["faults"]] == [("foreign", 51)]
    assert said["records"] == 4


@pytest.mark.parametrize(
    "naming", ["prefixed", *(pytest.param(one, marks=pytest.mark.long) for one in ("identity", "custom"))]
)
def test_what_was_written_while_the_target_led_is_no_fault_afterwards(
    kafka_pair: KafkaClusters, tmp_path: Path, naming: str
) -> None:
    topic, group = new_name(), new_name("billing")
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    flow = twins(nyc, lon, tmp_path, (topic,), groups=(group,), emit_checkpoints_enabled=True, **named(naming))
    flow.create(topic)
    write(nyc, topic, numbered("a", 4))
    commit(nyc, group, topic, 2)
    assert flow.mirror().failures == []
    fail_over(flow)
    write(lon, twin_of(flow, topic), numbered("b", 3))
    rehearsed = Drill(flow.topology, flow.flow, flow.ends().source, flow.ends().target, flow.ledger).run()
    assert (rehearsed.groups, rehearsed.exit_code) == ((), 0), "there is nothing to rehearse"
    assert RecoverySeries(flow.ledger).events() == []
    fail_back(flow)
    write(nyc, topic, ["c"])
    assert flow.mirror().recorded.records == 1
    ends = flow.ends()
    result = Drill(flow.topology, flow.flow, ends.source, ends.target, flow.ledger).run()
    assert (result.faults, result.records) == ((), 6)

    # But what nobody brought and nobody took home is somebody else's.
    write(lon, twin_of(flow, topic), ["foreign"])
    write(nyc, topic, ["d"])
    assert flow.mirror().recorded.records == 1
    result = Drill(flow.topology, flow.flow, ends.source, ends.target, flow.ledger).run()
    assert [fault.what for fault in result.faults] == ["foreign"]


def test_a_flow_without_groups_has_nothing_to_rehearse_and_nothing_wrong(
    kafka_pair: KafkaClusters, tmp_path: Path
) -> None:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    topic, nobody = new_name(), new_name("nobody")
    flow = twins(nyc, lon, tmp_path, (topic,), groups=(nobody,), emit_checkpoints_enabled=True)
    flow.create(topic)
    assert flow.mirror().failures == []
    ends = flow.ends()
    result = Drill(flow.topology, flow.flow, ends.source, ends.target, flow.ledger).run()
    assert (result.exit_code, result.recovery_time_s, result.left_out) == (0, None, ())
    assert any("nobody's return was rehearsed" in note for note in result.notes)


def test_a_group_that_only_has_the_name_of_a_shadow_is_left_alone(flow: Twins) -> None:
    topic, group = flow.flow.topics[0], new_name("billing")
    commit(flow.source_servers, group, topic, 48)
    assert flow.mirror().failures == []
    commit(flow.target_servers, f"{group}.drill", flow.twin(topic), 7)
    ends = flow.ends()
    drill = Drill(flow.topology, flow.flow, ends.source, ends.target, flow.ledger)
    with pytest.raises(DrillError, match="somebody uses these names"):
        drill.run(DrillLimits(groups=group))
    assert committed(flow.target_servers, f"{group}.drill", flow.twin(topic)) == 7
