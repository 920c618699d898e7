"""A source that comes back with a broker missing, and with what an unclean election left of it."""

from __future__ import annotations

from pathlib import Path

from local.kafka import KafkaCluster, KafkaClusters
from support.brokers import left_whole, replicas_of
from support.failing_back import fail_back, fail_over, failback_of, new_name, numbered, plan_of, values_of, write
from support.mirroring import create_topic, twins
from support.waiting import await_condition
from twinlog.cluster.copy_order import carry_out_here
from twinlog.model.flow_state import State


def test_it_begins_only_with_all_brokers_or_by_an_override_and_tells_a_log_that_was_cut(
    three: KafkaCluster, kafka_pair: KafkaClusters, tmp_path: Path
) -> None:
    topic = new_name()
    flow = twins(three.bootstrap_servers, kafka_pair["lon"].bootstrap_servers, tmp_path, (topic,))
    unclean = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    create_topic(three.bootstrap_servers, topic, 1, unclean, replicas=2)
    write(three.bootstrap_servers, topic, numbered("a", 5))
    whole = [*numbered("a", 5), *numbered("cut", 5)]
    with left_whole(three):
        leader, follower = replicas_of(three, topic)
        three.stop_broker(follower)
        write(three.bootstrap_servers, topic, numbered("cut", 5))
        assert flow.mirror().recorded.records == len(whole)
        fail_over(flow)
        write(flow.target_servers, flow.twin(topic), ["b"])
        three.kill_broker(leader)
        three.restart_broker(follower)
        await_condition(lambda: replicas_of(three, topic)[0] == follower, "the follower leads", timeout_s=60)
        # Beyond the position, so that the log's length alone does not tell.
        write(three.bootstrap_servers, topic, numbered("zombie", 9))

        plan = plan_of(flow, rebuild_damaged=True)
        assert any(f"brokers {leader} have not come back; 2 are there" in problem for problem in plan.refused)
        assert any("replicas that are not in sync yet" in problem and topic in problem for problem in plan.refused)
        assert failback_of(flow).carry_out(plan, carry_out_here, tasks=1).done == ()
        override = plan_of(flow, rebuild_damaged=True, accept_degraded=True)
        assert (override.refused, len(override.health)) == ((), 2)
    await_condition(lambda: not plan_of(flow, rebuild_damaged=True).refused, "every replica is in sync")

    (problem, _) = plan_of(flow).refused
    assert f"{topic}-0 has lost records that had been mirrored: up to offset 10 was mirrored" in problem
    assert flow.record().state is State.FAILED_OVER
    fail_back(flow, rebuild_damaged=True)
    assert values_of(three.bootstrap_servers, topic) == [*whole, "b"]
    assert flow.mirror().recorded.records == 0
