"""Histograms of recorded times: HdrHistogram V2, as the journal has them."""

from __future__ import annotations

import base64
import struct
from typing import Dict, Iterator, List, Tuple


class Histogram:
    """Counts of values, each in a bucket that is at most 0.1 % wide (three significant digits)."""

    def __init__(self, lowest: int = 1, digits: int = 3) -> None:
        """Makes an empty histogram; `lowest` is the smallest value that is told from 0."""
        self._lowest = max(lowest, 1)
        self._digits = digits
        self._unit_magnitude = self._lowest.bit_length() - 1
        largest_exact = 2 * 10**digits
        self._sub_bits = max((largest_exact - 1).bit_length(), 1)
        self._half = 1 << (self._sub_bits - 1)
        self._counts: Dict[int, int] = {}

    @classmethod
    def decode(cls, text: str) -> "Histogram":
        """Reads the base64 of an uncompressed V2 histogram.

        Raises ValueError if it is another format or incomplete.
        """
        data = base64.b64decode(text)
        if len(data) < _HEAD.size:
            raise ValueError("the histogram is shorter than its head")
        cookie, length, offset, digits, lowest, _highest, _ratio = _HEAD.unpack_from(data)
        if cookie & ~0xF0 != _COOKIE:
            raise ValueError(f"not an uncompressed HdrHistogram V2: cookie {cookie:#x}")
        if len(data) < _HEAD.size + length or offset != 0 or not 0 <= digits <= 5:
            raise ValueError("the histogram is incomplete or of another kind")
        histogram = cls(lowest, digits)
        index = 0
        for count in _zigzag(data[_HEAD.size : _HEAD.size + length]):
            if count < 0:
                index += -count
                continue
            if count:
                histogram._counts[index] = count
            index += 1
        return histogram

    @property
    def count(self) -> int:
        """Number of values."""
        return sum(self._counts.values())

    def buckets(self) -> List[Tuple[int, int, int]]:
        """Returns the buckets that hold values: lowest value, highest value, count."""
        return [(*self._range(index), self._counts[index]) for index in sorted(self._counts)]

    def quantile(self, share: float) -> float:
        """Returns the highest value of the bucket that holds this quantile; NaN if it is empty.

        Raises ValueError for a share outside 0 to 1.
        """
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"a quantile is between 0 and 1, not {share}")
        due = max(share * self.count, 1.0)
        seen = 0
        for index in sorted(self._counts):
            seen += self._counts[index]
            # Rounding of the product must not lead to the next bucket.
            if seen >= due - 1e-9 * max(due, 1.0):
                return float(self._range(index)[1])
        return float("nan")

    def mean(self) -> float:
        """Returns the mean, each value taken as the middle of its bucket; NaN if it is empty."""
        count = self.count
        if count == 0:
            return float("nan")
        total = 0.0
        for low, high, number in self.buckets():
            total += (low + (high + 1 - low) // 2 if high > low else low) * number
        return total / count

    def add(self, other: "Histogram") -> None:
        """Adds the counts of another histogram with the same resolution.

        Raises ValueError for another resolution.
        """
        if (self._lowest, self._digits) != (other._lowest, other._digits):
            raise ValueError("the histograms have different resolutions")
        for index, count in other._counts.items():
            self._counts[index] = self._counts.get(index, 0) + count

    def _range(self, index: int) -> Tuple[int, int]:
        bucket = (index >> (self._sub_bits - 1)) - 1
        sub = (index & (self._half - 1)) + self._half
        if bucket < 0:
            sub -= self._half
            bucket = 0
        shift = bucket + self._unit_magnitude
        low = sub << shift
        return low, low + (1 << shift) - 1


def _zigzag(data: bytes) -> Iterator[int]:
    """Reads ZigZag LEB128 numbers of at most 64 bits; the ninth byte has eight bits."""
    place = 0
    while place < len(data):
        value = shift = 0
        while True:
            if place >= len(data):
                raise ValueError("the histogram ends within a number")
            byte = data[place]
            place += 1
            if shift == 56:
                value |= byte << shift
                break
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        yield (value >> 1) ^ -(value & 1)


_HEAD = struct.Struct(">iiiiqqd")
_COOKIE = 0x1C849303
