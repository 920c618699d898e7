from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from support.record_bytes import CODECS, SOURCE, Row, make_batch, rows
from twinlog.wire.added_header import with_header
from twinlog.wire.batches import Batch, read_batches
from twinlog.wire.records import Header, open_record, read_raw


@settings(max_examples=60, deadline=None)
@given(st.lists(rows, min_size=1, max_size=4), st.sampled_from(CODECS), st.binary(max_size=200))
def test_a_header_is_added_behind_the_others(batch_rows: list[Row], codec: int, value: bytes) -> None:
    (batch,) = read_batches(memoryview(make_batch(batch_rows, 7, codec)), SOURCE, 7)
    assert isinstance(batch, Batch)
    for raw in read_raw(batch, SOURCE):
        before = open_record(raw, SOURCE)
        after = open_record(raw._replace(content=with_header(raw.content, b"from", value)), SOURCE)
        assert after == before._replace(headers=(*before.headers, Header(b"from", value)))
