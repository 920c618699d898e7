"""What groups read in tests: topics with transactions and gaps in them, and all that readers see of a topic."""

from __future__ import annotations

from collections import Counter

from support.groups import Value
from support.mirroring import Twins
from support.reading import read_committed
from support.source_logs import fill, interleave


def all_of(servers: str, topic: str) -> Counter[Value]:
    return Counter(
        (number, seen.value or b"") for number, records in read_committed(servers, topic).items() for seen in records
    )


def filled(flow: Twins, topic: str, partitions: int = 3) -> None:
    """Several partitions, with transactions, some of them rolled back, among plain records."""
    flow.create(topic, partitions)
    for number in range(partitions):
        fill(flow.source_servers, topic, [f"{number}: {value}" for value in range(40)], number, batch_num_messages=7)
        interleave(flow.source_servers, topic, rounds=2, partition=number)
