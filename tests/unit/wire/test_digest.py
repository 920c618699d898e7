from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from support.record_bytes import CODECS, SOURCE, Row, make_batch, rows
from support.selecting import produced, selecting
from twinlog.wire.batches import Batch, read_batches
from twinlog.wire.digest import EMPTY, chain, digest_batch, digest_records, text
from twinlog.wire.records import read_raw


def _read(data: bytes) -> Batch:
    (batch,) = read_batches(memoryview(data), SOURCE, 0)
    assert isinstance(batch, Batch)
    return batch


def _digest(data: bytes) -> int:
    header, body = _read(data)
    return digest_batch(header.codec, header.base_timestamp_ms, header.record_count, body)


@settings(max_examples=40, deadline=None)
@given(st.lists(rows, min_size=1, max_size=5), st.sampled_from(CODECS), st.sampled_from([0, 0x10, 0x40]))
def test_source_and_target_have_the_same_digest_where_a_batch_went_whole(
    batch_rows: list[Row], codec: int, bits: int
) -> None:
    source = make_batch(batch_rows, 77, codec, attributes=bits, producer_id=5)
    (batch,) = selecting(source, 77).batches
    assert batch.runs[0].digest == _digest(source) == _digest(produced(batch))


def test_runs_of_a_batch_with_holes_are_digested_as_records() -> None:
    source = make_batch([Row(value=b"%d" % n) for n in range(5)], 10, deltas=[0, 1, 4, 5, 6])
    (batch,) = selecting(source, 10).batches
    target = read_raw(_read(produced(batch)), SOURCE)
    assert [run.digest for run in batch.runs] == [digest_records(target[:2]), digest_records(target[2:])]
    assert digest_records(target[:2]) == digest_records(read_raw(_read(source), SOURCE)[:2])


def test_an_encoded_batch_without_holes_is_digested_whole() -> None:
    source = make_batch([Row(), Row()], 10, attributes=0x08)
    (batch,) = selecting(source, 10).batches
    assert batch.runs[0].digest == _digest(produced(batch))


def test_any_difference_shows() -> None:
    base = [Row(timestamp=5, key=b"k", value=b"v"), Row(timestamp=6)]
    digests = {
        _digest(make_batch(changed, codec=codec))
        for codec, changed in [
            (0, base),
            (0, [*base, Row(timestamp=6)]),
            (0, base[::-1]),
            (0, [Row(timestamp=5, key=b"v", value=b"k"), base[1]]),
            (0, [Row(timestamp=5, key=None, value=b"v"), base[1]]),
            (0, [Row(timestamp=6, key=b"k", value=b"v"), Row(timestamp=7)]),
        ]
    }
    assert len(digests) == 6


def test_a_chain_depends_on_order_and_on_every_piece() -> None:
    one, two = digest_records([]), _digest(make_batch([Row()]))
    assert (
        len({chain(EMPTY, one), chain(EMPTY, two), chain(chain(EMPTY, one), two), chain(chain(EMPTY, two), one)}) == 4
    )


def test_text_is_sixteen_digits() -> None:
    assert text(EMPTY) == "0" * 16
    assert len(text(chain(EMPTY, _digest(make_batch([Row()]))))) == 16
