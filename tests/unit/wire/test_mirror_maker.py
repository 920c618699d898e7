"""MirrorMaker 2's records: the bytes by its schemas, there and back, and what is none of them.

That its own classes read these bytes is shown by tests/integration/test_mirror_maker_client.py.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import MirrorMakerFormatError
from twinlog.model.offsets import TopicPartition
from twinlog.wire.mirror_maker import Checkpoint, Heartbeat, OffsetSync

Sign = Heartbeat | Checkpoint | OffsetSync

NAMES = st.text(max_size=40)
INT64 = st.integers(-(2**63), 2**63 - 1)
PARTITIONS = st.builds(TopicPartition, NAMES, st.integers(0, 2**31 - 1))
SIGNS = st.one_of(
    st.builds(Heartbeat, NAMES, NAMES, INT64),
    st.builds(Checkpoint, NAMES, PARTITIONS, INT64, INT64, NAMES),
    st.builds(OffsetSync, PARTITIONS, INT64, INT64),
)


@given(SIGNS)
def test_what_is_encoded_is_decoded(sign: Sign) -> None:
    assert type(sign).decode(sign.key(), sign.value(), "here") == sign


@given(st.builds(Checkpoint, NAMES, PARTITIONS, INT64, INT64, NAMES, st.none() | st.frozensets(INT64, max_size=3)))
def test_what_we_add_to_a_checkpoint_lies_behind_its_last_field(sign: Checkpoint) -> None:
    plain = Checkpoint(sign.group, sign.target, sign.upstream_offset, sign.downstream_offset, sign.metadata)
    assert Checkpoint.decode(sign.key(), sign.value(), "here") == sign
    assert sign.value().startswith(plain.value())


@given(SIGNS, st.data())
def test_a_cut_record_is_refused_with_its_place(sign: Sign, data: st.DataObject) -> None:
    key, value = sign.key(), sign.value()
    if data.draw(st.booleans()):
        key = key[: data.draw(st.integers(0, len(key) - 1))]
    else:
        value = value[: data.draw(st.integers(0, len(value) - 1))]
    with pytest.raises(MirrorMakerFormatError, match="heartbeats-0@7"):
        type(sign).decode(key, value, "heartbeats-0@7")


@pytest.mark.parametrize(
    ("sign", "key", "value"),
    [
        (Heartbeat("nyc", "lon", 258), "0003 6e7963 0003 6c6f6e", "0000 0000000000000102"),
        (
            Checkpoint("g", TopicPartition("nyc.t", 3), 5, 4, "ü"),
            "0001 67 0005 6e79632e74 00000003",
            "0000 0000000000000005 0000000000000004 0002 c3bc",
        ),
        (OffsetSync(TopicPartition("t", 1), -1, 9), "0001 74 00000001", "ffffffffffffffff 0000000000000009"),
    ],
)
def test_the_bytes_are_those_of_the_schemas(sign: Sign, key: str, value: str) -> None:
    assert (sign.key(), sign.value()) == (bytes.fromhex(key), bytes.fromhex(value))


@given(SIGNS, st.binary(min_size=1, max_size=9))
def test_bytes_after_the_last_field_are_passed_over(sign: Sign, more: bytes) -> None:
    assert type(sign).decode(sign.key() + more, sign.value() + more, "here") == sign


@pytest.mark.parametrize("sign", [Heartbeat("a", "b", 1), Checkpoint("g", TopicPartition("t", 0), 1, 1)])
def test_another_version_is_not_taken_for_damage(sign: Heartbeat | Checkpoint) -> None:
    with pytest.raises(MirrorMakerFormatError, match="version 1, this twinlog reads 0; use a newer twinlog"):
        type(sign).decode(sign.key(), b"\0\1" + sign.value()[2:], "here")


@pytest.mark.parametrize("key", [b"\xff\xff", b"\0\2\xff\xff\0\0"], ids=["negative length", "no UTF-8"])
def test_texts_that_are_none_are_refused(key: bytes) -> None:
    with pytest.raises(MirrorMakerFormatError, match="not a record of MirrorMaker 2"):
        Heartbeat.decode(key, Heartbeat("a", "b", 1).value(), "here")
