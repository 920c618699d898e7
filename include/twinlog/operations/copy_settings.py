"""A flow's settings and its clients' as the copier takes them."""

from __future__ import annotations

from collections.abc import Mapping

from twinlog.cluster.copier import CopySettings
from twinlog.cluster.lane import MOST_IN_FLIGHT
from twinlog.cluster.source_partition import FetchSettings, Patience
from twinlog.errors import ConfigurationError
from twinlog.model.flow_state import Holder
from twinlog.model.topology import Flow


def copy_settings(
    flow: Flow,
    holder: Holder,
    *,
    lanes: int,
    reading: Mapping[str, str],
    writing: Mapping[str, str],
    budget_s: float,
    task: int,
    throttle_shares: Mapping[int, float],
    sole_writer: bool,
) -> CopySettings:
    """What one task of a run is told; the client properties are honoured under Kafka's own names."""
    in_flight = int(writing["max.in.flight.requests.per.connection"])
    if not 1 <= in_flight <= MOST_IN_FLIGHT:
        raise ConfigurationError(
            f"flow {flow.name}: max.in.flight.requests.per.connection is {in_flight}; with transactions it must lie "
            f"between 1 and {MOST_IN_FLIGHT}"
        )
    return CopySettings(
        flow=flow.name,
        source=flow.source,
        target=flow.target,
        run=holder.run,
        owner=holder.owner,
        lanes=lanes,
        transaction_bytes=flow.transaction_bytes,
        transaction_s=flow.transaction_seconds,
        transaction_timeout_ms=int(writing["transaction.timeout.ms"]),
        retries=int(writing["retries"]),
        retry_backoff_s=int(writing["retry.backoff.ms"]) / 1000,
        retry_backoff_max_s=int(writing["retry.backoff.max.ms"]) / 1000,
        in_flight=in_flight,
        max_request_bytes=int(writing["max.request.size"]),
        budget_s=budget_s,
        task=task,
        throttle_shares=throttle_shares,
        sole_writer=sole_writer,
        fetch=FetchSettings(
            max_bytes=int(reading["fetch.max.bytes"]),
            min_bytes=int(reading["fetch.min.bytes"]),
            max_wait_ms=int(reading["fetch.max.wait.ms"]),
            partition_max_bytes=int(reading["max.partition.fetch.bytes"]),
            rack=reading.get("client.rack", ""),
            patience=Patience(
                int(reading["retries"]),
                int(reading["retry.backoff.ms"]) / 1000,
                int(reading["retry.backoff.max.ms"]) / 1000,
            ),
        ),
    )
