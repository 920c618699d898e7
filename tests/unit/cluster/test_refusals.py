from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.cluster.refusals import demand, portions, refusal, sentences
from twinlog.errors import ClusterError, NotAuthorizedError

DENIED, INVALID = refusal(29, "said by the broker"), refusal(40, "segment.bytes is too small")


def test_no_error_is_no_refusal() -> None:
    assert refusal(0, None) is None


def test_a_missing_permission_names_principal_operation_and_resources_in_one_sentence() -> None:
    assert DENIED is not None
    refused = {f"topic t{number}": DENIED for number in range(5)}

    assert list(sentences("lon", "User:mirror", "ALTER_CONFIGS", refused, "settings were not changed")) == [
        "cluster lon: User:mirror is not allowed ALTER_CONFIGS on topic t0, topic t1, topic t2 and 2 more, "
        "so settings were not changed"
    ]


def test_each_other_reason_is_said() -> None:
    assert DENIED is not None
    assert INVALID is not None
    said = list(sentences("lon", "User:mirror", "CREATE", {"topic a": INVALID, "topic b": DENIED}, "no"))

    assert said[0] == (
        "cluster lon: CREATE on topic a was refused with InvalidConfiguration (segment.bytes is too small), so no"
    )
    assert "User:mirror is not allowed" in said[1]


def test_what_is_demanded_is_raised_where_it_was_refused() -> None:
    assert DENIED is not None
    assert INVALID is not None
    demand("lon", "User:mirror", "WRITE", {}, "nothing is written")
    with pytest.raises(NotAuthorizedError, match="User:mirror is not allowed WRITE on topic a, so nothing is written"):
        demand("lon", "User:mirror", "WRITE", {"topic a": DENIED}, "nothing is written")
    with pytest.raises(ClusterError, match=r"segment\.bytes is too small") as refused:
        demand("lon", "User:mirror", "WRITE", {"topic a": INVALID}, "nothing is written")
    assert not isinstance(refused.value, NotAuthorizedError)


@given(st.lists(st.integers(1, 20)), st.integers(1, 30))
def test_portions_keep_the_order_and_the_limit(weights: list[int], most: int) -> None:
    cut = list(portions(weights, lambda weight: weight, most))

    assert [weight for portion in cut for weight in portion] == weights
    assert all(sum(portion) <= most or len(portion) == 1 for portion in cut)
