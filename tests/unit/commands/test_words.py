from __future__ import annotations

from twinlog.commands.words import behind


def test_what_is_not_copied_in_words_known_or_not() -> None:
    assert behind(None, None) == "unknown"
    assert behind(0, 0.0) == "nothing"
    assert behind(1_200, 3.25) == "1,200 records, 3.2 s"
    # Behind an open transaction, or where the record can't be read.
    assert behind(1, None) == "1 records, unknown age"
