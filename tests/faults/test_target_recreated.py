"""The target topic is deleted between runs: what comes in its place is filled from the beginning."""

from __future__ import annotations

import pytest

from support.feeding import Feeder
from support.ledger_check import await_settled, check_twins
from support.mirroring import Twins, create_topic
from support.source_logs import delete_topic


@pytest.mark.parametrize("made_by", ["the run", "somebody else"])
def test_the_new_topic_is_filled_from_the_beginning(flow: Twins, topic: str, feeder: Feeder, made_by: str) -> None:
    flow.mirror()
    earlier = check_twins(flow, topic)
    partitions = len(flow.read_target(topic))

    delete_topic(flow.target_servers, flow.twin(topic))
    if made_by == "somebody else":
        create_topic(flow.target_servers, flow.twin(topic), partitions, {})
    feeder.feed(8, 100)
    await_settled(flow.source_servers, topic)
    result = flow.mirror()

    assert check_twins(flow, topic) == result.recorded.records > earlier
