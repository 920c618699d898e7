"""A source topic with a random life: what is written to it, transactions and their ends, what is deleted, and what its
settings remove meanwhile. The same seed lives the same life, but for the time that brokers take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from random import Random

from confluent_kafka import Producer

from support.ledger_check import log_ends
from support.mirroring import producer
from support.source_logs import delete_records, transactional

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
POLICIES = ("delete", "delete", "compact", "compact,delete")
SHORT_MS = 3_000
SMALL_SEGMENTS = {"segment.ms": "300", "file.delete.delay.ms": "100"}
CLEANED_OFTEN = {
    "min.cleanable.dirty.ratio": "0.001",
    "max.compaction.lag.ms": "100",
    "delete.retention.ms": "500",
}


@dataclass
class RandomLog:
    """One topic on the source."""

    topic: str
    seed: int
    random: Random = field(init=False)
    settings: dict[str, str] = field(init=False)
    written: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        policy = self.random.choice(POLICIES)
        self.settings = {"cleanup.policy": policy, **SMALL_SEGMENTS}
        if "compact" in policy:
            self.settings |= CLEANED_OFTEN
        if "delete" in policy and self.random.random() < 0.4:
            self.settings["retention.ms"] = str(SHORT_MS)
        if self.random.random() < 0.25:
            self.settings["message.timestamp.type"] = "LogAppendTime"

    @property
    def compacted(self) -> bool:
        return "compact" in self.settings["cleanup.policy"]

    @property
    def keeps_all(self) -> bool:
        """Whether nothing goes but what somebody deletes."""
        return not self.compacted and "retention.ms" not in self.settings

    def live(self, servers: str) -> None:
        """Something happens to it."""
        for _ in range(self.random.randrange(1, 4)):
            step = self.random.choices((self._write, self._transactions, self._delete), (4, 2, 1))[0]
            step(servers)

    def _write(self, servers: str) -> None:
        writer = producer(
            servers,
            compression_type=self.random.choice(CODECS),
            batch_num_messages=self.random.choice((1, 3, 20, 1000)),
            linger_ms=5,
            enable_idempotence=self.random.random() < 0.5,
        )
        self._records(writer, self.random.randrange(1, 60))
        assert writer.flush(30) == 0

    def _transactions(self, servers: str) -> None:
        writer = transactional(servers, compression_type=self.random.choice(CODECS))
        for _ in range(self.random.randrange(1, 3)):
            writer.begin_transaction()
            self._records(writer, self.random.randrange(1, 15))
            writer.flush(30)
            if self.random.random() < 0.4:
                writer.abort_transaction(30)
            else:
                writer.commit_transaction(30)

    def _delete(self, servers: str) -> None:
        """Somebody deletes from the start of the log, which a compacted one does not allow."""
        if self.compacted:
            return
        end = log_ends(servers, self.topic)[0]
        delete_records(servers, self.topic, self.random.randrange(end + 1))

    def _records(self, writer: Producer, count: int) -> None:
        chance = self.random
        for _ in range(count):
            self.written += 1
            key = f"key {chance.randrange(12)}" if self.compacted or chance.random() < 0.7 else None
            value = (
                None if key and chance.random() < 0.1 else f"{self.seed}/{self.written} " + "x" * chance.randrange(200)
            )
            headers = [("a", b"1"), ("a", None)] if chance.random() < 0.2 else []
            ago_ms = chance.choice((0, 0, 1_000, 10_000))
            writer.produce(
                self.topic, value, key, headers=headers, timestamp=int(time.time() * 1000) - ago_ms, partition=0
            )


def killed_attempt(servers: str, topic: str, random: Random) -> None:
    """What a run that was struck leaves on the target: records that were rolled back, and their marker."""
    writer = transactional(servers)
    writer.begin_transaction()
    for number in range(random.randrange(1, 9)):
        writer.produce(topic, f"never seen {number}", "key 0")
    writer.flush(30)
    writer.abort_transaction(30)
