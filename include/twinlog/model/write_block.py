"""Who may no longer write to the topics of a source that gives its place away: everybody who could, but us.

A denial to everybody would hit the mirror too, which may write there under the same names from then on. So those are
denied who are allowed, one by one; nobody is where a topic names nobody, since a first ACL on it would change who may
read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from twinlog.model.acls import EVERYBODY, TOPIC, Acl, Pattern

_WRITES = ("WRITE", "ALL")


@dataclass(frozen=True)
class WriteBlock:
    """Denials to add, and why some topics stay open, each a sentence."""

    denials: tuple[Acl, ...] = ()
    open: tuple[str, ...] = ()


def write_block(acls: Iterable[Acl], topics: Sequence[str], us: str, *, we_write_there: bool) -> WriteBlock:
    """`acls` are the cluster's; `we_write_there` says that a flow the other way writes to topics of these names."""
    allowing = [
        acl for acl in acls if acl.resource_type == TOPIC and acl.permission == "ALLOW" and acl.operation in _WRITES
    ]
    denials: set[Acl] = set()
    unnamed: list[str] = []
    everybody: list[str] = []
    for topic in topics:
        writers = {acl.principal for acl in allowing if acl.covers(topic)} - {us}
        if EVERYBODY in writers and we_write_there:
            everybody.append(topic)
            writers.discard(EVERYBODY)
        elif not writers:
            unnamed.append(topic)
        denials |= {Acl(TOPIC, topic, Pattern.LITERAL, writer, "*", "WRITE", "DENY") for writer in writers}
    return WriteBlock(
        tuple(sorted(denials)),
        (
            *_said(
                everybody,
                "everybody is allowed to write to",
                "a denial to everybody would hit the flow that writes there from now on",
            ),
            *_said(unnamed, "no ACL says who may write to", "nobody is denied it"),
        ),
    )


def _said(topics: Sequence[str], what: str, so: str) -> Iterable[str]:
    if topics:
        named = ", ".join(topics[:3]) + (f" and {len(topics) - 3:,} more" if len(topics) > 3 else "")
        yield f"{what} {named}, so {so}"
