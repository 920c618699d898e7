"""Writes docs/settings.md from the settings themselves: `python -m twinlog.model.settings_page > docs/settings.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from twinlog.model.clients import PROPERTIES, REFUSED, ROLES, ClientProperty
from twinlog.model.references import is_secret
from twinlog.model.settings import Setting, settings_of
from twinlog.model.topology import Cluster, Flow, Topology

_INTRODUCTION = """\
# Settings

<!-- Written by `make docs` from include/twinlog/model; change it there. -->

A topology is one YAML file (UTF-8) for the whole estate: `clusters`, `flows`, and what they share.

```yaml
clusters:
  nyc: {bootstrap.servers: "kafka.nyc.example.com:9092", connection: kafka_nyc}
  lon: {bootstrap.servers: "kafka.lon.example.com:9092", connection: kafka_lon}
ledger: ./ledger
defaults: {replication.factor: 3, schedule: "* * * * *"}
flows:
  nyc->lon:
    topics: ["prod\\\\..*", orders]
    sync: {configs: true, acls: true, group.offsets: true}
```

- **Keys** may be written with dots or nested: `sync: {configs: true}` is `sync.configs: true`. The same setting
  written twice is an error, and so is a key that nobody knows.
- **Values** mean what they say: only `true` and `false` are truth values (`yes`, `no`, `on` and `off` are texts), and
  `3` and `"3"` are the same. A list may be a YAML list or one text with commas; write a pattern that itself holds a
  comma in a list.
- **Patterns** are Python's regular expressions and must match a whole name.
- **`defaults`** holds settings for every flow; what a flow says itself is stronger.
- **`${env:NAME}`** stands for an environment variable, in any value. A variable that is not set is an error.
- **Secrets** (marked below) never stand in the file: write `${env:NAME}`, `${file:/path}` (the whole file) or
  `${file:/path:key}` (a key of a .properties file), or keep them in the Airflow connection that `connection` names.

*MM2* marks MirrorMaker 2's own names, with the defaults it has in Kafka 4.3. *Planned* marks settings that are read and
checked but that nothing acts on yet.
"""

_PRECEDENCE = """\
## Kafka client properties

A cluster may set them for all its clients (`request.timeout.ms`) or for one kind (`consumer.fetch.max.bytes`,
`producer.`, `admin.`); a flow for both its ends (`consumer.fetch.max.bytes`) or for one
(`source.consumer.fetch.max.bytes`, `target.producer.max.request.size`). Where several are given, the first of these
holds:

1. the flow's `source.consumer.X` (or `target.producer.X`, ...)
2. the flow's `consumer.X`
3. the cluster's `consumer.X`
4. the cluster's `X`, for the kinds of client that know it
5. the flow's `profile`, `lan` or `wan`, as in this table
"""


def page() -> str:
    """The whole page, as docs/settings.md must be."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield from _table("The file", list(settings_of(Topology).values()))
    yield from _table("A cluster", list(settings_of(Cluster).values()))
    sections: dict[str, list[Setting]] = {}
    for item in settings_of(Flow).values():
        sections.setdefault(item.section, []).append(item)
    for title, items in sections.items():
        yield from _table(f"A flow: {title[0].lower()}{title[1:]}", items)
    yield _PRECEDENCE
    yield "| property | of | lan | wan | does |"
    yield "|---|---|---|---|---|"
    yield from (_client_row(item) for item in PROPERTIES.values())
    yield "\nThese have no effect here and are refused, so that nobody relies on them:\n"
    yield "| property | why |"
    yield "|---|---|"
    yield from (f"| `{name}` | {reason} |" for name, reason in REFUSED.items())


def _table(title: str, items: list[Setting]) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| setting | default | value | meaning |"
    yield "|---|---|---|---|"
    for item in items:
        also = f"<br>also `{'`, `'.join(item.aliases)}`" if item.aliases else ""
        mark = (" *MM2*" if item.mm2 else "") + (" *planned*" if item.planned else "")
        yield f"| `{item.name}`{mark}{also} | {_shown(item.default)} | {item.kind.label} | {item.doc} |"
    yield ""


def _client_row(item: ClientProperty) -> str:
    roles = "all" if item.roles == ROLES else ", ".join(item.roles)
    secret = " *A secret.*" if is_secret(item.name) else ""
    return f"| `{item.name}` | {roles} | {item.lan or ''} | {item.wan or ''} | {item.doc}{secret} |"


def _shown(default: object) -> str:
    if default is None or default == "":
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        return "<br>".join(f"`{part}`" for part in default)
    return f"`{default}`"


if __name__ == "__main__":
    sys.stdout.write(page())
