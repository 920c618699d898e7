from __future__ import annotations

from random import Random

import pytest

from twinlog.model.throttle import BURST_S, Throttle, share_of_rest


def sent_in(seconds: float, throttle: Throttle, sizes: list[int], start_s: float = 0.0) -> int:
    """How many bytes go out in `seconds` if the sender waits as told, at once or in steps."""
    now, sent = start_s, 0
    for size in sizes:
        now += throttle.take(size, now)
        sent += size
        if now >= start_s + seconds:
            return sent
    raise AssertionError("not enough to send")


@pytest.mark.parametrize("seed", range(5))
def test_the_rate_holds_however_large_the_batches_are(seed: int) -> None:
    random = Random(seed)
    sizes = [random.randrange(1, 5_000) for _ in range(20_000)]
    sent = sent_in(100, Throttle(10_000, 0), sizes)
    assert 1_000_000 <= sent <= 1_000_000 + 10_000 * BURST_S + 5_000


@pytest.mark.parametrize("lanes", [1, 2, 8])
def test_lanes_that_ask_for_moments_that_are_past_earn_none_of_them_twice(lanes: int) -> None:
    throttle, sent = Throttle(10_000, 0), 0
    for tick in range(1, 1_001):
        now = tick / 10
        for _ in range(lanes):
            # As a lane does that has waited: was it for the throttle? And may it send now?
            throttle.owed_s(now - 0.1)
            while throttle.owed_s(now) == 0:
                throttle.take(500, now)
                sent += 500
    assert sent <= 1_000_000 + 10_000 * BURST_S + 500


def test_who_is_left_shares_what_the_others_had_and_never_more() -> None:
    shares = {0: 0.5, 3: 0.3, 4: 0.2}
    assert share_of_rest(shares, 3, ()) == 0.3
    assert share_of_rest(shares, 3, {0}) == pytest.approx(0.6)
    assert share_of_rest(shares, 3, {0, 4}) == 1.0
    # Another try of a task that is done: what it writes is its own part at most.
    assert share_of_rest(shares, 3, {3}) == 0.3
    assert sum(share_of_rest(shares, task, {0}) for task in (3, 4)) == pytest.approx(1.0)


def test_no_rate_is_no_limit() -> None:
    throttle = Throttle(0, 0)
    assert throttle.take(1_000_000_000, 0) == 0
    assert throttle.owed_s(0) == 0


def test_what_was_sent_beyond_the_rate_is_owed() -> None:
    throttle = Throttle(1_000, 0)
    throttle.take(1_000 + int(1_000 * BURST_S), 0)
    assert throttle.owed_s(0) == pytest.approx(1)
    assert throttle.owed_s(0.4) == pytest.approx(0.6)
    assert throttle.owed_s(5) == 0


def test_time_without_sending_is_not_saved_up() -> None:
    throttle = Throttle(1_000, 0)
    assert throttle.take(1_000, 3_600) == pytest.approx(1 - BURST_S)


def test_a_new_rate_holds_at_once_for_what_is_owed_too() -> None:
    throttle = Throttle(1_000, 0)
    throttle.take(10_000 + int(1_000 * BURST_S), 0)
    assert throttle.owed_s(0) == pytest.approx(10)
    throttle.change(10_000, 0)
    assert throttle.owed_s(0) == pytest.approx(1)
    throttle.change(0, 0)
    assert throttle.owed_s(0) == 0


def test_a_throttle_that_is_laid_on_later_begins_with_nothing_saved() -> None:
    throttle = Throttle(0, 0)
    throttle.take(1_000_000, 5)
    throttle.change(1_000, 10)
    assert throttle.take(1_000, 10) == pytest.approx(1)
