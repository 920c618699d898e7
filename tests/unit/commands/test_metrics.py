"""The file of `--metrics`: whole or not at all, for all to read."""

from __future__ import annotations

import argparse
import stat
from pathlib import Path

import pytest

from support.exposition import read_exposition, series
from twinlog.commands import metrics
from twinlog.commands.console import Console
from twinlog.errors import ClusterUnreachableError, ConfigurationError, NotAuthorizedError
from twinlog.model.metrics import LAG_RECORDS

SAMPLE = LAG_RECORDS(3, flow="nyc->lon", topic="orders")


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    metrics.add_option(parser)
    return parser.parse_args(arguments)


def test_the_file_holds_the_samples_for_all_to_read_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "nyc->lon.prom"
    file.write_text("older")
    metrics.write(parsed("--metrics", str(file)), [SAMPLE])
    assert read_exposition(file.read_text()) == {series("twinlog_lag_records", flow="nyc->lon", topic="orders"): 3}
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [file]


def test_who_reads_while_it_is_written_has_the_old_one_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.prom"
    file.write_text("older")
    with file.open() as reading:
        metrics.write(parsed("--metrics", str(file)), [SAMPLE])
        assert reading.read() == "older"


def test_where_nothing_was_measured_the_last_file_stays(tmp_path: Path) -> None:
    file = tmp_path / "a.prom"
    file.write_text("older")
    metrics.write(parsed("--metrics", str(file)), [])
    assert file.read_text() == "older"


def test_nothing_is_written_unasked() -> None:
    metrics.write(parsed(), [SAMPLE])


def test_a_folder_that_is_not_there_is_said_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(argparse.ArgumentError, match="there is no folder"):
        parsed("--metrics", str(tmp_path / "none" / "a.prom"))


def test_what_cant_be_replaced_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a.prom"
    folder.mkdir()
    with pytest.raises(ConfigurationError, match=r"a\.prom: the metrics cannot be written"):
        metrics.write(parsed("--metrics", str(folder)), [SAMPLE])
    assert list(tmp_path.iterdir()) == [folder]


def verb(file: Path, ended_by: Exception | None, console: Console) -> None:
    """A verb that measures something, or is ended by an error before."""

    @metrics.tells_errors
    def run(asked: argparse.Namespace, _: Console) -> int:
        if ended_by is not None:
            raise ended_by
        metrics.write_done(asked, [SAMPLE])
        return 0

    run(argparse.Namespace(metrics=file, flow="nyc->lon", verb="mirror"), console)


def errors_in(file: Path) -> set[str]:
    found = read_exposition(file.read_text())
    return {dict(labels)["kind"] for (name, labels), value in found.items() if name == "twinlog_errors" and value}


def test_an_error_that_ends_a_verb_is_told_by_kind_beside_the_last_figures_until_it_is_gone(tmp_path: Path) -> None:
    file, console = tmp_path / "a.prom", Console(as_json=False)
    ends = ((NotAuthorizedError("no"), {"not_allowed"}), (KeyError("odd"), {"fault"}))
    for ended_by, kinds in ends:
        with pytest.raises(type(ended_by)):
            verb(file, ended_by, console)
        assert errors_in(file) == kinds
        assert {name for name, _ in read_exposition(file.read_text())} == {"twinlog_errors"}
    verb(file, None, console)
    assert errors_in(file) == set()

    with pytest.raises(ClusterUnreachableError):
        verb(file, ClusterUnreachableError("away"), console)

    assert errors_in(file) == {"unreachable"}
    assert read_exposition(file.read_text())[series("twinlog_lag_records", flow="nyc->lon", topic="orders")] == 3


def test_a_file_that_cant_be_written_hides_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a.prom"
    folder.mkdir()
    with pytest.raises(ClusterUnreachableError, match="away"):
        verb(folder, ClusterUnreachableError("away"), Console(as_json=False))
    assert str(folder) in capsys.readouterr().err
