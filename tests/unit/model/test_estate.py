"""What the check says about an estate as a whole, by one small estate a finding."""

from __future__ import annotations

import pytest

from twinlog.model.estate import Finding, Severity, check, planned_settings
from twinlog.model.topology import Cluster, Flow, Topology


def estate(*flows: Flow, clusters: dict[str, dict[str, str]] | None = None, **settings: str) -> Topology:
    aliases = dict.fromkeys(alias for flow in flows for alias in (flow.source, flow.target))
    made = {alias: Cluster(alias, f"{alias}:9092", **(clusters or {}).get(alias, {})) for alias in aliases}
    return Topology(clusters=made, flows={flow.name: flow for flow in flows}, **settings)


def only(topology: Topology) -> Finding:
    (finding,) = check(topology)
    return finding


def test_a_plain_flow_has_no_findings() -> None:
    assert check(estate(Flow("nyc", "lon"))) == []


def test_settings_that_nothing_acts_on_yet_are_named_with_their_flows() -> None:
    topology = estate(Flow("nyc", "lon", select="*"), Flow("lon", "nyc"))
    assert planned_settings(topology) == {"select": ["nyc->lon"]}


class TestRecoveryPoint:
    def test_zero_is_an_error_that_points_to_the_stretch_cluster(self) -> None:
        finding = only(estate(Flow("nyc", "lon", recovery_point_seconds=0, schedule="@continuous")))
        assert finding.severity is Severity.ERROR
        assert finding.flow == "nyc->lon"
        assert "a mirror is always behind" in finding.message
        assert "docs/architectures.md#stretch-cluster" in finding.remedy

    @pytest.mark.parametrize(
        ("schedule", "seconds", "gap"),
        [
            ("* * * * *", 59, 60),
            ("*/5 * * * *", 60, 300),
            ("@hourly", 300, 3600),
            ("* 8-17 * * mon-fri", 3600, 223260),
        ],
    )
    def test_below_the_longest_gap_is_an_error(self, schedule: str, seconds: int, gap: int) -> None:
        finding = only(estate(Flow("nyc", "lon", recovery_point_seconds=seconds, schedule=schedule)))
        assert finding.severity is Severity.ERROR
        assert f"up to {gap} s between two runs" in finding.message
        assert f"to {gap} or more" in finding.remedy
        assert "#stretch-cluster" in finding.remedy

    @pytest.mark.parametrize(("schedule", "seconds"), [("* * * * *", 60), ("@continuous", 1), ("@daily", 86400)])
    def test_at_or_above_it_is_fine(self, schedule: str, seconds: int) -> None:
        assert check(estate(Flow("nyc", "lon", recovery_point_seconds=seconds, schedule=schedule))) == []

    def test_a_schedule_that_runs_once_gives_no_recovery_point(self) -> None:
        finding = only(estate(Flow("nyc", "lon", recovery_point_seconds=60, schedule="@once")))
        assert "nothing starts a second run" in finding.message

    def test_an_unreadable_schedule_is_named(self) -> None:
        finding = only(estate(Flow("nyc", "lon", recovery_point_seconds=60, schedule="99 * * * *")))
        assert finding.severity is Severity.ERROR
        assert "'99' is not within 0 to 59" in finding.message

    def test_a_flow_that_is_off_wants_nothing(self) -> None:
        assert check(estate(Flow("nyc", "lon", enabled=False, recovery_point_seconds=0))) == []


class TestTwoPaths:
    def test_identity_doubles_every_record(self) -> None:
        flows = [Flow(*pair, naming="identity") for pair in (("a", "c"), ("a", "b"), ("b", "c"))]
        finding = only(estate(*flows))
        assert finding.severity is Severity.WARNING
        assert finding.flow == "b->c"
        assert finding.message == (
            "orders of a reaches c by two paths, a->c and a->b then b->c, both as orders: its readers see every "
            "record twice"
        )
        assert "topics.exclude" in finding.remedy

    def test_prefixed_keeps_it_twice_under_two_names(self) -> None:
        finding = only(estate(Flow("a", "c"), Flow("a", "b"), Flow("b", "c")))
        assert "as a.orders and as b.a.orders: it is carried and kept twice" in finding.message

    def test_the_remedy_helps(self) -> None:
        assert check(estate(Flow("a", "c"), Flow("a", "b"), Flow("b", "c", topics_exclude=(r"a\..*",)))) == []

    def test_other_topics_on_the_other_path_are_no_crossing(self) -> None:
        flows = [Flow("a", "c", topics=("orders",)), Flow("a", "b", topics=("payments",)), Flow("b", "c")]
        assert check(estate(*flows)) == []

    def test_a_pattern_and_a_name_meet(self) -> None:
        flows = [
            Flow("a", "c", topics=(r"prod\..*",), naming="identity"),
            Flow("a", "b", topics=("prod.payments",), naming="identity"),
            Flow("b", "c", topics=(r"(prod|test)\.[a-z]+",), naming="identity"),
        ]
        finding = only(estate(*flows))
        assert finding.message.startswith("prod.payments of a reaches c by two paths")

    def test_a_flow_that_is_off_makes_no_path(self) -> None:
        assert check(estate(Flow("a", "c"), Flow("a", "b"), Flow("b", "c", enabled=False))) == []

    def test_a_diamond(self) -> None:
        finding = only(estate(Flow("a", "b"), Flow("a", "c"), Flow("b", "d"), Flow("c", "d")))
        assert "reaches d by two paths, a->b then b->d and a->c then c->d" in finding.message
        assert "as b.a.orders and as c.a.orders" in finding.message

    def test_prefixed_both_ways_is_no_crossing(self) -> None:
        assert check(estate(Flow("a", "b"), Flow("b", "a"))) == []

    def test_a_full_mesh_of_ten_ends_quickly(self) -> None:
        aliases = "abcdefghij"
        found = check(estate(*(Flow(x, y) for x in aliases for y in aliases if x != y)))
        assert {finding.severity for finding in found} == {Severity.WARNING}


class TestTwoWay:
    def test_one_name_both_ways_is_warned_of_once(self) -> None:
        finding = only(estate(Flow("a", "b", naming="identity"), Flow("b", "a", naming="identity")))
        assert finding.severity is Severity.WARNING
        assert finding.flow == "a->b"
        for part in ("no global order", "processes everything twice", "reads are stale"):
            assert part in finding.message
        for part in ("prefixed", "one side at a time", "pin users"):
            assert part in finding.remedy

    def test_different_topics_each_way_are_fine(self) -> None:
        flows = [
            Flow("a", "b", naming="identity", topics=("orders",)),
            Flow("b", "a", naming="identity", topics=("prices",)),
        ]
        assert check(estate(*flows)) == []

    def test_one_direction_prefixed_is_fine(self) -> None:
        assert check(estate(Flow("a", "b", naming="identity"), Flow("b", "a"))) == []


BESIDE = {"nyc": {"spark": "spark_nyc", "ledger": "s3a://nyc/ledger"}, "lon": {"spark": "spark_lon"}}


class TestPlacement:
    def test_beside_the_target_is_fine(self) -> None:
        clusters = {**BESIDE, "lon": {"spark": "spark_lon", "ledger": "s3a://lon/ledger"}}
        assert check(estate(Flow("nyc", "lon"), clusters=clusters, ledger="s3a://nyc/ledger")) == []

    def test_a_flow_that_names_the_sources_spark(self) -> None:
        finding = only(estate(Flow("nyc", "lon", spark="spark_nyc"), clusters=BESIDE))
        assert finding.severity is Severity.WARNING
        assert "its Spark (spark_nyc) stands beside the source nyc" in finding.message
        assert finding.remedy.startswith("Leave spark out of the flow")

    def test_the_estates_ledger_is_the_sources(self) -> None:
        finding = only(estate(Flow("nyc", "lon"), clusters=BESIDE, ledger="s3a://nyc/ledger"))
        assert "its ledger (s3a://nyc/ledger) stands beside the source nyc" in finding.message
        assert finding.remedy.startswith("Give lon a ledger of its own")

    def test_one_spark_for_both_sides_is_nobodys_fault(self) -> None:
        clusters = {"nyc": {"spark": "shared"}, "lon": {"spark": "shared"}}
        assert check(estate(Flow("nyc", "lon"), clusters=clusters)) == []


def test_errors_come_first() -> None:
    flows = [
        Flow("a", "b", naming="identity"),
        Flow("b", "a", naming="identity", recovery_point_seconds=0),
    ]
    assert [finding.severity for finding in check(estate(*flows))] == [Severity.ERROR, Severity.WARNING]
