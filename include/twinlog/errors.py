"""Every error that Twinlog raises on purpose.

One tree. Each class says whether trying again can help (`retriable`) and which exit code the command line
answers with. The message names the cluster, topic, partition and offset it is about, what was expected, and what
to do; it never holds a secret.
"""

from __future__ import annotations


class TwinlogError(Exception):
    """The root: something is wrong and the message says what."""

    retriable = False
    exit_code = 1


class ConfigurationError(TwinlogError):
    """What people wrote cannot be used as it stands."""

    exit_code = 2


class TopologyError(ConfigurationError):
    """A topology file is wrong; the message names the file, the line and the key."""


class SettingError(ConfigurationError):
    """A value that a setting cannot take; whoever reads the file adds where it stands."""

    def __init__(self, problem: str, suggestion: str | None = None) -> None:
        super().__init__(f'{problem}; did you mean "{suggestion}"?' if suggestion else problem)


class ImportSourceError(ConfigurationError):
    """Another mirror's configuration file could not be read."""


class NoticeError(TwinlogError):
    """Somebody who was to be told could not be."""


class SecretError(ConfigurationError):
    """A secret stands where it must not, or could not be found where it was said to be."""


class ClusterError(TwinlogError):
    """A cluster refused, or answered what was not expected."""


class ClusterUnreachableError(ClusterError):
    """No broker of the cluster answered in time."""

    retriable = True
    exit_code = 3


class AuthenticationError(ClusterError):
    """The cluster answered, and did not accept who we are."""

    exit_code = 3


class NotAuthorizedError(ClusterError):
    """The cluster knows who we are and does not allow the operation."""


class JournalFormatError(TwinlogError):
    """A journal record is damaged, or of a version that this program does not know."""


class MirrorMakerFormatError(TwinlogError):
    """A record is none of MirrorMaker 2's, or of a version that this program does not know."""


class PositionFormatError(TwinlogError):
    """A committed offset of a flow's group does not hold a position."""


class FencedError(TwinlogError):
    """A later writer has taken this transactional id: this one must stop, and must not try again."""


class FencedOrTimedOutError(FencedError):
    """The transactional id's epoch has moved on: by a later writer, or by the broker, which rolls back a transaction
    that takes too long. Opening the id again, as who we were, is refused in the first case and not in the second."""

    retriable = True


class TransactionAbortedError(ClusterError):
    """A transaction could not be finished and was rolled back; the work starts again at the committed position."""

    retriable = True


class FlowStateError(TwinlogError):
    """A flow is not in the state that the operation needs."""


class CorruptBatchError(TwinlogError):
    """Record bytes that a source answered with are damaged; nothing of them was copied."""

    # Damage on the way is gone at the next fetch; damage in the source's log is not, and the retries run out.
    retriable = True


class BatchTooLargeError(TwinlogError):
    """One record alone is larger than the target accepts, so that no splitting can help."""


class JournalReadError(ClusterError):
    """The journal could not be read."""

    retriable = True


class JournalUnstableError(JournalReadError):
    """The journal has a transaction that is not decided yet."""


class JournalReplacedError(TwinlogError):
    """The journal is not the one that the ledger was recorded from."""


class LedgerError(TwinlogError):
    """The ledger's files do not fit together."""


class PartitionRefusedError(ClusterError):
    """One partition can't go on; the others can. `kind` says in one word why."""

    def __init__(self, partition: object, kind: str, message: str) -> None:
        super().__init__(message)
        self.partition = partition
        self.kind = kind


class SparkUnreachableError(TwinlogError):
    """The Spark that was to copy did not answer."""

    retriable = True
    exit_code = 3


class SparkFailedError(TwinlogError):
    """Spark took the work and did not finish it: it lost its server, its executors or its session."""

    retriable = True


class AdoptionError(TwinlogError):
    """Another mirror's copy can't be gone on with as it is."""


class CanaryError(TwinlogError):
    """Marked records did not arrive as they were sent."""


class DifferenceError(TwinlogError):
    """The two sides of a flow are not equal."""


class CopyIncompleteError(TwinlogError):
    """A run ended, and something that it should have copied was not."""


class DrillError(TwinlogError):
    """A drill could not be carried out, or its consumers could not read."""


class FailbackError(TwinlogError):
    """A failback could not go on; run again, it goes on where it stopped."""

    retriable = True


class ObjectiveMissedError(TwinlogError):
    """A flow's recovery point or time is worse than its settings ask for."""


def of_kind(kind: str, message: str) -> TwinlogError:
    """An error that was told by the name of its class in another process, of that class again."""
    found = globals().get(kind, TwinlogError)
    error: TwinlogError = found.__new__(found, message)
    return error
