"""The last good version of a topology."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from twinlog.airflow.topology import kept_version, topology_in_use
from twinlog.errors import TopologyError

GOOD = """\
clusters:
  nyc: {bootstrap.servers: "nyc:9092"}
  lon: {bootstrap.servers: "lon:9092"}
ledger: ./ledger
flows:
  nyc->lon: {topics: [orders]}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "estate" / "topology.yaml"
    path.parent.mkdir()
    path.write_text(GOOD)
    monkeypatch.setenv("TWINLOG_TOPOLOGY", str(path))
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    return path


def test_the_file_holds_while_it_is_right_and_its_last_good_version_while_it_is_not(file: Path) -> None:
    before = topology_in_use()
    file.write_text(GOOD.replace("orders", "payments"))
    after = topology_in_use()
    file.write_text("flows: 3")
    broken = topology_in_use()
    file.unlink()
    gone = topology_in_use()
    assert (before.flow("nyc->lon").topics, after.flow("nyc->lon").topics) == (("orders",), ("payments",))
    assert broken == gone == after
    # As if it had been read where it stands.
    assert after.ledger == str(file.parent / "ledger")
    assert after.path == str(file)


def test_what_is_kept_is_for_its_owner_only(file: Path) -> None:
    topology_in_use()
    kept = kept_version(file)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_a_file_that_was_never_right_is_an_error(file: Path) -> None:
    file.write_text(GOOD.replace("topics", "topcs"))
    with pytest.raises(TopologyError, match=r"topology.yaml:6: topcs: unknown setting"):
        topology_in_use()
    assert not kept_version(file).exists()


def test_without_a_place_to_keep_it_the_file_alone_holds(file: Path, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    assert topology_in_use().flow("nyc->lon").topics == ("orders",)
    file.write_text("flows: 3")
    with pytest.raises(TopologyError):
        topology_in_use()
