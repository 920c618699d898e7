"""The five compressions of record batches: bytes in, bytes out, framed as Kafka's Java clients do.

    none    the bytes themselves
    gzip    RFC 1952
    snappy  xerial's framing: 16 bytes of header, then blocks of at most 32 KB, each after its length;
            some clients write one bare block, which is read too
    lz4     the LZ4 frame format with independent blocks; messages of format 0 carry a wrong header checksum
    zstd    RFC 8878

Decompression takes all of its input or fails: a truncated frame is an error here, never a shorter answer.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from enum import IntEnum

import cramjam
import lz4.block
import lz4.frame
import zstandard

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_BLOCK_LENGTH = struct.Struct(">i")

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_BLOCK_WORD = struct.Struct("<I")
_LZ4_STORED = 0x80000000
_LZ4_HAS_CONTENT_SIZE = 0x08
_LZ4_HAS_BLOCK_CHECKSUM = 0x10
_LZ4_BLOCK_BYTES = {4: 64 * 1024, 5: 256 * 1024, 6: 1024 * 1024, 7: 4 * 1024 * 1024}

_LIBRARY_ERRORS = (
    zlib.error,
    OSError,  # gzip.BadGzipFile
    EOFError,
    RuntimeError,  # lz4.frame has no class of its own
    lz4.block.LZ4BlockError,
    zstandard.ZstdError,
    cramjam.DecompressionError,
    struct.error,
    IndexError,
)


class Codec(IntEnum):
    """The compression, as the lowest three bits of a batch's attributes give it."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CodecError(ValueError):
    """Compressed bytes that cannot be opened; whoever knows the place turns it into a CorruptBatchError."""


def compress(codec: int, data: bytes) -> bytes:
    """Compress with a codec that `Codec` names; the same input gives the same bytes."""
    if codec == Codec.NONE:
        return data
    if codec == Codec.GZIP:
        return gzip.compress(data, compresslevel=6, mtime=0)
    if codec == Codec.SNAPPY:
        return _compress_snappy(data)
    if codec == Codec.LZ4:
        # Kafka's reader refuses blocks that depend on earlier ones.
        framed: bytes = lz4.frame.compress(
            data, block_linked=False, store_size=False, block_size=lz4.frame.BLOCKSIZE_MAX64KB
        )
        return framed
    if codec == Codec.ZSTD:
        return zstandard.ZstdCompressor().compress(data)
    raise CodecError(f"compression {codec} is not one that this version knows")


def decompress(codec: int, data: bytes, *, format_0: bool = False) -> bytes:
    """Open compressed bytes, all of them; `format_0` is for lz4 inside messages of format 0."""
    try:
        if codec == Codec.NONE:
            return data
        if codec == Codec.GZIP:
            return gzip.decompress(data)
        if codec == Codec.SNAPPY:
            return _decompress_snappy(data)
        if codec == Codec.LZ4:
            return _decompress_lz4_blocks(data) if format_0 else bytes(lz4.frame.decompress(data))
        if codec == Codec.ZSTD:
            return _decompress_zstd(data)
    except _LIBRARY_ERRORS as error:
        raise CodecError(f"the {Codec(codec).name.lower()} data cannot be opened ({error})") from error
    raise CodecError(f"compression {codec} is not one that this version knows")


def _compress_snappy(data: bytes) -> bytes:
    out = bytearray(_XERIAL_HEADER)
    for at in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK_BYTES]))
        out += _BLOCK_LENGTH.pack(len(block))
        out += block
    return bytes(out)


def _decompress_snappy(data: bytes) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return bytes(cramjam.snappy.decompress_raw(data))
    out = bytearray()
    at = len(_XERIAL_HEADER)
    while at < len(data):
        (length,) = _BLOCK_LENGTH.unpack_from(data, at)
        at += _BLOCK_LENGTH.size
        if not 0 < length <= len(data) - at:
            raise CodecError(f"a snappy block says {length} bytes where {len(data) - at} are left")
        out += bytes(cramjam.snappy.decompress_raw(data[at : at + length]))
        at += length
    return bytes(out)


def _decompress_zstd(data: bytes) -> bytes:
    # zstandard's stream reader returns what it has when a frame is cut short, so the end is asked for.
    out = []
    rest = data
    while rest:
        frame = zstandard.ZstdDecompressor().decompressobj()
        out.append(frame.decompress(rest))
        if not frame.eof:
            raise CodecError("the zstd data ends in the middle of a frame")
        rest = frame.unused_data
    return b"".join(out)


def _decompress_lz4_blocks(data: bytes) -> bytes:
    """Open a frame whose header checksum is wrong: with format 0 it covered the frame's magic as well.

    The blocks themselves are sound, so they are opened one by one and the header's checksum is not looked at.
    """
    if not data.startswith(_LZ4_MAGIC):
        raise CodecError("the lz4 data has no frame header")
    flags = data[4]
    block_bytes = _LZ4_BLOCK_BYTES.get(data[5] >> 4 & 7)
    if block_bytes is None:
        raise CodecError("the lz4 frame header names an unknown block size")
    at = 7 + (8 if flags & _LZ4_HAS_CONTENT_SIZE else 0)
    out = bytearray()
    while True:
        (word,) = _LZ4_BLOCK_WORD.unpack_from(data, at)
        at += _LZ4_BLOCK_WORD.size
        if word == 0:
            return bytes(out)
        length = word & ~_LZ4_STORED
        if length > len(data) - at:
            raise CodecError(f"an lz4 block says {length} bytes where {len(data) - at} are left")
        block = data[at : at + length]
        out += block if word & _LZ4_STORED else lz4.block.decompress(block, uncompressed_size=block_bytes)
        at += length + (4 if flags & _LZ4_HAS_BLOCK_CHECKSUM else 0)
