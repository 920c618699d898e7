"""Every error that Twinlog raises on purpose.

One tree. Each class says whether trying again can help (`retriable`), which exit code the command line answers with,
and as what metrics count it (`counted_as`). The message names the cluster, topic, partition and offset it is about,
what was expected, and what to do; it never holds a secret.
"""

from __future__ import annotations

from enum import StrEnum


class ErrorKind(StrEnum):
    """As what an error is counted: few enough for an alert each."""

    CONFIGURATION = "configuration"
    UNREACHABLE = "unreachable"
    """A cluster did not answer."""
    NOT_AUTHENTICATED = "not_authenticated"
    NOT_ALLOWED = "not_allowed"
    REFUSED = "refused"
    """A cluster answered, and did not do what was asked."""
    FENCED = "fenced"
    """A later writer has taken over."""
    STATE = "state"
    """The flow, or one of its clusters, is not as the operation needs it."""
    DATA = "data"
    """Bytes that can't be read, or be copied as they are."""
    LEDGER = "ledger"
    """The ledger or the journal."""
    SPARK = "spark"
    FOUND = "found"
    """The work was done, and what it was to find out is that something is wrong."""
    OTHER = "other"
    FAULT = "fault"
    """None that is raised on purpose."""


class TwinlogError(Exception):
    """The root: something is wrong and the message says what."""

    retriable = False
    exit_code = 1
    counted_as = ErrorKind.OTHER


class ConfigurationError(TwinlogError):
    """What people wrote cannot be used as it stands."""

    exit_code = 2
    counted_as = ErrorKind.CONFIGURATION


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

    counted_as = ErrorKind.REFUSED


class ClusterUnreachableError(ClusterError):
    """No broker of the cluster answered in time."""

    retriable = True
    exit_code = 3
    counted_as = ErrorKind.UNREACHABLE


class AuthenticationError(ClusterError):
    """The cluster answered, and did not accept who we are."""

    exit_code = 3
    counted_as = ErrorKind.NOT_AUTHENTICATED


class NotAuthorizedError(ClusterError):
    """The cluster knows who we are and does not allow the operation."""

    counted_as = ErrorKind.NOT_ALLOWED


class JournalFormatError(TwinlogError):
    """A journal record is damaged, or of a version that this program does not know."""

    counted_as = ErrorKind.LEDGER


class MirrorMakerFormatError(TwinlogError):
    """A record is none of MirrorMaker 2's, or of a version that this program does not know."""

    counted_as = ErrorKind.DATA


class PositionFormatError(TwinlogError):
    """A committed offset of a flow's group does not hold a position."""

    counted_as = ErrorKind.DATA


class FencedError(TwinlogError):
    """A later writer has taken this transactional id: this one must stop, and must not try again."""

    counted_as = ErrorKind.FENCED


class FencedOrTimedOutError(FencedError):
    """The transactional id's epoch has moved on: by a later writer, or by the broker, which rolls back a transaction
    that takes too long. Opening the id again, as who we were, is refused in the first case and not in the second."""

    retriable = True


class TransactionAbortedError(ClusterError):
    """A transaction could not be finished and was rolled back; the work starts again at the committed position."""

    retriable = True


class FlowStateError(TwinlogError):
    """A flow is not in the state that the operation needs."""

    counted_as = ErrorKind.STATE


class CorruptBatchError(TwinlogError):
    """Record bytes that a source answered with are damaged; nothing of them was copied."""

    # Damage on the way is gone at the next fetch; damage in the source's log is not, and the retries run out.
    retriable = True
    counted_as = ErrorKind.DATA


class BatchTooLargeError(TwinlogError):
    """One record alone is larger than the target accepts, so that no splitting can help."""

    counted_as = ErrorKind.DATA


class JournalReadError(ClusterError):
    """The journal could not be read."""

    retriable = True
    counted_as = ErrorKind.LEDGER


class JournalUnstableError(JournalReadError):
    """The journal has a transaction that is not decided yet."""


class JournalReplacedError(TwinlogError):
    """The journal is not the one that the ledger was recorded from."""

    counted_as = ErrorKind.LEDGER


class LedgerError(TwinlogError):
    """The ledger's files do not fit together."""

    counted_as = ErrorKind.LEDGER


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
    counted_as = ErrorKind.SPARK


class SparkFailedError(TwinlogError):
    """Spark took the work and did not finish it: it lost its server, its executors or its session."""

    retriable = True
    counted_as = ErrorKind.SPARK


class AdoptionError(TwinlogError):
    """Another mirror's copy can't be gone on with as it is."""

    counted_as = ErrorKind.STATE


class CanaryError(TwinlogError):
    """Marked records did not arrive as they were sent."""

    counted_as = ErrorKind.FOUND


class DifferenceError(TwinlogError):
    """The two sides of a flow are not equal."""

    counted_as = ErrorKind.FOUND


class CopyIncompleteError(TwinlogError):
    """A run ended, and something that it should have copied was not."""

    counted_as = ErrorKind.FOUND


class DrillError(TwinlogError):
    """A drill could not be carried out, or its consumers could not read."""

    counted_as = ErrorKind.FOUND


class FailbackError(TwinlogError):
    """A failback could not go on; run again, it goes on where it stopped."""

    retriable = True
    counted_as = ErrorKind.STATE


class RepairError(TwinlogError):
    """A repair could not go on; run again, it goes on where it stopped."""

    retriable = True


class TakeoverError(TwinlogError):
    """Something of a takeover was refused; run again, it goes on where it stopped."""

    retriable = True
    counted_as = ErrorKind.REFUSED


class ObjectiveMissedError(TwinlogError):
    """A flow's recovery point or time is worse than its settings ask for."""

    counted_as = ErrorKind.FOUND


def kind_of(error: BaseException) -> ErrorKind:
    """As what an error is counted, whoever raised it."""
    return error.counted_as if isinstance(error, TwinlogError) else ErrorKind.FAULT


def of_kind(kind: str, message: str) -> TwinlogError:
    """An error that was told by the name of its class in another process, of that class again."""
    found = globals().get(kind, TwinlogError)
    error: TwinlogError = found.__new__(found, message)
    return error
