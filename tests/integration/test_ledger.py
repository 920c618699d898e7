"""The journal on a real cluster, and the ledger that is made of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from local.kafka import KafkaClusters
from support.connecting import connected
from support.histories import history, rows, some_id
from support.journal_writer import LANES, JournalWriter
from support.source_logs import delete_records
from twinlog.errors import JournalReplacedError, JournalUnstableError
from twinlog.ledger import barrier, journal_reader
from twinlog.ledger.chain import Mark
from twinlog.ledger.compact import Floor, Retention, compact
from twinlog.ledger.compact_spark import compact_on_spark
from twinlog.ledger.rebuild import rebuild
from twinlog.ledger.record import Recorded, record
from twinlog.ledger.schema import IN_MEMORY
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import JournalEntry, PartitionPair
from twinlog.operations.spark_session import bring_package
from twinlog.wire.journal import encode_key

# Nothing here goes through pandas; the client warns of its version when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


@pytest.fixture
def writer(kafka_pair: KafkaClusters) -> Iterator[JournalWriter]:
    with JournalWriter(kafka_pair["lon"].bootstrap_servers) as writer:
        yield writer


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(str(tmp_path / "ledger"), "nyc", "lon")


@pytest.fixture(scope="module")
def spark(spark_connect: str) -> Iterator[SparkSession]:
    with connected(spark_connect) as session:
        bring_package(session)
        yield session


def some_entries(seed: int, partition: int) -> list[JournalEntry]:
    random = Random(seed)
    pair = PartitionPair("orders", some_id(random), "nyc.orders", some_id(random), partition)
    entries = history(random, pair, 200).entries
    assert len(entries) > 5
    return entries


def bring_up(ledger: Ledger, writer: JournalWriter) -> Recorded:
    return barrier.behind(dict, writer.ends, lambda ends: record(ledger, writer.journal(), ends)).read


def ordered(table: pa.Table) -> list[dict[str, object]]:
    lines = table.select(IN_MEMORY.names).to_pylist()
    return sorted(lines, key=lambda line: (line["source_topic_id"], line["source_start"], line["count"]))


def expected(*written: list[JournalEntry]) -> list[dict[str, object]]:
    return ordered(rows([entry for entries in written for entry in entries]))


def test_what_was_committed_is_recorded_once_and_what_was_aborted_never(writer: JournalWriter, ledger: Ledger) -> None:
    first, second, third = (some_entries(seed, seed) for seed in (1, 2, 3))
    writer.write(0, first)
    writer.write(0, some_entries(4, 4), commit=False)
    writer.write(1, second)
    recorded = bring_up(ledger, writer)
    assert recorded.rows == len(first) + len(second)
    assert ordered(ledger.read()) == expected(first, second)

    again = bring_up(ledger, writer)
    assert (again.rows, again.file, again.mark) == (0, None, recorded.mark)
    assert len(ledger.files()) == 1

    writer.write(2, some_entries(5, 5), commit=False)
    writer.remove(0, first[0])
    assert bring_up(ledger, writer).file is None
    writer.write(2, third)
    assert bring_up(ledger, writer).rows == len(third)
    assert ordered(ledger.read()) == expected(first, second, third)
    assert len(ledger.files()) == 2


def test_many_removals_are_read_once(writer: JournalWriter, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = some_entries(1, 1)
    writer.write(0, entries)
    before = bring_up(ledger, writer)
    last_run = ledger.last_run()
    for entry in entries[:3]:
        writer.remove(0, entry)

    monkeypatch.setattr("twinlog.ledger.record.MANY_REMOVALS", 4)
    few = bring_up(ledger, writer)
    monkeypatch.setattr("twinlog.ledger.record.MANY_REMOVALS", 3)
    many = bring_up(ledger, writer)
    again = bring_up(ledger, writer)

    assert (few.file, few.mark) == (None, before.mark)
    assert (many.rows, many.file is None, again.file) == (0, False, None)
    assert many.mark.node.total > before.mark.node.total
    assert again.mark == ledger.mark() == many.mark
    assert ordered(ledger.read()) == expected(entries)
    assert ledger.last_run() == last_run
    assert compact(ledger, Retention(), least=1).files == 2
    assert (ledger.mark(), len(ledger.files())) == (many.mark, 1)
    assert ordered(ledger.read()) == expected(entries)


def test_entries_past_the_barrier_wait_for_the_next_recording(writer: JournalWriter, ledger: Ledger) -> None:
    early, late = some_entries(1, 1), some_entries(2, 2)
    writer.write(0, early)
    ends = writer.ends()
    writer.write(0, late)
    assert record(ledger, writer.journal(), ends).rows == len(early)
    assert ordered(ledger.read()) == expected(early)
    assert bring_up(ledger, writer).rows == len(late)
    assert ordered(ledger.read()) == expected(early, late)


def test_an_undecided_transaction_below_the_end_is_waited_for(writer: JournalWriter, ledger: Ledger) -> None:
    entries = some_entries(1, 1)
    producer = writer.begin(0, entries)
    ends = writer.ends()
    with pytest.raises(JournalUnstableError, match=r"partitions \[0\]"):
        record(ledger, writer.journal(patience_s=1), ends)
    assert ledger.mark() == Mark()

    done: list[Recorded] = []
    waiting = threading.Thread(target=lambda: done.append(record(ledger, writer.journal(), ends)))
    waiting.start()
    producer.commit_transaction()
    waiting.join(60)
    assert [recorded.rows for recorded in done] == [len(entries)]


KILLED = """
import os, signal, sys
from twinlog.ledger.folder import Folder
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.secrets import resolve
from twinlog.ledger.journal import Journal
from twinlog.ledger.record import record
from twinlog.ledger.store import Ledger

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

adopt = Folder.adopt
step, root, topic, topic_id, servers, ends = sys.argv[1:]
if step == "before the mark":
    Folder.adopt = die
if step == "before the rows":
    Folder.adopt = lambda folder, path, name: die() if name.endswith(".parquet") else adopt(folder, path,
    name)
if step == "amid the rows":
    Folder._write = lambda folder, path, content: (open(path, "wb").write(bytes(content)[:20]), die())
client = ClusterAccess("lon", resolve({"bootstrap.servers": servers}, environ={})).raw()
record(Ledger(root, "nyc", "lon"), Journal(topic, topic_id, client, "User:ANONYMOUS"), eval(ends))
die()
"""


@pytest.mark.parametrize("step", ["amid the rows", "before the mark", "before the rows", "after the rows"])
def test_a_recorder_killed_at_any_step_leaves_a_ledger_that_the_next_one_completes(
    writer: JournalWriter, ledger: Ledger, tmp_path: Path, step: str
) -> None:
    first, second = some_entries(1, 1), some_entries(2, 2)
    writer.write(0, first)
    bring_up(ledger, writer)
    writer.write(1, second)
    journal = writer.journal()
    arguments = [step, str(tmp_path / "ledger"), journal.topic, journal.topic_id]
    arguments += [writer.servers["bootstrap.servers"], repr(writer.ends())]
    died = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False, capture_output=True, timeout=120)
    assert died.returncode == -9, died.stderr.decode()
    survived = [first, second] if step == "after the rows" else [first]
    assert ordered(ledger.read()) == expected(*survived)
    assert ordered(ds.dataset(tmp_path / "ledger", partitioning="hive").to_table()) == expected(*survived)
    bring_up(ledger, writer)
    assert ordered(ledger.read()) == expected(first, second)


def test_a_rebuilt_ledger_is_equal(writer: JournalWriter, ledger: Ledger) -> None:
    written = [some_entries(seed, seed) for seed in (1, 2, 3)]
    for lane, entries in enumerate(written):
        writer.write(lane, entries)
        bring_up(ledger, writer)
    before = ordered(ledger.read())
    assert before == expected(*written)
    done = rebuild(ledger, writer.journal(), writer.ends())
    assert (done.rows, done.rows_before, done.files_removed) == (len(before), len(before), 3)
    assert ordered(ledger.read()) == before
    more = some_entries(4, 4)
    writer.write(0, more)
    assert bring_up(ledger, writer).rows == len(more)


def test_a_journal_made_anew_is_noticed_and_a_rebuild_starts_over(writer: JournalWriter, ledger: Ledger) -> None:
    writer.write(0, some_entries(1, 1))
    bring_up(ledger, writer)
    old = writer.journal()
    with JournalWriter(writer.servers["bootstrap.servers"]) as other:
        entries = some_entries(2, 2)
        other.write(0, entries)
        with pytest.raises(JournalReplacedError, match="ledger rebuild"):
            bring_up(ledger, other)
        with pytest.raises(JournalReplacedError, match="before the ledger's mark"):
            record(ledger, old, dict.fromkeys(range(LANES), 0))
        rebuild(ledger, other.journal(), other.ends())
        assert ordered(ledger.read()) == expected(entries)
        assert bring_up(ledger, other).rows == 0


def test_a_topic_made_anew_under_the_name_is_not_read_as_the_journal(writer: JournalWriter, ledger: Ledger) -> None:
    writer.write(0, some_entries(1, 1))
    with pytest.raises(JournalReplacedError, match="made anew"):
        record(ledger, replace(writer.journal(), topic_id=str(some_id(Random(9)))), writer.ends())
    assert ledger.mark() == Mark()


def test_the_beginning_is_wherever_the_log_begins_and_a_mark_that_is_gone_is_an_error(
    writer: JournalWriter, ledger: Ledger
) -> None:
    first, second = some_entries(1, 1), some_entries(2, 2)
    writer.write(0, first)
    bring_up(ledger, writer)
    writer.write(0, second)
    start = len(first) + 3
    writer.let_records_be_deleted()
    delete_records(writer.servers["bootstrap.servers"], writer.topic, start)

    with pytest.raises(JournalReplacedError, match=rf"has no offset \d+, .* starts at {start}:"):
        bring_up(ledger, writer)
    assert ordered(ledger.read()) == expected(first)
    rebuild(ledger, writer.journal(), writer.ends())
    # One offset is the first transaction's marker.
    assert ordered(ledger.read()) == expected(second[2:])


def test_chunks_are_bounded_and_removals_are_told(writer: JournalWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_reader, "CHUNK_ENTRIES", 4)
    written = [some_entries(seed, seed) for seed in (1, 2, 3)]
    for lane, entries in enumerate(written):
        writer.write(lane, entries)
    writer.remove(1, written[1][0])
    removed: list[tuple[int, bytes]] = []

    chunks = list(
        journal_reader.read(writer.journal(), Mark(), writer.ends(), removed=lambda *one: removed.append(one))
    )

    assert {len(chunk) for chunk in chunks[:-1]} == {4}
    assert sum(map(len, chunks)) == sum(map(len, written))
    assert removed == [(1, encode_key(written[1][0].segment))]


def test_spark_duckdb_and_pyarrow_read_equal_rows_and_spark_compacts_as_this_process_does(
    writer: JournalWriter, ledger: Ledger, spark: SparkSession, tmp_path: Path
) -> None:
    written = [some_entries(seed, seed) for seed in (1, 2, 3)]
    for lane, entries in enumerate(written):
        writer.write(lane, entries)
        bring_up(ledger, writer)
    root = tmp_path / "ledger"
    for _ in ("as recorded", "as compacted"):
        by_spark = spark.read.parquet(f"file://{root}").toArrow()
        by_duckdb = duckdb.sql(f"from read_parquet('{root}/source=*/target=*/*.parquet')").to_arrow_table()
        assert ordered(by_spark) == ordered(by_duckdb) == ordered(ledger.read())
        assert set(by_spark["source"].to_pylist()) == set(by_duckdb["source"].to_pylist()) == {"nyc"}

        pair = written[0][0].segment.pair
        middle = written[0][3].segment
        retention = Retention([Floor(pair, middle.source_start, middle.target_start)], 10**15)
        here = Ledger(str(tmp_path / "here"), "nyc", "lon")
        here.append(ledger.read(), Mark(), ledger.mark())
        compact(here, retention, everything=True)
        done = compact_on_spark(spark, ledger, retention, everything=True, tasks=2)
        assert ordered(ledger.read()) == ordered(here.read())
        assert done.rows_after < sum(map(len, written))
        ledger.sweep(ledger.files()[0].modified_ms)
        assert len(ledger.files()) == 1
    assert not list((root / "_work").iterdir())


def test_the_job_compacts_and_says_what_it_did(ledger: Ledger, spark_connect: str, tmp_path: Path) -> None:
    entries = some_entries(1, 1)
    ledger.append(rows(entries[:3]), Mark(), Mark("journal", {0: 4}))
    ledger.append(rows(entries[3:]), Mark("journal", {0: 4}), Mark("journal", {0: 9}))
    last = entries[-1].segment
    floor = {
        "source_topic": last.pair.source_topic,
        "source_topic_id": str(last.pair.source_topic_id),
        "target_topic": last.pair.target_topic,
        "target_topic_id": str(last.pair.target_topic_id),
        "partition": last.pair.partition,
        "source_start": last.source_end,
        "target_start": last.target_end,
    }
    floors = tmp_path / "floors.json"
    floors.write_text(json.dumps({"flow": "nyc->lon", "floors": [floor]}))
    job = Path(__file__).parents[2] / "spark_jobs" / "compact_ledger.py"
    arguments = ["--ledger", str(tmp_path / "ledger"), "--source", "nyc", "--target", "lon", "--floors", str(floors)]
    done = subprocess.run(
        [sys.executable, str(job), *arguments],
        env={**os.environ, "SPARK_REMOTE": spark_connect},
        capture_output=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    said = json.loads(done.stdout)
    assert (said["files"], said["rows_before"]) == (2, len(entries))
    assert said["rows_after"] == ledger.read().num_rows < 3
    assert [file.link.name for file in ledger.files()] == [said["file"]]
    assert [name.name for name in Path(ledger.folder.path).glob("*.parquet")] == [said["file"]]
