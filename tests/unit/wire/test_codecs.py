from __future__ import annotations

import kafka.codec
import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from support.record_bytes import CODECS
from twinlog.wire.codecs import Codec, CodecError, compress, decompress

_THEIRS = {
    Codec.NONE: (bytes, bytes),
    Codec.GZIP: (kafka.codec.gzip_encode, kafka.codec.gzip_decode),
    Codec.SNAPPY: (kafka.codec.snappy_encode, kafka.codec.snappy_decode),
    Codec.LZ4: (kafka.codec.lz4_encode, kafka.codec.lz4_decode),
    Codec.ZSTD: (kafka.codec.zstd_encode, kafka.codec.zstd_decode),
}
_BIG = b"".join(b"%d," % number for number in range(60_000))  # several blocks of every framing


@pytest.mark.parametrize("codec", Codec)
@settings(max_examples=25, deadline=None)
@given(data=st.binary(min_size=1, max_size=300) | st.just(_BIG))
def test_opens_what_kafka_python_writes_and_the_other_way(codec: Codec, data: bytes) -> None:
    encode, decode = _THEIRS[codec]
    assert decompress(codec, encode(data)) == data
    assert decode(compress(codec, data)) == data


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec])
@pytest.mark.parametrize("cut", [1, 5, 1000])
def test_truncated_data_is_an_error_and_never_a_shorter_answer(codec: int, cut: int) -> None:
    with pytest.raises(CodecError):
        decompress(codec, compress(codec, _BIG)[:-cut])


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec])
def test_garbage_is_an_error(codec: int) -> None:
    with pytest.raises(CodecError):
        decompress(codec, b"\xde\xad\xbe\xef" * 20)


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(CodecError, match="compression 6"):
        decompress(6, b"")
    with pytest.raises(CodecError, match="compression 6"):
        compress(6, b"")


def test_bare_snappy_without_framing_is_read() -> None:
    assert decompress(Codec.SNAPPY, kafka.codec.snappy_encode(_BIG, xerial_compatible=False)) == _BIG


def test_lz4_blocks_are_independent_as_kafka_demands() -> None:
    assert lz4.frame.get_frame_info(compress(Codec.LZ4, _BIG))["block_linked"] is False


@pytest.mark.parametrize("options", [{}, {"store_size": False}, {"block_checksum": True}, {"block_size": 7}])
def test_lz4_of_format_0_is_read_in_spite_of_its_header_checksum(options: dict[str, object]) -> None:
    frame = bytearray(lz4.frame.compress(_BIG, block_linked=False, **options))
    checksum_at = 6 + (8 if frame[4] & 0x08 else 0)
    frame[checksum_at] ^= 0xFF
    assert decompress(Codec.LZ4, bytes(frame), format_0=True) == _BIG


def test_several_zstd_frames_in_a_row_are_read() -> None:
    frame = zstandard.ZstdCompressor().compress(b"abc")
    assert decompress(Codec.ZSTD, frame + frame) == b"abcabc"
