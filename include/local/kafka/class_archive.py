"""`python -m local.kafka.class_archive`: keeps Kafka's classes as the JVM has them in memory, beside the jars.

A broker that starts with them needs a third less of the processor, and half the time, which counts where clusters are
started again and again. A broker is started once, used a little, and its JVM writes the archive when it ends. Nothing
depends on it: where it can't be made, or does not fit, brokers start as they would without.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from local import kafka_jars
from local.errors import LocalError, StartError
from local.kafka.cluster import start
from local.kafka.spec import KafkaSpec

_WITHIN_S = 30.0


def make(folder: Path | None = None) -> bool:
    """Make the archive of the jars in `folder` where it is not there; whether it is now."""
    archive = kafka_jars.class_archive(folder)
    if archive.exists():
        return True
    with tempfile.TemporaryDirectory(prefix="classes.", dir=archive.parent) as scratch:
        # Beside its name first: an archive that is cut short is of no use to anybody.
        arriving = Path(scratch) / archive.name
        writing = (f"-XX:ArchiveClassesAtExit={arriving}",)
        with start([KafkaSpec("classes")], Path(scratch), lambda _: None, folder, writing) as clusters:
            _use(clusters["classes"].bootstrap_servers)
        if arriving.exists():
            arriving.rename(archive)
    return archive.exists()


def _use(servers: str) -> None:
    """What a broker of a test is asked first, so that the classes for it are among the archive's."""
    from confluent_kafka import KafkaException, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    quiet: dict[str, str | int | float | bool] = {"bootstrap.servers": servers, "log_level": 0}
    try:
        admin = AdminClient(quiet)
        for made in admin.create_topics([NewTopic("classes", 1, 1)]).values():
            made.result(_WITHIN_S)
        producer = Producer({**quiet, "transactional.id": "classes", "compression.type": "lz4"})
        producer.init_transactions(_WITHIN_S)
        producer.begin_transaction()
        producer.produce("classes", b"value")
        producer.commit_transaction(_WITHIN_S)
    except KafkaException as failure:
        raise StartError(f"the broker was started and can't be used: {failure}") from failure


def main() -> int:
    try:
        made = make()
    except LocalError as error:
        print(f"kafka classes: not archived, brokers start without: {error}", file=sys.stderr)
    else:
        print(f"kafka classes: {'archived' if made else 'this JVM does not archive them; brokers start without'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
