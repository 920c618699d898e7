from __future__ import annotations

from twinlog.ledger import barrier
from twinlog.model.offsets import TopicPartition


def test_the_three_steps_are_taken_in_order_and_the_journal_is_read_to_the_marks() -> None:
    steps: list[str] = []

    def data_ends() -> dict[TopicPartition, int]:
        steps.append("data")
        return {TopicPartition("nyc.orders", 0): 7}

    def journal_ends() -> dict[int, int]:
        steps.append("journal")
        return {0: 3}

    proven = barrier.behind(data_ends, journal_ends, lambda ends: steps.append("read") or dict(ends))
    assert steps == ["data", "journal", "read"]
    assert proven.read == proven.journal_ends == {0: 3}
    assert proven.data_ends == {TopicPartition("nyc.orders", 0): 7}
