from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from twinlog.airflow.ids import dag_ids

ALIASES = st.text(st.sampled_from("aAbB_.-to"), min_size=1, max_size=6)
FLOWS = st.lists(st.tuples(ALIASES, ALIASES).map("->".join), unique=True, max_size=8)


def test_the_id_of_a_flow_reads_as_the_flow() -> None:
    assert dag_ids("status", ["nyc->lon"]) == {"nyc->lon": "status__nyc_to_lon"}


def test_ids_are_lower_case_and_keep_to_what_a_url_bears() -> None:
    assert dag_ids("status", ["NYC 1->Köln"]) == {"NYC 1->Köln": "status__nyc_1_to_k_ln"}


def test_names_that_come_out_alike_are_set_apart_and_the_well_named_one_keeps_its_id() -> None:
    ids = dag_ids("status", ["NYC->lon", "nyc->lon"])
    assert ids["nyc->lon"] == "status__nyc_to_lon"
    assert re.fullmatch("status__nyc_to_lon_[0-9a-f]{6}", ids["NYC->lon"])


@given(FLOWS)
def test_any_two_flows_have_different_ids(flows: list[str]) -> None:
    ids = dag_ids("status", flows)
    assert set(ids) == set(flows)
    assert len(set(ids.values())) == len(flows)
    assert all(re.fullmatch(r"status__[a-z0-9_.-]+", dag_id) for dag_id in ids.values())
