from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.automatic_failover import LEAST_PROBES, Agreement, Vote

BREAK_S = 30.0
LOOKS = st.lists(
    st.tuples(
        st.floats(0.1, 60),
        st.dictionaries(st.sampled_from("abc"), st.sampled_from(Vote) | st.just(Vote.GONE), max_size=3),
    ),
    max_size=20,
)


def agree(votes: dict[str, Vote]) -> bool:
    return len(votes) >= LEAST_PROBES and set(votes.values()) == {Vote.GONE}


@given(LOOKS, st.floats(0, 200))
def test_only_unbroken_agreement_of_all_probes_decides(
    looks: list[tuple[float, dict[str, Vote]]], after: float
) -> None:
    agreement, at, times = Agreement(), 0.0, []
    for step, votes in looks:
        at += step
        agreement = agreement.after(votes, at, longest_break_s=BREAK_S)
        times.append((at, votes))
    # The last looks that all agreed, without a break between any two.
    since = None
    for place, (when, votes) in enumerate(times):
        if not agree(votes):
            since = None
        elif since is None or when - times[place - 1][0] > BREAK_S:
            since = when
    assert agreement.has_lasted(after) == (since is not None and at - since >= after)


@given(st.sampled_from([Vote.ALIVE, Vote.UNKNOWN]), st.integers(1, 3))
def test_one_probe_that_disagrees_is_enough_to_wait(vote: Vote, others: int) -> None:
    long_agreed = Agreement(0.0, 1_000.0)
    votes = {f"p{number}": Vote.GONE for number in range(others)} | {"other": vote}
    assert not long_agreed.after(votes, 1_001.0, longest_break_s=BREAK_S).has_lasted(0)


def test_one_probe_alone_never_decides() -> None:
    agreement = Agreement(0.0, 1_000.0).after({"only": Vote.GONE}, 1_001.0, longest_break_s=BREAK_S)
    assert not agreement.has_lasted(0)
    assert not Agreement().after({}, 1.0, longest_break_s=BREAK_S).has_lasted(0)
