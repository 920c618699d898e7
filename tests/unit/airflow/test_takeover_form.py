from __future__ import annotations

from typing import Any

import pytest

from twinlog.airflow.takeover_form import asked_request, failover_params, switchover_params
from twinlog.errors import ConfigurationError
from twinlog.model.takeover import Request, Strategy


def filled_in(**values: Any) -> dict[str, Any]:
    return {name: param.value for name, param in failover_params().items()} | values


def test_a_form_that_is_left_as_it_is_moves_all_groups_to_where_they_stopped() -> None:
    assert asked_request(filled_in()) == Request()


def test_what_is_filled_in_is_what_is_asked_for() -> None:
    form = filled_in(
        strategy="timestamp",
        group_strategies=["billing-.*=earliest", "a=b=latest"],
        at="2026-01-31T12:00:00Z",
        margin=2.5,
        groups=".*",
        over_own_positions=True,
    )
    assert asked_request(form) == Request(
        Strategy.TIMESTAMP,
        (("billing-.*", Strategy.EARLIEST), ("a=b", Strategy.LATEST)),
        1_769_860_800_000,
        2_500,
        ".*",
        over_own_positions=True,
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"group_strategies": ["billing=soon"]}, 'group_strategies: expected a pattern, "="'),
        ({"groups": "("}, "no pattern of group names"),
        ({"strategy": "timestamp"}, "needs a time"),
        ({"at": "2026-01-31T12:00:00Z"}, "is for the strategy timestamp"),
    ],
)
def test_what_can_t_be_meant_is_told(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        asked_request(filled_in(**wrong))


def test_every_field_that_both_verbs_share_is_the_same() -> None:
    both = failover_params().keys() & switchover_params().keys()
    assert both == {"strategy", "group_strategies", "at", "margin", "groups", "over_own_positions"}
