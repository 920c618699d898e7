from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.producer import ProduceRequest

from twinlog.cluster.produce_request import VERSION, ProduceBatches
from twinlog.model.offsets import TopicPartition

partitions = st.builds(TopicPartition, st.sampled_from(["orders", "a" * 200, "zürich"]), st.integers(0, 2**31 - 1))
batches = st.dictionaries(partitions, st.lists(st.binary(max_size=300), max_size=3), max_size=6)


def of_the_library(transactional_id: str | None, written: dict[TopicPartition, list[bytes]]) -> bytes:
    data = ProduceRequest.TopicProduceData
    topics = sorted({partition.topic for partition in written})
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=60_000,
        topic_data=[
            data(
                name=topic,
                partition_data=[
                    data.PartitionProduceData(
                        index=partition.partition, records=b"".join(written[partition]), version=VERSION
                    )
                    for partition in sorted(written)
                    if partition.topic == topic
                ],
                version=VERSION,
            )
            for topic in topics
        ],
        version=VERSION,
    )
    request.with_header(correlation_id=7, client_id="twinlog")
    return bytes(request.encode(framed=True, header=True))


@given(st.sampled_from(["twinlog.nyc->lon.3", None]), batches)
def test_the_bytes_are_those_that_the_library_would_send(
    transactional_id: str | None, written: dict[TopicPartition, list[bytes]]
) -> None:
    request = ProduceBatches(transactional_id, 60_000, written)
    request.with_header(correlation_id=7, client_id="twinlog")

    assert request.encode(framed=True, header=True) == of_the_library(transactional_id, written)


def test_a_request_without_a_header_is_not_sent() -> None:
    with pytest.raises(ValueError, match="header"):
        ProduceBatches("id", 1, {}).encode(framed=True, header=True)
