"""How far a source partition has been read, what waits to be taken of it, and the Fetch that asks for more."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from kafka.protocol.consumer import FetchRequest

from twinlog.cluster.fetch_request import Wanted, fetch_request
from twinlog.model.offsets import PartitionPair, Span
from twinlog.model.positions import NO_LEADER_EPOCH
from twinlog.wire.outgoing import NO_GAPS, Gaps, OutgoingBatch


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on asking what gives no answer: the waits grow up to a longest one, and end after so many."""

    retries: int = 30
    backoff_s: float = 0.1
    backoff_max_s: float = 1.0

    def pause_s(self, failures: int) -> float:
        """The wait after so many failures in a row."""
        # Bounded before it is doubled: a number with a thousand digits is no time to wait.
        doublings = min(max(failures - 1, 0), 30)
        return min(self.backoff_s * (1 << doublings), self.backoff_max_s)


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """The consumer settings that a reader honours, under Kafka's own names."""

    max_bytes: int = 50 * 1024 * 1024
    min_bytes: int = 1
    max_wait_ms: int = 500
    partition_max_bytes: int = 1024 * 1024
    rack: str = ""
    read_ahead_bytes: int = 64 * 1024 * 1024
    """For all lanes of a task together: what was fetched and is not on the target yet."""
    patience: Patience = Patience()


@dataclass(frozen=True, slots=True)
class Parcel:
    """A batch to send, and the source position once it is sent. Without a batch: offsets that were passed over."""

    batch: OutgoingBatch | None
    end: int
    leader_epoch: int
    """That the source batch was written in."""
    trailing: Gaps = NO_GAPS


@dataclass(slots=True)
class SourcePartitionState:
    """How far one partition has been read, and what waits to be taken."""

    pair: PartitionPair
    at: int
    end: int
    max_batch_bytes: int
    last_epoch: int
    """The leader epoch of the batch that ends at `at`; NO_LEADER_EPOCH where it is not known."""
    broker: int | None = None
    """Whom to ask: the leader, or the replica that it named because it is nearer."""
    at_follower: bool = False
    leader_epoch: int = NO_LEADER_EPOCH
    parcels: deque[Parcel] = field(default_factory=deque)
    held_bytes: int = 0
    """Of batches that wait, and of those that were taken and are not done with."""
    turn: int = 0
    """Which of the Fetches in flight to its broker asks for it."""
    damaged: int = 0
    failures: int = 0
    """In a row: how often no broker led it, or the one that did gave no answer."""
    refused: bool = False
    returned: deque[Span] = field(default_factory=deque)
    """What came from the target in the first place, in order; never fetched."""

    def __post_init__(self) -> None:
        self._pass_over_returned()

    @property
    def exhausted(self) -> bool:
        """Nothing is left to fetch; parcels may still wait."""
        return self.refused or self.at >= self.end

    @property
    def stop(self) -> int:
        """Where fetching pauses: at the range's end, or before what is not sent back."""
        return min(self.returned[0].start, self.end) if self.returned else self.end

    def lose_broker(self) -> None:
        """Nobody is to be asked until it is known again who leads."""
        self.broker = None
        self.failures += 1

    def read_to(self, at: int, epoch: int) -> None:
        """Everything before `at` is among the parcels; the batch that ends there was written in `epoch`."""
        self.failures = 0
        self.at, self.last_epoch = at, epoch
        self._pass_over_returned()

    def _pass_over_returned(self) -> None:
        while self.returned and self.returned[0].start <= self.at < self.end:
            end = min(self.returned[0].end, self.end)
            self.returned.popleft()
            if end > self.at:
                # The epoch of what was not read is not known, and what is not known can't be compared.
                self.parcels.append(Parcel(None, end, NO_LEADER_EPOCH, Gaps(filtered=end - self.at)))
                self.at, self.last_epoch = end, NO_LEADER_EPOCH


def fetch_from(
    wanted: Iterable[SourcePartitionState], settings: FetchSettings, version: int, max_bytes: int
) -> FetchRequest:
    """Ask for all of them at once; the broker fills its answer in this order, as far as there is room."""
    return fetch_request(
        (
            Wanted(
                state.pair.source,
                state.at,
                settings.partition_max_bytes,
                state.pair.source_topic_id,
                state.leader_epoch,
                state.last_epoch,
            )
            for state in wanted
        ),
        max_bytes=max_bytes,
        max_wait_ms=settings.max_wait_ms,
        min_bytes=settings.min_bytes,
        version=version,
        rack=settings.rack,
    )
