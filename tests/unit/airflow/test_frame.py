from __future__ import annotations

import pytest

from twinlog.airflow.frame import retry_policy
from twinlog.errors import ClusterUnreachableError, SparkFailedError, SparkUnreachableError, TopologyError


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (ClusterUnreachableError("lon is away"), "retry"),
        (SparkUnreachableError("the server is away"), "retry"),
        (SparkFailedError("the server went away"), "retry"),
        (TopologyError("line 3"), "fail"),
        (ValueError("a mistake of ours"), "fail"),
    ],
)
def test_only_what_can_pass_is_tried_again(error: Exception, action: str) -> None:
    assert retry_policy().evaluate(error, try_number=1, max_tries=3).action.value == action
