"""The form of a takeover: where groups go on, and what each verb asks for beside that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

from twinlog.airflow.params import moment_ms, moment_param
from twinlog.errors import ConfigurationError

if TYPE_CHECKING:
    from twinlog.model.takeover import Request

STRATEGY = "strategy"
GROUP_STRATEGIES = "group_strategies"
AT = "at"
MARGIN = "margin"
GROUPS = "groups"
OVER_OWN = "over_own_positions"
SOURCE_TIMEOUT = "source_timeout"
TIMEOUT = "timeout"
BLOCK_WRITES = "block_writes"

_STRATEGIES = ["translated", "timestamp", "earliest", "latest"]


def start_params() -> dict[str, Param]:
    """Where groups go on."""
    return {
        STRATEGY: Param(
            "translated",
            type="string",
            enum=_STRATEGIES,
            title="Where groups go on",
            description="translated: at the record where they stopped on the source. timestamp: at the first record of "
            "a time. earliest, latest: at the first record that the target has, or behind the last.",
        ),
        GROUP_STRATEGIES: Param(
            None,
            type=["null", "array"],
            items={"type": "string", "pattern": f"^.+=({'|'.join(_STRATEGIES)})$"},
            title="Other strategies for some groups",
            description="One a line, a pattern of group names and a strategy: billing-.*=earliest. The first that "
            "matches holds.",
        ),
        AT: moment_param("At this time", "For timestamp: groups go on at the first record of this time or later."),
        MARGIN: Param(
            0,
            type="number",
            minimum=0,
            maximum=86_400,
            title="Margin (seconds)",
            description="For timestamp: so much before that time, since clocks differ and stamps are not in order.",
        ),
        GROUPS: Param(
            None,
            type=["null", "string"],
            title="Only these groups",
            description="A pattern; only groups whose whole name matches it are moved.",
        ),
        OVER_OWN: Param(
            False,
            type="boolean",
            title="Over own positions",
            description="Also move a group that has made a newer position on the target itself; it reads again.",
        ),
    }


def failover_params() -> dict[str, Param]:
    """The fields of a failover."""
    return {
        **start_params(),
        SOURCE_TIMEOUT: Param(
            10,
            type="number",
            exclusiveMinimum=0,
            maximum=600,
            title="Time for the source (seconds)",
            description="How long the source is given to say what it still can. What it does not say by then is told "
            "by what is on the target.",
        ),
    }


def switchover_params() -> dict[str, Param]:
    """The fields of a switchover."""
    return {
        **start_params(),
        BLOCK_WRITES: Param(
            False,
            type="boolean",
            title="Block writes on the source",
            description="ACLs deny writing to the source's topics to everybody but Twinlog. Otherwise stop the "
            "producers before you approve the plan; while somebody writes the two sides do not become equal.",
        ),
        TIMEOUT: Param(
            600,
            type="number",
            exclusiveMinimum=0,
            maximum=6 * 3600,
            title="Time to become equal (seconds)",
            description="How long both logs may take to be equal. When they are not by then, what was denied is "
            "allowed again and the flow goes on as before.",
        ),
    }


def asked_request(params: Mapping[str, Any]) -> Request:
    """What the form was filled in with."""
    from twinlog.model.takeover import Request, Strategy, override_of  # noqa: PLC0415 - no matter of parsing a DAG

    at = params.get(AT) or None
    try:
        overrides = tuple(override_of(text) for text in params.get(GROUP_STRATEGIES) or ())
    except ConfigurationError as wrong:
        raise ConfigurationError(f"{GROUP_STRATEGIES}: {wrong}") from None
    return Request(
        Strategy(params[STRATEGY]),
        overrides,
        moment_ms(AT, at) if at else None,
        int(float(params[MARGIN]) * 1000),
        params.get(GROUPS) or None,
        bool(params[OVER_OWN]),
    )
