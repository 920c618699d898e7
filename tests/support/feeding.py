"""Writes to a topic as its owners do: plain, in transactions and in transactions that are rolled back."""

from __future__ import annotations

import random
import uuid
from itertools import count

from confluent_kafka import Producer

from support.mirroring import producer

_SMALL_BATCHES = {"batch_num_messages": 20}
"""So that a few hundred records make enough batches for several transactions of the copier."""


class Feeder:
    """Every record's value is unique, so that one that is lost, doubled or out of place can't go unnoticed."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._numbers = count()
        self._plain = producer(servers, compression_type="lz4", **_SMALL_BATCHES)
        self._transactional = producer(servers, transactional_id=f"feeder-{uuid.uuid4().hex}", **_SMALL_BATCHES)
        self._transactional.init_transactions(30)

    def feed(self, seed: int, records: int) -> None:
        """About so many records, in a mixture that the seed decides; all of them are written when it returns."""
        chance = random.Random(seed)
        left = records
        while left > 0:
            size = min(left, chance.randint(20, 80))
            left -= size
            kind = chance.choice(("plain", "committed", "committed", "aborted"))
            if kind == "plain":
                self._write(self._plain, chance, size)
                continue
            self._transactional.begin_transaction()
            self._write(self._transactional, chance, size)
            if kind == "committed":
                self._transactional.commit_transaction(30)
            else:
                self._transactional.abort_transaction(30)

    def _write(self, writer: Producer, chance: random.Random, size: int) -> None:
        for number in [next(self._numbers) for _ in range(size)]:
            writer.produce(
                self._topic,
                f"value {number} ".encode() + b"." * chance.randint(0, 150),
                f"key {number % 7}" if chance.random() < 0.8 else None,
                partition=chance.randrange(self._partitions),
                headers=[("number", str(number))] if chance.random() < 0.2 else None,
            )
        # librdkafka clears a rolled-back transaction's queue: without this nothing of it would reach the log.
        assert writer.flush(30) == 0
