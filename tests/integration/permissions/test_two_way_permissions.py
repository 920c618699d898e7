"""Both ways between clusters where the mirror may not see what the other direction keeps: nothing is sent back, and
what needs nothing of it goes on."""

from __future__ import annotations

import shutil

from local.kafka import KafkaClusters
from support.guarded import MIRROR, allow_copying, as_mirror, internal_topics
from support.mirroring import Twins
from support.source_logs import fill
from support.syncing import Hand, both_ways, rows, sync
from twinlog.model.findings import FindingKind


def test_nothing_is_sent_back_where_the_other_journal_may_not_be_seen(
    flow: Twins, topic: str, nyc: Hand, lon: Hand, guarded: KafkaClusters
) -> None:
    there, back = both_ways(flow.with_settings(naming="identity"))
    fill(there.source_servers, topic, ["from nyc"])
    there.mirror()
    allow_copying(back, topic, lon, nyc)

    result = as_mirror(back, guarded).mirror()

    assert [finding.message for finding in result.findings if finding.kind is FindingKind.NOT_ALLOWED] == [
        f"{topic} is not copied: it could send back what {there.flow.name} brought: cluster {back.flow.source}: "
        f"User:{MIRROR} is not allowed DESCRIBE on topic {internal_topics(there)}journal.internal, so what it brought "
        "is not known"
    ]
    assert result.recorded.records == 0
    assert [record.value for record in there.read_source(topic)[0]] == [b"from nyc"]


def test_nothing_is_sent_back_where_the_other_journal_may_not_be_read(
    flow: Twins, topic: str, nyc: Hand, lon: Hand, guarded: KafkaClusters
) -> None:
    there, back = both_ways(flow.with_settings(naming="identity"))
    fill(there.source_servers, topic, ["from nyc"])
    there.mirror()
    # What is recorded need not be read again.
    shutil.rmtree(there.topology.ledger)
    allow_copying(back, topic, lon, nyc)
    journal = f"{internal_topics(there)}journal.internal"
    lon.allow(MIRROR, "DESCRIBE", journal)

    result = as_mirror(back, guarded).mirror()

    (finding,) = [finding for finding in result.findings if finding.kind is FindingKind.NOT_ALLOWED]
    assert f"User:{MIRROR} is not allowed READ on topic {journal}" in finding.message
    assert [record.value for record in there.read_source(topic)[0]] == [b"from nyc"]


def test_prefixed_names_both_ways_need_nothing_of_the_other_direction(
    flow: Twins, topic: str, nyc: Hand, lon: Hand, guarded: KafkaClusters
) -> None:
    there, back = both_ways(flow)
    there.mirror()
    lon.create(topic)
    fill(back.source_servers, topic, ["from lon"])
    allow_copying(back, topic, lon, nyc)

    result = as_mirror(back, guarded).mirror()

    assert result.recorded.records == 1
    assert [finding for finding in result.findings if finding.kind is FindingKind.NOT_ALLOWED] == []
    assert not any(internal_topics(there) in warning for warning in result.warnings)


def test_what_may_have_come_from_the_target_is_left_alone_where_the_memory_of_it_may_not_be_seen(
    flow: Twins, topic: str, nyc: Hand, lon: Hand, guarded: KafkaClusters
) -> None:
    there, back = both_ways(flow.with_settings(naming="identity"))
    deleted = f"{topic}-deleted"
    nyc.create(deleted)
    sync(there)
    nyc.delete(deleted)
    lon.set(topic, retention_ms="5000")
    for name in (topic, deleted):
        allow_copying(back, name, lon, nyc)
    nyc.allow(MIRROR, "ALTER_CONFIGS", topic)

    found = sync(as_mirror(back, guarded))

    assert rows(found) == []
    assert found.failed == (
        f"cluster {back.flow.source}: User:{MIRROR} is not allowed DESCRIBE on topic {internal_topics(there)}made."
        f"internal, so no ACL or quota is compared, and topics that may have come from {back.flow.target} are neither "
        "created there nor are their settings compared",
    )
    assert deleted not in nyc.topics()
    assert "retention.ms" not in nyc.overrides(topic)
