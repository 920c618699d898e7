"""What the exact writer says of a cluster that does not take its records."""

from __future__ import annotations

import time

import pytest

from support.silent import closed_port
from support.waiting import NOT_HUNG_S
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.exact_writer import ExactWriter, RecordToWrite
from twinlog.cluster.secrets import ResolvedSettings
from twinlog.errors import ClusterUnreachableError, ConfigurationError
from twinlog.model.offsets import TopicPartition

RECORD = RecordToWrite(TopicPartition("t", 0), b"key", b"value", (("header", None),), 0)


def writer() -> ExactWriter:
    return ClusterAccess("nyc", ResolvedSettings({"bootstrap.servers": closed_port()})).exact_writer()


def test_a_cluster_that_is_down_is_named_within_the_time() -> None:
    begun = time.monotonic()
    with pytest.raises(ClusterUnreachableError, match=r"cluster nyc .* 3 records were not written within 1 s"):
        writer().write([RECORD] * 3, 1.0)
    assert time.monotonic() - begun < NOT_HUNG_S


def test_more_than_fits_the_queue_waits_for_room_and_not_for_ever() -> None:
    with pytest.raises(ClusterUnreachableError, match="records were not written within 1 s"):
        writer().write([RECORD] * 100_100, 1.0)


def test_settings_that_librdkafka_refuses_are_said() -> None:
    with pytest.raises(ConfigurationError, match="cluster nyc: librdkafka does not take these settings"):
        ExactWriter("nyc", {"bootstrap.servers": "localhost:1", "no.such.setting": "1"})
