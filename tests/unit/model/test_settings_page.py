"""docs/settings.md is what the settings say."""

from __future__ import annotations

from pathlib import Path

from twinlog.model.settings_page import page

DOCUMENT = Path(__file__).parents[3] / "docs" / "settings.md"


def test_the_page_is_current() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_every_row_has_the_columns_of_its_table() -> None:
    widths = [line.count("|") for line in page().splitlines() if line.startswith("|")]
    assert set(widths) <= {3, 5, 6}
