"""The reader of Java .properties files, by the examples of its specification and by round trips."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import ImportSourceError
from twinlog.intake import properties


def only(text: str) -> tuple[str, str]:
    (entry,) = properties.parse(text).entries
    return entry.key, entry.value


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("clusters = NYC, LON", "clusters", "NYC, LON"),
        ("a=b", "a", "b"),
        ("a:b", "a", "b"),
        ("a b", "a", "b"),
        ("a\t \tb", "a", "b"),
        ("   a   :   b  ", "a", "b  "),
        ("a = = b", "a", "= b"),
        ("a", "a", ""),
        ("a =", "a", ""),
        (r"a\ b\=c\:d = e", "a b=c:d", "e"),
        (r"\#a = b", "#a", "b"),
        ("NYC->LON.enabled = true", "NYC->LON.enabled", "true"),
        ("NYC->LON.topics = prod\\\\..*", "NYC->LON.topics", r"prod\..*"),
        # A single backslash before a character that is no escape vanishes, as Java has it.
        (r"topics = prod\..*", "topics", "prod..*"),
        (r"a = \t\n\r\f\\", "a", "\t\n\r\f\\"),
        (r"a = \u00e9\u20AC", "a", "é€"),
        (r"a = \ud83d\ude00", "a", "😀"),
        ("a = one,\\\n    two,\\\r\n\tthree", "a", "one,two,three"),
        # A comment sign in a continued line is text, and a continuation at the file's end is just the end.
        ("a = one\\\n# two", "a", "one# two"),
        ("a = one\\", "a", "one"),
        ("a = even\\\\\n#c", "a", "even\\"),
        ("a\\\n  b = c", "ab", "c"),
        ("a = é", "a", "é"),
        ("= b", "", "b"),
    ],
)
def test_one_entry(text: str, key: str, value: str) -> None:
    assert only(text) == (key, value)


@pytest.mark.parametrize("text", ["", "\n\n", "# a = b", "  ! a = b", "\f \t"])
def test_nothing_in_it(text: str) -> None:
    assert properties.parse(text).entries == ()


def test_lines_count_from_one_through_comments_and_continuations() -> None:
    text = "# head\n\na = 1\nb = x,\\\n  y\nc = 3\n"
    assert [(e.key, e.line) for e in properties.parse(text).entries] == [("a", 3), ("b", 4), ("c", 6)]


def test_the_last_of_two_counts_and_the_first_is_not_forgotten() -> None:
    read = properties.parse("a = 1\nb = 2\na = 3\n")
    assert read.as_dict() == {"b": "2", "a": "3"}
    assert [(e.key, e.value, e.line) for e in read.shadowed] == [("a", "1", 1)]


@pytest.mark.parametrize("text", [r"a = \u12", r"a = \u12xy", r"a = \u", r"\uzzzz = b"])
def test_a_broken_unicode_escape_names_its_line(text: str) -> None:
    with pytest.raises(ImportSourceError, match=r"mm2\.properties:2: .*four hexadecimal digits"):
        properties.parse("# first\n" + text, "mm2.properties")


def test_a_missing_file_is_one_sentence(tmp_path) -> None:
    with pytest.raises(ImportSourceError, match=r"absent\.properties could not be read: No such file"):
        properties.read(tmp_path / "absent.properties")


def test_files_are_latin_1_as_java_reads_them(tmp_path) -> None:
    path = tmp_path / "x.properties"
    path.write_bytes(b"a = caf\xe9\n")
    assert properties.read(path).as_dict() == {"a": "café"}


def escaped(text: str, *, key: bool) -> str:
    """Text as `Properties.store` would write it."""
    special = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
    out = []
    for at, char in enumerate(text):
        if char in special:
            out.append(special[char])
        elif char in "=:#!" or (char == " " and (key or at == 0)):
            out.append("\\" + char)
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be")
            out.extend(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
    return "".join(out)


@given(st.dictionaries(st.text(), st.text()))
def test_whatever_java_would_store_is_read_back(pairs: dict[str, str]) -> None:
    text = "".join(f"{escaped(k, key=True)}={escaped(v, key=False)}\n" for k, v in pairs.items())
    assert properties.parse(text).as_dict() == pairs


@given(st.text(alphabet=" \t\f\r\n\\=:#!abu0"))
def test_any_text_is_read_or_refused_with_our_error(text: str) -> None:
    try:
        entries = properties.parse(text, "f").entries
    except ImportSourceError as error:
        assert str(error).startswith("f:")  # noqa: PT017 - refusal is one of two right answers
    else:
        assert len({e.key for e in entries}) == len(entries)
