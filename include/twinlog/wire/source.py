"""Where bytes came from: every error of this package names cluster, topic, partition and offset."""

from __future__ import annotations

from typing import NamedTuple

from twinlog.errors import CorruptBatchError


class SourcePartition(NamedTuple):
    """One partition of a topic on the cluster that the bytes were fetched from."""

    cluster: str
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"cluster {self.cluster}, topic {self.topic}, partition {self.partition}"


def corrupt(source: SourcePartition, offset: int, problem: str) -> CorruptBatchError:
    """The error for damaged bytes at an offset; the caller raises it."""
    return CorruptBatchError(
        f"{source}, offset {offset}: {problem}. Nothing was copied from there on; if fetching again does not "
        "help, check that partition's log on the source's brokers"
    )
