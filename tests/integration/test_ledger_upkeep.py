"""Journal and ledger kept small on real clusters: what both logs have dropped goes, and every other answer stays."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow.compute as pc
import pytest
import yaml

from local.kafka import KafkaClusters
from local.ports import free_ports
from support.journal_writer import JournalWriter
from support.mirroring import Twins, twins
from support.reading import read_messages
from support.source_logs import delete_records, delete_topic, fill
from twinlog import cli
from twinlog.ledger.answers import NoAnswer
from twinlog.ledger.compact import Floor, Retention
from twinlog.ledger.compact import compact as compact_files
from twinlog.ledger.record import record
from twinlog.ledger.store import Ledger
from twinlog.ledger.trim import removable
from twinlog.model.lanes import journal_topic
from twinlog.model.offsets import JournalEntry, PartitionPair, Segment, TopicPartition
from twinlog.model.topology import Cluster
from twinlog.operations.ledger_upkeep import LedgerUpkeep, keep_up
from twinlog.operations.recording import rebuild_ledger
from twinlog.operations.translate import translator
from twinlog.wire.journal import encode_key

RUNS = 4
RECORDS_A_RUN = 30


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    """Four runs, each of several transactions."""
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    flow = twins(nyc, lon, tmp_path, (topic,), transaction_bytes=200)
    flow.create(topic)
    for run in range(RUNS):
        mirror(flow, topic, run)
    return flow


@pytest.fixture
def writer(kafka_pair: KafkaClusters) -> Iterator[JournalWriter]:
    with JournalWriter(kafka_pair["lon"].bootstrap_servers) as writer:
        yield writer


def mirror(flow: Twins, topic: str, run: int) -> None:
    numbers = range(run * RECORDS_A_RUN, (run + 1) * RECORDS_A_RUN)
    fill(flow.source_servers, topic, numbers, batch_num_messages=7)
    assert flow.mirror().failures == []


def compact(flow: Twins, keep_days: float = 0.0) -> LedgerUpkeep:
    return keep_up(flow.flow, flow.ends().source, flow.ends().target, flow.ledger, keep_days=keep_days)


def translations(flow: Twins, topic: str, source_from: int, target_from: int) -> tuple[list[object], list[object]]:
    """The answer for every offset from these on, to the ends and beyond, forward and in reverse."""
    answers = translator(flow.flow, flow.ends().target, flow.ledger)
    source, target = TopicPartition(topic, 0), TopicPartition(flow.twin(topic), 0)
    return (
        [answers.forward(source, offset) for offset in range(source_from, RUNS * RECORDS_A_RUN + 3)],
        [answers.reverse(target, offset) for offset in range(target_from, RUNS * RECORDS_A_RUN + 60)],
    )


def standing_entries(flow: Twins) -> int:
    """The journal's entries as its log cleaner will leave them."""
    journal = journal_topic(flow.flow.source, flow.flow.target)
    last = {message.key(): message.value() for message in read_messages(flow.target_servers, journal)}
    return sum(value is not None for value in last.values())


def test_what_both_logs_have_dropped_goes_from_ledger_and_journal_and_every_other_answer_stays(
    flow: Twins, topic: str
) -> None:
    entries = standing_entries(flow)
    assert flow.ledger.read().num_rows == entries > 2 * RUNS
    source_start, target_start = 100, 70
    delete_records(flow.source_servers, topic, source_start)
    delete_records(flow.target_servers, flow.twin(topic), target_start)
    before = translations(flow, topic, source_start, target_start)

    kept = compact(flow, keep_days=1)
    assert (kept.files_merged, kept.rows_after, kept.journal_entries_removed) == (RUNS, kept.rows_before, 0)
    done = compact(flow)

    rows = flow.ledger.read()
    assert done.rows_before == entries
    assert done.rows_after == rows.num_rows == entries - done.journal_entries_removed
    assert 0 < done.journal_entries_removed < entries
    ends = pc.add(rows.column("target_start"), rows.column("count"))
    # Both logs must have dropped a record: the target's, which starts earlier, decides here.
    assert pc.min(ends).as_py() > target_start
    assert standing_entries(flow) == done.rows_after
    assert translations(flow, topic, source_start, target_start) == before

    again = compact(flow)
    assert (again.files_merged, again.journal_entries_removed) == (0, 0)
    assert again.rows_before == again.rows_after == done.rows_after
    assert not again.notes

    rebuild_ledger(flow.ledger, flow.flow, flow.ends().target)
    assert translations(flow, topic, source_start, target_start) == before
    mirror(flow, topic, RUNS)
    assert compact(flow).journal_entries_removed == 0


def test_an_emptied_pair_keeps_its_last_row_and_still_knows_its_end(flow: Twins, topic: str) -> None:
    end = RUNS * RECORDS_A_RUN
    before = translations(flow, topic, end, 0)[0]
    assert [answer.reason for answer in before][1] is NoAnswer.BEHIND  # type: ignore[attr-defined]
    delete_records(flow.source_servers, topic, -1)
    delete_records(flow.target_servers, flow.twin(topic), -1)

    assert compact(flow).rows_after == 1

    assert translations(flow, topic, end, 0)[0][1:] == before[1:]
    mirror(flow, topic, RUNS)
    assert flow.ledger.read().num_rows > 1


def test_a_topic_that_is_gone_lies_below_every_log_start(flow: Twins, topic: str) -> None:
    delete_records(flow.target_servers, flow.twin(topic), 70)
    delete_topic(flow.source_servers, topic)

    done = compact(flow)

    assert done.journal_entries_removed > 0
    assert done.rows_after > 1
    assert not done.notes


def test_where_the_source_is_gone_files_are_merged_and_nothing_is_dropped(flow: Twins, topic: str) -> None:
    delete_records(flow.source_servers, topic, 100)
    delete_records(flow.target_servers, flow.twin(topic), 100)
    (port,) = free_ports(1)
    away = Cluster(flow.flow.source, f"127.0.0.1:{port}")
    gone = replace(flow, topology=replace(flow.topology, clusters={**flow.topology.clusters, away.alias: away}))

    done = compact(gone)

    assert done.files_merged == RUNS
    assert done.rows_after == done.rows_before
    assert done.journal_entries_removed == 0
    (note,) = done.notes
    assert "nothing was dropped" in note


def test_compactions_beside_runs_and_readers_disturb_neither(flow: Twins, topic: str) -> None:
    delete_records(flow.source_servers, topic, 100)
    delete_records(flow.target_servers, flow.twin(topic), 100)
    done = threading.Event()
    failures: list[BaseException] = []

    def until_done(work: Callable[[], object]) -> Callable[[], None]:
        def loop() -> None:
            try:
                while not done.is_set():
                    work()
            except BaseException as failure:
                failures.append(failure)
                raise

        return loop

    def read() -> None:
        rows = flow.ledger.read(("source_start", "count"))
        # Above what is dropped each offset has one row, whatever was merged or recorded meanwhile.
        starts = [
            (row["source_start"], row["source_start"] + row["count"])
            for row in sorted(rows.to_pylist(), key=lambda row: row["source_start"])
            if row["source_start"] >= 100
        ]
        assert all(left[1] == right[0] for left, right in pairwise(starts))

    threads = [threading.Thread(target=until_done(work)) for work in (read, lambda: compact(flow))]
    for thread in threads:
        thread.start()
    for run in range(RUNS, RUNS + 4):
        mirror(flow, topic, run)
    done.set()
    for thread in threads:
        thread.join(60)

    assert failures == []
    here, there = (
        [(message.key(), message.value()) for message in read_messages(servers, name)]
        for servers, name in ((flow.source_servers, topic), (flow.target_servers, flow.twin(topic)))
    )
    assert here == there[-len(here) :]


def test_the_command_says_what_it_did(
    flow: Twins, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    delete_records(flow.source_servers, topic, 100)
    delete_records(flow.target_servers, flow.twin(topic), 100)
    file = tmp_path / "topology.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "clusters": {
                    alias: {"bootstrap.servers": cluster.bootstrap_servers}
                    for alias, cluster in flow.topology.clusters.items()
                },
                "ledger": flow.topology.ledger,
                "flows": {flow.flow.name: {"topics": [topic]}},
            }
        )
    )

    assert cli.main(["--topology", str(file), "--json", "ledger", "floors", flow.flow.name]) == 0
    (floor,) = json.loads(capsys.readouterr().out)["floors"]
    assert (floor["source_topic"], floor["source_start"]) == (topic, 100)
    assert (floor["target_topic"], floor["target_start"]) == (flow.twin(topic), 100)
    assert cli.main(["--topology", str(file), "--json", "ledger", "compact", flow.flow.name, "--keep-days", "0"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["flow"] == flow.flow.name
    assert said["files_merged"] == RUNS
    assert said["rows_before"] - said["rows_after"] == said["journal_entries_removed"] > 0
    assert said["notes"] == []
    assert cli.main(["--topology", str(file), "ledger", "compact", flow.flow.name]) == 0
    assert capsys.readouterr().out.startswith(f"{flow.flow.name}: 0 files merged, ")


def test_the_journals_own_entries_are_judged_also_where_the_ledger_joined_them(
    writer: JournalWriter, tmp_path: Path
) -> None:
    ledger = Ledger(str(tmp_path / "joined"), "nyc", "lon")
    pair = PartitionPair("t", uuid.uuid4(), "nyc.t", uuid.uuid4(), 0)
    entries = [
        JournalEntry("nyc->lon", "run", start, Segment(pair, start, start, 5, 0, 0, 0, 0)) for start in range(0, 25, 5)
    ]
    first, second, *_ = entries
    writer.write(0, entries[:3])
    mark = record(ledger, writer.journal(), writer.ends()).mark
    writer.write(0, entries[3:])
    retention = Retention([Floor(pair, 12, 14)], copied_before_ms=1_000)

    compact_files(ledger, retention, everything=True)
    assert ledger.read(("source_start", "count")).to_pylist() == [{"source_start": 10, "count": 5}]

    def going(retention: Retention) -> list[bytes]:
        return removable(writer.journal(), mark, writer.ends(), retention).get(0, [])

    assert going(retention) == [encode_key(first.segment), encode_key(second.segment)]
    writer.remove(0, first)
    assert going(retention) == [encode_key(second.segment)]
    # The last entry below the mark stays, and what lies beyond the mark is none of its business yet.
    assert going(Retention([Floor(pair, 99, 99)], copied_before_ms=1_000)) == [encode_key(second.segment)]
    assert going(Retention()) == []
