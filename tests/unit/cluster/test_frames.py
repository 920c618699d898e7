from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import InvalidReceiveError

from twinlog.cluster.frames import Frame, FrameReader


def framed(*answers: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(answer)) + answer for answer in answers)


def reader() -> FrameReader:
    return FrameReader(lambda _size: None)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


@given(st.lists(st.binary(min_size=4, max_size=60), max_size=6), st.lists(st.integers(1, 50), min_size=1))
def test_however_the_stream_is_cut_the_frames_are_the_same(answers: list[bytes], cuts: list[int]) -> None:
    ours, theirs = socket.socketpair()
    stream, frames, number = framed(*answers), reader(), 0
    found: list[bytes] = []
    with ours, theirs:
        ours.setblocking(False)
        while stream:
            size = cuts[number % len(cuts)]
            theirs.sendall(stream[:size])
            stream, number = stream[size:], number + 1
            came, ended = frames.receive(ours, None)
            assert ended is None
            found += map(bytes, came)

    assert found == answers


def test_what_came_before_the_end_is_given_before_the_end(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    frames = reader()
    theirs.sendall(framed(b"your password is wrong"))
    theirs.close()

    came, ended = frames.receive(ours, None)
    nothing, after = frames.receive(ours, None)

    assert ([bytes(frame) for frame in came], ended, nothing) == ([b"your password is wrong"], None, [])
    assert "the broker closed the connection" in str(after)


def test_one_turn_reads_little_more_than_its_share(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    frames = reader()
    theirs.sendall(framed(*[b"x" * 1_000] * 100))

    first, _ = frames.receive(ours, 10_000)
    second, _ = frames.receive(ours, None)

    assert (len(first), len(first) + len(second)) == (10, 100)


@pytest.mark.parametrize("size", [-1, 0, 3])
def test_a_length_that_no_answer_has_is_refused(pair: tuple[socket.socket, socket.socket], size: int) -> None:
    ours, theirs = pair
    theirs.sendall(struct.pack(">i", size))
    with pytest.raises(InvalidReceiveError):
        reader().receive(ours, None)


def test_a_length_is_checked_before_memory_is_taken_for_it(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.sendall(b"HTTP")

    def refuse(size: int) -> None:
        raise InvalidReceiveError(str(size))

    with pytest.raises(InvalidReceiveError, match=str(0x48545450)):
        FrameReader(refuse).receive(ours, None)


def test_the_rest_of_a_frame_is_read_without_a_copy() -> None:
    frame = Frame(6)
    frame[:] = b"abcdef"

    assert frame.read(2) == b"ab"
    rest = frame.read()
    frame[2] = ord("C")

    assert isinstance(rest, memoryview)
    assert bytes(rest) == b"Cdef"
    assert frame.tell() == 6
