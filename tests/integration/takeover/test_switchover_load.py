"""A switchover while an application goes on writing, which nobody has told anything."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from pathlib import Path

from confluent_kafka import KafkaError, Producer

from local.kafka import KafkaClusters
from local.kafka.spec import SASL_SSL
from local.kafka.users import login_settings
from support.groups import read
from support.mirroring import producer
from support.reading import read_committed
from support.syncing import Hand
from support.takeovers import same_names, switch
from support.waiting import await_condition


class Denied:
    """An application that writes numbers, one after the other, as somebody whom ACLs hold for; when it is denied it
    waits until it is told of the new address, and goes on there with the number that was not taken."""

    def __init__(self, settings: dict[str, str], topic: str) -> None:
        self.written = 0
        self.denied = threading.Event()
        self._topic = topic
        self._moved_to: queue.Queue[str] = queue.Queue()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write, args=(Producer(settings),))
        self._thread.start()

    def _write(self, writer: Producer) -> None:
        while not self._over.is_set():
            failure = self._send(writer)
            if failure is None:
                self.written += 1
                continue
            assert failure.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED, failure
            self.denied.set()
            writer = producer(self._moved_to.get(timeout=120))

    def _send(self, writer: Producer) -> KafkaError | None:
        answers: list[KafkaError | None] = []
        writer.produce(
            self._topic, str(self.written), partition=0, on_delivery=lambda failed, _: answers.append(failed)
        )
        assert writer.flush(60) == 0
        return answers[0]

    def move(self, servers: str) -> None:
        self._moved_to.put(servers)

    def stop(self) -> None:
        self._over.set()
        self._thread.join()


def test_a_producer_that_nobody_stops_is_denied_moves_and_loses_nothing(
    guarded: KafkaClusters, tmp_path: Path, mark: str, topic: str, group: str
) -> None:
    flow = same_names(guarded, tmp_path, mark)
    source = Hand(flow.source_servers)
    source.create(topic)
    source.allow("alice", "WRITE", topic)
    settings = guarded["nyc"].client_settings(SASL_SSL, "alice")
    authority = Path(settings["ssl.truststore.location"])
    login = login_settings("alice", "hers", authority)
    application = Denied({"bootstrap.servers": settings["bootstrap.servers"], "linger.ms": "0", **login}, topic)
    try:
        await_condition(lambda: application.written > 100, "the application to write")
        flow.mirror()
        seen = read(flow.source_servers, group, topic, 50)
        result = switch(flow, block_writes=True)
        assert application.denied.is_set()
        before = application.written
        application.move(flow.target_servers)
        await_condition(lambda: application.written > before + 100, "the application to go on")
    finally:
        application.stop()
    seen += read(flow.target_servers, group, topic)

    assert (result.exit_code, result.late, result.takeover.plan.lost_records) == (0, None, 0)
    numbers = [str(number).encode() for number in range(application.written)]
    assert [record.value for record in read_committed(flow.target_servers, topic)[0]] == numbers
    assert seen == Counter((0, number) for number in numbers)
