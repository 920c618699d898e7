"""The subject of a certificate as Kafka names who shows it: X.500 names in the form of RFC 2253, the last part first.

Only as much of DER is read as leads to the subject, so that Spark's workers need no library for it.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator

_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_VERSION = 0xA0
"""The tag of the one field that may stand before the serial number."""
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ENCODINGS = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "utf-8", 0x1E: "utf-16-be"}


def subject_of(pem: str) -> str | None:
    """The subject of the first certificate in a text, which is whose the others vouch for; None where none is found."""
    found = _CERTIFICATE.search(pem)
    if found is None:
        return None
    try:
        ((_, certificate, _),) = _fields(ssl.PEM_cert_to_DER_cert(found.group()))
        _, signed, _ = next(_fields(certificate))
        fields = list(_fields(signed))
        # Serial number, algorithm, issuer and validity come before it.
        _, subject, _ = fields[5 if fields[0][0] == _VERSION else 4]
        parts = [_part(content) for _, content, _ in _fields(subject)]
    except (ValueError, IndexError, StopIteration):
        return None
    return ",".join(reversed(parts))


def _fields(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """The tag, the content and the whole of each element."""
    at = 0
    while at < len(data):
        first = data[at + 1]
        more = first & 0x7F if first & 0x80 else 0
        length = int.from_bytes(data[at + 2 : at + 2 + more]) if more else first
        begin = at + 2 + more
        if begin + length > len(data):
            raise ValueError("an element ends beyond what it is part of")
        yield data[at], data[begin : begin + length], data[at : begin + length]
        at = begin + length


def _part(content: bytes) -> str:
    """One part of a name, of one or several attributes."""
    return "+".join(_attribute(pair) for _, pair, _ in _fields(content))


def _attribute(pair: bytes) -> str:
    (_, encoded, _), (tag, value, whole) = _fields(pair)
    kind = _dotted(encoded)
    if kind not in _KEYWORDS or tag not in _ENCODINGS:
        return f"{kind}=#{whole.hex()}"
    return f"{_KEYWORDS[kind]}={_escaped(value.decode(_ENCODINGS[tag]))}"


def _dotted(encoded: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in encoded:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _escaped(text: str) -> str:
    escaped = re.sub(r'([,+"\\<>;])', r"\\\1", text)
    if escaped[:1] in ("#", " "):
        escaped = "\\" + escaped
    if escaped.endswith(" ") and len(text) > 1:
        escaped = escaped[:-1] + "\\ "
    return escaped
