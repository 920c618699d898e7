from __future__ import annotations

import pytest

from twinlog.commands.words import behind, duration


def test_what_is_not_copied_in_words_known_or_not() -> None:
    assert behind(None, None) == "unknown"
    assert behind(0, 0.0) == "nothing"
    assert behind(1_200, 3.25) == "1,200 records, 3.2 s"
    # Behind an open transaction, or where the record can't be read.
    assert behind(1, None) == "1 records, unknown age"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7_199, "120 min"), (7_200, "2.0 h"), (400_000, "4.6 days")],
)
def test_a_duration_is_said_by_the_unit_that_fits(seconds: float, said: str) -> None:
    assert duration(seconds) == said
