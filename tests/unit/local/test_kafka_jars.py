from __future__ import annotations

import os
from pathlib import Path

import pytest

from local import kafka_jars
from local.errors import PreconditionError, StartError
from support.fake_commands import fake_command

# Stands in for Maven: writes one jar into the folder that it is told.
FILLING_MAVEN = """#!/bin/sh
PATH=/usr/bin:/bin
echo Apache Maven 3.9.0
for argument; do
  case $argument in -DoutputDirectory=*) mkdir -p "${argument#*=}"; touch "${argument#*=}/kafka.jar";; esac
done
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    fake_command(folder, "java", 'openjdk version "17.0.1"')
    fake_command(folder, "mvn").write_text(FILLING_MAVEN)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


def test_jars_arrive_whole_and_a_second_call_does_nothing(tmp_path: Path, tools: Path) -> None:
    said: list[str] = []
    jars = tmp_path / "work" / "kafka-jars"
    kafka_jars.fetch(jars, said.append)
    (tools / "mvn").unlink()
    kafka_jars.fetch(jars, said.append)
    assert said == [
        f"kafka jars: fetching with Maven into {jars}",
        "kafka jars: 1 jars ready",
        f"kafka jars: already in {jars}",
    ]
    assert kafka_jars.class_path(jars) == f"{jars}{os.sep}*"
    assert [entry.name for entry in jars.parent.iterdir()] == ["kafka-jars"]


def test_a_changed_pom_brings_the_jars_anew(tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = tmp_path / "kafka-jars"
    kafka_jars.fetch(jars, print)
    (jars / "old.jar").touch()
    pom = tmp_path / "pom.xml"
    pom.write_text("<project/>")
    monkeypatch.setattr(kafka_jars, "POM", pom)
    kafka_jars.fetch(jars, print)
    assert [jar.name for jar in jars.glob("*.jar")] == ["kafka.jar"]


def test_a_failing_maven_is_quoted_and_leaves_nothing(tmp_path: Path, tools: Path) -> None:
    (tools / "mvn").write_text("#!/bin/sh\necho Apache Maven 3.9.0\ncase $* in *-version) ;; *) exit 1;; esac\n")
    jars = tmp_path / "work" / "kafka-jars"
    with pytest.raises(StartError, match=r"^Maven could not fetch Kafka's jars, exit code 1; it said:\nApache Maven"):
        kafka_jars.fetch(jars, print)
    assert list(jars.parent.iterdir()) == []


def test_jars_that_were_not_fetched_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PreconditionError, match=rf"^Kafka's jars are not in {tmp_path}; run `make setup`\.$"):
        kafka_jars.class_path(tmp_path)


def test_an_archive_of_classes_is_used_where_there_is_one(tmp_path: Path) -> None:
    assert kafka_jars.archived_classes(tmp_path) == ()
    kafka_jars.class_archive(tmp_path).touch()
    assert kafka_jars.archived_classes(tmp_path) == (f"-XX:SharedArchiveFile={tmp_path}/classes.jsa",)


def test_the_command_answers_in_one_sentence(
    tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TWINLOG_WORK", str(tmp_path / "work"))
    (tools / "mvn").unlink()
    assert kafka_jars.main() == 1
    assert capsys.readouterr().err == ("kafka jars: Maven's mvn was not found on PATH; install Maven 3.6 or newer.\n")
