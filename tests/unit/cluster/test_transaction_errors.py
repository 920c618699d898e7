from __future__ import annotations

import pytest
from kafka import errors as kafka_errors
from kafka.protocol.producer import EndTxnRequest, InitProducerIdRequest

from twinlog.cluster.transaction_errors import Refusals
from twinlog.errors import FencedError

REFUSALS = Refusals("lon", "User:mirror", "twinlog.nyc->lon.3")
MOVED_ON = [
    kafka_errors.ProducerFencedError,
    kafka_errors.InvalidProducerEpochError,
    kafka_errors.InvalidProducerIdMappingError,
]


@pytest.mark.parametrize("error", MOVED_ON)
def test_whoever_may_not_open_again_has_a_successor(error: type[kafka_errors.BrokerResponseError]) -> None:
    with pytest.raises(FencedError, match=r"twinlog\.nyc->lon\.3: .*another writer has taken over$") as fenced:
        REFUSALS.check(error.errno, InitProducerIdRequest.name, None)
    assert not fenced.value.retriable


@pytest.mark.parametrize("error", MOVED_ON)
def test_in_a_transaction_it_may_have_been_the_time_out(error: type[kafka_errors.BrokerResponseError]) -> None:
    with pytest.raises(FencedError, match=r"outlived transaction\.timeout\.ms: raise it") as fenced:
        REFUSALS.check(error.errno, EndTxnRequest.name, None)
    assert fenced.value.retriable
