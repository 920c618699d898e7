"""The command line as scripts see it: exit codes, what goes to which stream, and nothing secret in either."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.silent import closed_port, silent_server
from support.waiting import NOT_HUNG_S
from twinlog import cli
from twinlog.commands import status as status_command

GOOD = """\
clusters:
  nyc: {bootstrap.servers: "127.0.0.1:1"}
  lon: {bootstrap.servers: "127.0.0.1:1"}
flows:
  nyc->lon: {topics: [orders]}
"""
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hush hush";'
MM2 = f"""\
clusters = NYC, LON
NYC.bootstrap.servers = nyc:9092
LON.bootstrap.servers = lon:9092
NYC.sasl.jaas.config = {LOGIN}
NYC->LON.enabled = true
NYC->LON.topics = orders
listeners = http://localhost:8083
"""


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    file = tmp_path / "topology.yaml"
    file.write_text(GOOD)
    return file


def twinlog(*arguments: str | Path, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command as its own process, as a script would run it."""
    return subprocess.run(
        [sys.executable, "-m", "twinlog.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **(environ or {})},
    )


def test_help_is_instant_and_loads_no_client() -> None:
    script = "import sys\nfrom twinlog import cli\ntry:\n  cli.main(['--help'])\nexcept SystemExit:\n  pass\n"
    check = (
        "heavy = {'kafka', 'confluent_kafka', 'yaml', 'pyspark', 'numpy'} & set(sys.modules)\nassert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", script + check], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "status" in done.stdout


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("twinlog ")


@pytest.mark.parametrize("arguments", [[], ["overfail", "nyc->lon"], ["status", "--timeout", "soon"], ["topology"]])
def test_wrong_use_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().out == ""


def test_check_describes_a_right_topology(topology: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--topology", str(topology), "topology", "check"]) == 0
    assert "nyc->lon: prefixed names" in capsys.readouterr().out


def test_options_may_stand_after_the_verb(topology: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["topology", "check", "--topology", str(topology), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["valid"] is True
    assert [flow["flow"] for flow in found["flows"]] == ["nyc->lon"]


def test_the_topology_may_be_named_by_the_environment(
    topology: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TWINLOG_TOPOLOGY", str(topology))
    assert cli.main(["topology", "check"]) == 0
    assert str(topology) in capsys.readouterr().out


def test_warnings_are_shown_and_errors_are_2(topology: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology.write_text(GOOD.replace("topics: [orders]", "topics: [orders], recovery.point.seconds: 0"))

    assert cli.main(["--topology", str(topology), "topology", "check"]) == 2
    assert "error: nyc->lon: a recovery point of 0" in capsys.readouterr().err

    both_ways = "{topics: [orders], naming: identity}"
    topology.write_text(GOOD.replace("{topics: [orders]}", both_ways) + f"  lon->nyc: {both_ways}\n")
    assert cli.main(["--topology", str(topology), "topology", "check"]) == 0
    assert "warning: " in capsys.readouterr().err


@pytest.mark.parametrize("text", ["flows: {}", "clusters: [", ""])
def test_a_wrong_topology_is_2_and_one_object_with_json(
    topology: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    topology.write_text(text)

    assert cli.main(["--topology", str(topology), "topology", "check"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"twinlog: {topology}:" in said.err
    assert "Traceback" not in said.err

    assert cli.main(["--topology", str(topology), "--json", "topology", "check"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["valid"] is False
    assert found["problems"]


def test_a_missing_topology_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--topology", str(tmp_path / "none.yaml"), "status"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "none.yaml: cannot be read" in said.err


def test_an_import_prints_a_topology_that_loads_and_lists_what_it_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(MM2)

    assert cli.main(["topology", "import-mm2", str(file)]) == 0
    said = capsys.readouterr()
    assert "listeners" in said.err
    assert "hush hush" not in said.out + said.err
    made = tmp_path / "made.yaml"
    made.write_text(said.out)
    assert cli.main(["--topology", str(made), "topology", "check"]) == 0


def test_an_import_writes_a_new_file_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, output = tmp_path / "mm2.properties", tmp_path / "made.yaml"
    file.write_text(MM2)

    assert cli.main(["--json", "topology", "import-mm2", str(file), "--output", str(output)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert output.read_text() == found["topology"]
    assert any(item["key"].endswith("listeners") for item in found["left_out"])

    assert cli.main(["topology", "import-mm2", str(file), "--output", str(output)]) == 2
    assert "exists already and is not overwritten" in capsys.readouterr().err


def test_mirrormaker_1_is_imported_from_its_own_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("consumer", "producer"):
        (tmp_path / name).write_text(f"bootstrap.servers={name}:9092\n")
    files = ["--consumer.config", str(tmp_path / "consumer"), "--producer-config", str(tmp_path / "producer")]

    options = ["--whitelist", "orders|payments", "--num.streams", "3", "--source", "nyc", "--target", "lon"]
    assert cli.main(["topology", "import-mm1", *files, *options]) == 0
    assert "nyc->lon" in capsys.readouterr().out


def test_replicators_connectors_are_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "replicator.json"
    connector = {
        "connector.class": "io.confluent.connect.replicator.ReplicatorSourceConnector",
        "src.kafka.bootstrap.servers": "nyc:9092",
        "dest.kafka.bootstrap.servers": "lon:9092",
        "topic.whitelist": "orders",
    }
    file.write_text(json.dumps({"name": "replicator", "config": connector}))

    assert cli.main(["topology", "import-replicator", str(file), "--source", "nyc", "--target", "lon"]) == 0
    assert "nyc->lon" in capsys.readouterr().out


def test_a_cluster_that_is_down_is_3_with_the_object(topology: Path) -> None:
    topology.write_text(GOOD.replace("127.0.0.1:1", closed_port()))

    done = twinlog("--topology", topology, "--json", "status", "--timeout", "5")

    assert done.returncode == 3
    assert json.loads(done.stdout)["unreachable"] == ["lon", "nyc"]
    assert "cluster lon (" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cluster_that_hangs_is_3_within_the_time_out(topology: Path) -> None:
    with silent_server() as server:
        topology.write_text(GOOD.replace("127.0.0.1:1", server))
        begun = time.monotonic()
        done = twinlog("--topology", topology, "status", "nyc->lon", "--timeout", "1")
    assert done.returncode == 3
    assert time.monotonic() - begun < NOT_HUNG_S


def test_a_secret_that_is_not_there_is_2(topology: Path) -> None:
    topology.write_text(
        GOOD.replace(
            'nyc: {bootstrap.servers: "127.0.0.1:1"', 'nyc: {bootstrap.servers: "127.0.0.1:1", connection: kafka_nyc'
        )
    )

    done = twinlog("--topology", topology, "status", "--timeout", "2")

    assert "AIRFLOW_CONN_KAFKA_NYC, which is not set" in done.stderr
    assert done.returncode == 3, "lon is down as well, and that is the worse of the two"


def test_an_unknown_flow_is_2_with_the_nearest_name(topology: Path) -> None:
    done = twinlog("--topology", topology, "status", "nyc->lom")

    assert done.returncode == 2
    assert 'did you mean "nyc->lon"?' in done.stderr
    assert done.stdout == ""


def test_an_interruption_is_130(
    topology: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(status_command, "run", interrupted)
    assert cli.main(["--topology", str(topology), "status"]) == 130
    assert capsys.readouterr().err == "twinlog: interrupted\n"


def test_a_fault_of_ours_is_a_sentence_and_with_debug_a_traceback(
    topology: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> int:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(status_command, "run", broken)
    assert cli.main(["status"]) == 1
    assert capsys.readouterr().err == "twinlog: ZeroDivisionError: oh (a fault of Twinlog; --debug shows where)\n"
    assert cli.main(["--debug", "status"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_closed_pipe_is_quiet(topology: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "twinlog.cli", "--topology", str(topology), "topology", "check"],
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr == ""
    assert done.returncode == 141
