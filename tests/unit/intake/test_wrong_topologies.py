"""Wrong topology files of every kind, each with the whole message people get."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.errors import TopologyError
from twinlog.intake.topology_file import load

CLUSTERS = """\
clusters:
  nyc: {bootstrap.servers: "nyc:9092"}
  lon: {bootstrap.servers: "lon:9092"}
  ber: {bootstrap.servers: "ber:9092"}
"""
FLOWS = """\
flows:
  nyc->lon: {topics: orders}
"""
PLAIN = (
    "a secret must not stand in the file; write ${env:NAME} or ${file:/path}, or keep it in the Airflow connection "
    "that `connection` names"
)
CIRCLE = (
    "is a circle in which this flow hides where records came from, so they would go round for ever; "
    "use naming: prefixed in this flow, or give one of the flows other topics"
)


def flow(settings: str) -> str:
    """A right file but for the settings of its flow, which are on line 6."""
    return f"{CLUSTERS}flows:\n  nyc->lon: {{{settings}}}\n"


def cluster(settings: str) -> str:
    """A right file but for the settings of the cluster on line 3."""
    return f"clusters:\n  nyc: {{bootstrap.servers: 'nyc:9092'}}\n  lon: {{{settings}}}\n{FLOWS}"


WRONG_FILES = {
    # The file itself
    "empty": ("", "1: the file is empty; it needs clusters and flows"),
    "only a comment": ("# later\n", "1: the file is empty; it needs clusters and flows"),
    "a list": ("- nyc\n- lon\n", "1: expected clusters and flows, not a list"),
    "a text": ("clusters", '1: expected clusters and flows, not "clusters"'),
    "open bracket": ("clusters: {nyc: [\n", "2: not YAML: expected the node content, but found '<stream end>'"),
    "bad indentation": (
        "clusters:\n  nyc: {}\n lon: {}\n",
        "3: not YAML: expected <block end>, but found '<block mapping start>'",
    ),
    "tab": ("clusters:\n\tnyc: {}\n", "2: not YAML: a tab stands where spaces must; YAML indents with spaces"),
    "two documents": (f"{CLUSTERS}{FLOWS}---\na: b\n", "7: not YAML: but found another document"),
    "anchor in itself": ("clusters: &a\n  nyc: *a\n", "1: an anchor contains itself"),
    "undefined anchor": ("clusters: *gone\n", "1: not YAML: found undefined alias 'gone'"),
    "control character": ("clusters: \x01\n", "1: the character #x0001 is not allowed in YAML"),
    "latin-1": ("clusters:\n  köln: {}\n".encode("latin-1"), "2: the file is not UTF-8 (byte 0xf6); save it as UTF-8"),
    "utf-16": (CLUSTERS.encode("utf-16"), "1: the file is not UTF-8 (byte 0xff); save it as UTF-8"),
    # Sections
    "unknown section": (f"{CLUSTERS}{FLOWS}default: {{}}\n", '7: default: unknown key; did you mean "defaults"?'),
    "no clusters": (
        FLOWS,
        "1: clusters: missing; write clusters: and below it alias: {bootstrap.servers: host:port}\n"
        '2: nyc->lon: no cluster is called "lon"\n2: nyc->lon: no cluster is called "nyc"',
    ),
    "no flows": (CLUSTERS, "1: flows: missing; write flows: and below it source->target: {topics: [...]}"),
    "empty flows": (f"{CLUSTERS}flows: {{}}\n", "5: flows: there is none; write source->target: {topics: [...]}"),
    "flows as a list": (
        f"{CLUSTERS}flows: [nyc->lon]\n",
        "5: flows: expected source->target: {topics: [...]}, not a list",
    ),
    "ledger as a list": (f"{CLUSTERS}{FLOWS}ledger: [a]\n", "7: ledger: expected one value, not a list"),
    "defaults as a text": (f"{CLUSTERS}{FLOWS}defaults: all\n", '7: defaults: expected settings, not "all"'),
    "unknown default": (f"{CLUSTERS}{FLOWS}defaults: {{lane: 3}}\n", '7: lane: unknown setting; did you mean "lanes"?'),
    "list as a key": (f"{CLUSTERS}{FLOWS}[a]: b\n", "7: a key must be a text, not a list or a mapping"),
    # Clusters
    "duplicate cluster": (
        f"clusters:\n  nyc: {{bootstrap.servers: 'a:1'}}\n  nyc: {{}}\n  lon: {{bootstrap.servers: 'b:1'}}\n{FLOWS}",
        "3: nyc: written twice, first on line 2",
    ),
    "alias": (
        f"clusters:\n  n.y: {{bootstrap.servers: 'a:1'}}\n{CLUSTERS[10:]}{FLOWS}",
        '2: n.y: an alias is made of letters, digits, "_" and "-"',
    ),
    "cluster as a text": (
        f"clusters:\n  nyc: nyc:9092\n  lon: {{bootstrap.servers: 'b:1'}}\n{FLOWS}",
        '2: nyc: expected a cluster\'s settings, not "nyc:9092"',
    ),
    "no bootstrap": (cluster("connection: kafka_lon"), "3: lon: bootstrap.servers is missing"),
    "bootstrap without port": (
        cluster("bootstrap.servers: lon"),
        '3: bootstrap.servers: expected host:port, not "lon"',
    ),
    "bootstrap with protocol": (
        cluster("bootstrap.servers: 'ssl://lon:1'"),
        '3: bootstrap.servers: expected host:port, not "ssl://lon:1"',
    ),
    "bootstrap port": (
        cluster("bootstrap.servers: 'lon:70000'"),
        '3: bootstrap.servers: the port of "lon:70000" is not between 1 and 65535',
    ),
    "bootstrap empty list": (cluster("bootstrap.servers: []"), "3: bootstrap.servers: expected at least one host:port"),
    "bootstrap empty": (cluster("bootstrap.servers:"), "3: bootstrap.servers: expected host:port, not nothing"),
    "cluster key": (
        cluster("bootstrap.server: 'lon:1'"),
        '3: bootstrap.server: unknown setting; did you mean "bootstrap.servers"?\n3: lon: bootstrap.servers is missing',
    ),
    "client property": (
        cluster("bootstrap.servers: 'b:1', sasl.mechanisn: PLAIN"),
        '3: sasl.mechanisn: unknown setting; did you mean "sasl.mechanism"?',
    ),
    "client property's role": (
        cluster("bootstrap.servers: 'b:1', producer.fetch.max.bytes: 1"),
        "3: producer.fetch.max.bytes: fetch.max.bytes is a property of a consumer, not of a producer",
    ),
    "client property refused": (
        cluster("bootstrap.servers: 'b:1', producer.acks: 1"),
        "3: producer.acks: has no effect here (copying is transactional and exactly once, which this cannot change); "
        "leave it out",
    ),
    "client number": (
        cluster("bootstrap.servers: 'b:1', request.timeout.ms: soon"),
        '3: request.timeout.ms: expected a whole number, not "soon"',
    ),
    "client choice": (
        cluster("bootstrap.servers: 'b:1', security.protocol: SASL-SSL"),
        '3: security.protocol: expected "PLAINTEXT", "SSL", "SASL_PLAINTEXT" or "SASL_SSL", not "SASL-SSL"; '
        'did you mean "SASL_SSL"?',
    ),
    "client list": (
        cluster("bootstrap.servers: 'b:1', client.id: [a]"),
        "3: client.id: expected one value, not a list",
    ),
    "dotted and nested": (
        cluster("bootstrap.servers: 'b:1', client.id: a, client: {id: b}"),
        "3: client.id: written twice, first on line 3",
    ),
    # Secrets and references
    "plain password": (cluster("bootstrap.servers: 'b:1', sasl.password: hunter2"), f"3: sasl.password: {PLAIN}"),
    "half a reference": (
        cluster("bootstrap.servers: 'b:1', sasl.password: 'hunter2${env:P}'"),
        f"3: sasl.password: {PLAIN}",
    ),
    "plain jaas": (
        cluster("bootstrap.servers: 'b:1', sasl.jaas.config: 'X required password=\"hunter2\";'"),
        f"3: sasl.jaas.config: {PLAIN}",
    ),
    "plain key in a flow": (
        flow("source.consumer.ssl.keystore.key: hunter2"),
        f"6: source.consumer.ssl.keystore.key: {PLAIN}",
    ),
    "password as a list": (
        cluster("bootstrap.servers: 'b:1', ssl.key.password: [hunter2]"),
        f"3: ssl.key.password: {PLAIN}",
    ),
    "variable not set": (
        cluster("bootstrap.servers: '${env:NOWHERE}:1'"),
        '3: bootstrap.servers: the environment variable "NOWHERE" is not set',
    ),
    "variable not set in a flow": (
        flow("topics: '${env:NOWHERE}'"),
        '6: topics: the environment variable "NOWHERE" is not set',
    ),
    "reference without provider": (
        cluster("bootstrap.servers: 'b:1', client.id: '${HOME}'"),
        '3: client.id: unknown reference "${HOME}"; did you mean "${env:HOME}"?',
    ),
    "file in a flow": (flow("topics: '${file:/topics}'"), "6: topics: ${file:...} works in client properties only"),
    # Flow names
    "flow without arrow": (
        f"{CLUSTERS}flows:\n  nyc-lon: {{}}\n",
        '6: nyc-lon: a flow is written "source->target"; did you mean "nyc->lon"?',
    ),
    "flow with spaces": (
        f"{CLUSTERS}flows:\n  nyc -> lon: {{}}\n",
        '6: nyc -> lon: a flow is written without spaces; did you mean "nyc->lon"?',
    ),
    "flow with three ends": (
        f"{CLUSTERS}flows:\n  nyc->lon->ber: {{}}\n",
        '6: nyc->lon->ber: a flow is written "source->target"; did you mean "nyc->lon"?',
    ),
    "flow to itself": (
        f"{CLUSTERS}flows:\n  nyc->nyc: {{}}\n",
        "6: nyc->nyc: a flow cannot go from a cluster to itself",
    ),
    "unknown cluster": (
        f"{CLUSTERS}flows:\n  nyc->lno: {{}}\n",
        '6: nyc->lno: no cluster is called "lno"; did you mean "lon"?',
    ),
    "duplicate flow": (f"{CLUSTERS}{FLOWS}  nyc->lon: {{}}\n", "7: nyc->lon: written twice, first on line 6"),
    "flow as a list": (f"{CLUSTERS}flows:\n  nyc->lon: [orders]\n", "6: nyc->lon: expected settings, not a list"),
    # Flow settings
    "unknown setting": (flow("topic.exclude: a"), '6: topic.exclude: unknown setting; did you mean "topics.exclude"?'),
    "nothing like it": (flow("zzz: 1"), "6: zzz: unknown setting"),
    "unknown override": (
        flow("source.consumer.fetch.max.byte: 1"),
        '6: source.consumer.fetch.max.byte: unknown setting; did you mean "source.consumer.fetch.max.bytes"?',
    ),
    "override without role": (
        flow("source.client.id: a"),
        '6: source.client.id: unknown setting; did you mean "source.admin.client.id"?',
    ),
    "no value": (flow("topics:"), "6: topics: expected a value, not nothing"),
    "bad pattern": (
        flow("topics: ['ord(ers']"),
        '6: topics: "ord(ers" is not a regular expression: missing ), unterminated subpattern at position 3',
    ),
    "bad exclusion": (
        flow("groups.exclude: '*'"),
        '6: groups.exclude: "*" is not a regular expression: nothing to repeat at position 0',
    ),
    "no topics": (flow("topics: []"), "6: topics: expected at least one pattern"),
    "mapping in a list": (flow("topics: [{a: b}]"), "6: topics: expected a value, not a mapping"),
    "list for a number": (flow("lanes: [1, 2]"), "6: lanes: expected one value, not a list"),
    "text for a number": (flow("lanes: many"), '6: lanes: expected a whole number, not "many"'),
    "decimal for a number": (flow("lanes: 1.5"), '6: lanes: expected a whole number, not "1.5"'),
    "negative number": (flow("budget.seconds: -1"), "6: budget.seconds: expected 1 or more, not -1"),
    "zero throttle": (flow("throttle: 0"), "6: throttle: expected a number above 0, not 0"),
    "text for a throttle": (flow("throttle: 50MB"), '6: throttle: expected a number, not "50MB"'),
    "replication factor": (
        flow("replication.factor: 0"),
        '6: replication.factor: expected a whole number, 1 or more, or "source" or "target", not "0"',
    ),
    "yes": (flow("enabled: yes"), '6: enabled: expected true or false, not "yes"; did you mean "true"?'),
    "misspelt boolean": (
        flow("sync: {configs: ture}"),
        '6: sync.configs: expected true or false, not "ture"; did you mean "true"?',
    ),
    "enum": (
        flow("naming: prefix"),
        '6: naming: expected "prefixed", "identity" or "custom", not "prefix"; did you mean "prefixed"?',
    ),
    "schedule": (
        flow("schedule: '@continous'"),
        "6: schedule: '@continous' is not a schedule: expected five cron fields (minute, hour, day of month, month, "
        'day of week), @continuous, or a preset such as @hourly; did you mean "@continuous"?',
    ),
    "given twice": (
        flow("sync: {configs: true, topic.configs.enabled: true}"),
        "6: sync.topic.configs.enabled: written twice; the other is on line 6",
    ),
    "given twice, short form last": (
        flow("sync.topic.acls.enabled: true, sync.acls: true"),
        "6: sync.acls: the same setting as sync.topic.acls.enabled, which is written too; the other is on line 6",
    ),
    "entry point": (flow("topic.filter: mine.py"), '6: topic.filter: expected "package.module:Name", not "mine.py"'),
    # Settings that contradict each other
    "format without topic": (
        flow("naming: custom, naming.format: replica"),
        '6: naming.format: "replica" must hold ${topic} exactly once, or topics would share a name',
    ),
    "format with a stranger": (
        flow("naming.format: '${topics}'"),
        '6: naming.format: "${topics}" is not known here; ${topic}, ${source} and ${target} are; did you mean "topic"?',
    ),
    "format that changes nothing": (
        flow("naming.format: '${topic}'"),
        '6: naming.format: "${topic}" changes no name; write naming: identity',
    ),
    "format with a space": (
        flow("naming.format: '${topic} x'"),
        '6: naming.format: "${topic} x" holds a character that no topic name may; use letters, digits, ".", "_", "-"',
    ),
    "format without custom": (
        flow("naming.format: 'x.${topic}'"),
        "6: naming.format: works with naming: custom only, and naming is prefixed",
    ),
    "custom without format": (flow("naming: custom"), "6: naming: custom needs naming.format or naming.policy"),
    "format and policy": (
        flow("naming: custom, naming.format: 'x.${topic}', naming.policy: 'a:B'"),
        "6: naming.policy: naming.format is written too; one of them must go",
    ),
    "where on bytes": (flow("where: a = 1"), "6: where: works with route: records only"),
    "headers on bytes": (flow("provenance: headers"), "6: provenance: headers can be added with route: records only"),
    "separator": (
        flow("replication.policy.separator: ':'"),
        '6: replication.policy.separator: expected one or more of ".", "_" and "-", not ":"',
    ),
    "separator in an alias": (
        "clusters:\n  us-w: {bootstrap.servers: 'a:1'}\n  lon: {bootstrap.servers: 'b:1'}\n"
        "flows:\n  us-w->lon:\n    replication.policy.separator: '-'\n",
        '6: replication.policy.separator: "-" is part of the alias "us-w", so names could not be taken apart again',
    ),
    # Flows that contradict each other
    "identity circle": (
        f"{CLUSTERS}defaults: {{naming: identity}}\nflows:\n  nyc->lon:\n  lon->ber:\n  ber->nyc:\n",
        f"7: nyc->lon: nyc -> lon -> ber -> nyc {CIRCLE}",
    ),
    "mixed circle": (
        f"{CLUSTERS}flows:\n  nyc->lon:\n  lon->ber: {{naming: identity}}\n  ber->nyc:\n",
        f"7: lon->ber: lon -> ber -> nyc -> lon {CIRCLE}",
    ),
    "custom names that collide": (
        f"{CLUSTERS}defaults: {{naming: custom, naming.format: 'all.${{topic}}'}}\nflows:\n  nyc->lon:\n  ber->lon:\n",
        "8: ber->lon: nyc->lon gives topics on lon the same names, so records of two clusters would mix; "
        "put ${source} into naming.format",
    ),
}


def refusal(folder: Path, content: str | bytes) -> str:
    file = folder / "t.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TopologyError) as raised:
        load(file, {})
    return str(raised.value).replace(f"{file}:", "")


@pytest.mark.parametrize(("content", "message"), WRONG_FILES.values(), ids=WRONG_FILES.keys())
def test_message(tmp_path: Path, content: str | bytes, message: str) -> None:
    assert refusal(tmp_path, content) == message
    assert "hunter2" not in message


def test_all_problems_come_together_in_the_order_of_the_file(tmp_path: Path) -> None:
    content = """\
clusters:
  nyc: {bootstrap.servers: nyc, sasl.password: hunter2}
  lon: {bootstrap.servers: "lon:9092"}
defaults: {lanes: 0, where: "true"}
flows:
  nyc->lon: {topics: "(" }
  lon->nyc: {enabled: 2}
"""
    assert refusal(tmp_path, content).splitlines() == [
        '2: bootstrap.servers: expected host:port, not "nyc"',
        f"2: sasl.password: {PLAIN}",
        "4: lanes: expected 1 or more, not 0",
        "4: where: works with route: records only",
        '6: topics: "(" is not a regular expression: missing ), unterminated subpattern at position 0',
        '7: enabled: expected true or false, not "2"',
    ]


def test_every_line_begins_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(flow("lanes: 0, throttle: x"))
    with pytest.raises(TopologyError) as raised:
        load(file, {})
    assert all(line.startswith(f"{file}:6: ") for line in str(raised.value).splitlines())


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"gone\.yaml: cannot be read: No such file or directory"):
        load(tmp_path / "gone.yaml")


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="cannot be read: Is a directory"):
        load(tmp_path)
