from __future__ import annotations

import pytest

from twinlog.airflow.connections import properties_of_extra
from twinlog.errors import SecretError


def test_the_extra_becomes_client_properties_in_kafkas_spelling() -> None:
    extra = '{"bootstrap.servers": "a:9092", "enable.auto.commit": false, "session.timeout.ms": 6000}'
    assert properties_of_extra("kafka_nyc", extra) == {
        "bootstrap.servers": "a:9092",
        "enable.auto.commit": "false",
        "session.timeout.ms": "6000",
    }


def test_an_empty_extra_has_no_properties() -> None:
    assert properties_of_extra("kafka_nyc", None) == {}


@pytest.mark.parametrize("extra", ["sasl.password=hunter2", '["hunter2"]', '"hunter2"'])
def test_an_extra_of_another_form_is_refused_without_showing_it(extra: str) -> None:
    with pytest.raises(SecretError, match=r"^The extra of the Airflow connection 'kafka_nyc' is not .*JSON") as caught:
        properties_of_extra("kafka_nyc", extra)
    assert "hunter2" not in str(caught.value)
