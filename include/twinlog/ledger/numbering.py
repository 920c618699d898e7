"""Gives partitions numbers, so that columns of (topic, partition) become one array of integers.

The number is found by two look-ups in arrays and no hashing a row: the topic's code gives the place where its
partitions begin, and the partition is added to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Numbers = NDArray[np.int32]

UNKNOWN = -1


class Numbering:
    """The number of (key, partition) is its place in the two sequences it is made from."""

    def __init__(self, keys: Sequence[str], partitions: Sequence[int]) -> None:
        widths: dict[str, int] = {}
        for key, partition in zip(keys, partitions, strict=True):
            widths[key] = max(widths.get(key, 0), partition + 1)
        begins = np.concatenate(([0], np.cumsum(list(widths.values()), dtype=np.int64)))
        self._begin = {key: int(begin) for key, begin in zip(widths, begins[:-1], strict=True)}
        self._widths = widths
        self._slots: Numbers = np.full(int(begins[-1]) + 1, UNKNOWN, dtype=np.int32)
        for number, (key, partition) in enumerate(zip(keys, partitions, strict=True)):
            self._slots[self._begin[key] + partition] = number

    def find(self, keys: pa.ChunkedArray, partitions: NDArray[np.int32]) -> Numbers:
        """The numbers of these rows; UNKNOWN for those that have none."""
        values, codes = dictionary(keys)
        begins = np.asarray([self._begin.get(value, 0) for value in values], dtype=np.int64)
        widths = np.asarray([self._widths.get(value, 0) for value in values], dtype=np.int64)
        if not len(codes):
            return np.empty(0, dtype=np.int32)
        known = (partitions >= 0) & (partitions < widths[codes])
        slots = begins[codes]
        slots += partitions
        # The last slot belongs to nobody.
        slots[~known] = len(self._slots) - 1
        return self._slots[slots]


def dictionary(column: pa.ChunkedArray | pa.Array) -> tuple[list[str], NDArray[np.int32]]:
    """A text column as its distinct values and each row's place among them."""
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = column.unify_dictionaries()
    if column.num_chunks == 0:
        return [], np.empty(0, dtype=np.int32)
    codes = [chunk.indices.to_numpy(zero_copy_only=False).astype(np.int32) for chunk in column.chunks]
    return column.chunk(0).dictionary.to_pylist(), np.concatenate(codes)
