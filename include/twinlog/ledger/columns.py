"""Journal records to ledger rows, a column at a time.

The bytes are those of `twinlog.wire.journal`: a key of fixed length, a value of a fixed head, gaps, and
four texts. Heads and gaps are read by numpy as arrays of structures; the tail of texts is the same for
every segment that a run writes for a topic, so each distinct tail is decoded once. A record that does not
fit this picture goes to `journal.decode`, whose error names the record and what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa

from twinlog.ledger.schema import GAP_COLUMNS, IN_MEMORY, TEXT
from twinlog.model.offsets import GapKind
from twinlog.wire import digest, journal

_KEY = np.dtype(
    [
        ("version", "u1"),
        ("source_id", "V16"),
        ("target_id", "V16"),
        ("partition", ">i4"),
        ("span_start", ">i8"),
    ]
)
_HEAD = np.dtype(
    [
        ("version", "u1"),
        ("target_start", ">i8"),
        ("count", ">i8"),
        ("first_timestamp_ms", ">i8"),
        ("last_timestamp_ms", ">i8"),
        ("bytes", ">i8"),
        ("digest", ">u8"),
        ("copied_at_ms", ">i8"),
        ("source_seen_end", ">i8"),
        ("source_epoch", ">i8"),
        ("gaps", "u1"),
    ]
)
_GAP = np.dtype([("kind", "u1"), ("offsets", ">i8")])
_IDS = slice(1, 33)
_GAP_COUNT_AT = _HEAD.itemsize - 1
_KINDS = tuple(GapKind)
_TEXTS = ("flow", "run", "source_topic", "target_topic")


class RawEntry(NamedTuple):
    """One journal record as it was read; a tuple, since there are millions."""

    key: bytes
    value: bytes
    topic: str
    partition: int
    offset: int

    @property
    def where(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"


def to_table(entries: Sequence[RawEntry]) -> pa.Table:
    """The ledger rows of `entries`, in their order; raises JournalFormatError for one that is no entry."""
    if not entries:
        return IN_MEMORY.empty_table()
    entries = [entry._replace(value=journal.current(entry.value)) if _is_earlier(entry) else entry for entry in entries]
    _check(entries)
    keys = np.frombuffer(b"".join(entry.key for entry in entries), dtype=_KEY)
    heads = np.frombuffer(b"".join(entry.value[: _HEAD.itemsize] for entry in entries), dtype=_HEAD)
    columns: dict[str, Any] = {
        "partition": keys["partition"].astype(np.int32),
    }
    for name in _HEAD.names or ():
        if name not in ("version", "digest", "gaps"):
            columns[name] = heads[name].astype(np.int64)
    columns["digest"] = [digest.text(value) for value in heads["digest"].tolist()]
    gaps = _gap_columns(entries, heads["gaps"])
    columns.update(gaps)
    columns["source_start"] = keys["span_start"].astype(np.int64) + sum(gaps.values())
    columns.update(_id_columns(entries))
    columns.update(_text_columns(entries, heads["gaps"]))
    return pa.table([columns[name] for name in IN_MEMORY.names], schema=IN_MEMORY)


def _is_earlier(entry: RawEntry) -> bool:
    return entry.value[:1] < bytes([journal.VERSION])


def _check(entries: Sequence[RawEntry]) -> None:
    for entry in entries:
        key, value = entry.key, entry.value
        regular = (
            len(key) == _KEY.itemsize
            and len(value) >= _HEAD.itemsize
            and (key[0], value[0]) == (journal.KEY_VERSION, journal.VERSION)
            and len(value) >= _HEAD.itemsize + value[_GAP_COUNT_AT] * _GAP.itemsize
        )
        if not regular:
            journal.decode(key, value, entry.where)


def _gap_columns(entries: Sequence[RawEntry], counts: np.ndarray) -> dict[str, np.ndarray]:
    flat = np.frombuffer(
        b"".join(
            entry.value[_HEAD.itemsize : _HEAD.itemsize + count * _GAP.itemsize]
            for entry, count in zip(entries, counts.tolist(), strict=True)
            if count
        ),
        dtype=_GAP,
    )
    rows = np.repeat(np.arange(len(entries)), counts)
    unknown = np.flatnonzero(flat["kind"] >= len(_KINDS))
    if len(unknown):
        odd = entries[rows[unknown[0]]]
        journal.decode(odd.key, odd.value, odd.where)
    columns = {}
    for code, kind in enumerate(_KINDS):
        column = np.zeros(len(entries), dtype=np.int64)
        chosen = flat["kind"] == code
        column[rows[chosen]] = flat["offsets"][chosen]
        columns[GAP_COLUMNS[kind]] = column
    return columns


def _id_columns(entries: Sequence[RawEntry]) -> dict[str, pa.Array]:
    codes, distinct = _encode(entry.key[_IDS] for entry in entries)
    return {
        "source_topic_id": _dictionary(codes, [str(UUID(bytes=ids[:16])) for ids in distinct]),
        "target_topic_id": _dictionary(codes, [str(UUID(bytes=ids[16:])) for ids in distinct]),
    }


def _text_columns(entries: Sequence[RawEntry], gap_counts: np.ndarray) -> dict[str, pa.Array]:
    tails_at = (_HEAD.itemsize + gap_counts.astype(np.int64) * _GAP.itemsize).tolist()
    codes, _ = _encode(entry.value[at:] for entry, at in zip(entries, tails_at, strict=True))
    decoded = [journal.decode(entries[row].key, entries[row].value, entries[row].where) for row in _first_rows(codes)]
    texts = {
        "flow": [entry.flow for entry in decoded],
        "run": [entry.run for entry in decoded],
        "source_topic": [entry.segment.pair.source_topic for entry in decoded],
        "target_topic": [entry.segment.pair.target_topic for entry in decoded],
    }
    return {name: _dictionary(codes, texts[name]) for name in _TEXTS}


def _first_rows(codes: Sequence[int]) -> list[int]:
    """The first row of each code, in the codes' order."""
    _, rows = np.unique(np.asarray(codes, dtype=np.int32), return_index=True)
    return [int(row) for row in rows]


def _encode(values: Iterable[bytes]) -> tuple[list[int], list[bytes]]:
    known: dict[bytes, int] = {}
    codes = [known.setdefault(value, len(known)) for value in values]
    return codes, list(known)


def _dictionary(codes: Sequence[int], values: Sequence[str]) -> pa.Array:
    """Text column of `values[code]`; equal values of different codes are folded, as readers expect."""
    folded = {value: place for place, value in enumerate(dict.fromkeys(values))}
    places = np.asarray([folded[value] for value in values], dtype=np.int32)
    indices = places[np.asarray(codes, dtype=np.int32)]
    return pa.DictionaryArray.from_arrays(pa.array(indices), pa.array(list(folded), pa.string())).cast(TEXT)
