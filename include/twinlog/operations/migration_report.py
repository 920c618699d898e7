"""A migration's report: what both clusters, the ledger and the evidence say, as tables and as a page.

It can be written anew at any time until the clean-up takes away what it asks the clusters for; from then on its tables
stay as they are, and the page says what was removed.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top

from twinlog.ledger.store import Ledger
from twinlog.ledger.takeovers import Takeovers
from twinlog.model.topology import Flow, Topology
from twinlog.operations.migration_evidence import Evidence, acl_table, group_table, topic_table
from twinlog.operations.migration_page import page
from twinlog.operations.run_scope import Ends


@dataclass(frozen=True, slots=True)
class Tables:
    """What of the report is in rows."""

    topics: pa.Table
    groups: pa.Table
    acls: pa.Table


@dataclass(frozen=True)
class Reporting:
    """The report of one migration of a flow."""

    topology: Topology
    flow: Flow
    ends: Ends
    ledger: Ledger
    evidence: Evidence

    def tables(self, *, without_source: bool = False) -> Tables:
        """As the clusters say now; what only a source that is gone could say is as it was written last."""
        said = self.evidence.read()
        plan = Takeovers(self.ledger).read(said["plan"]) if said.get("plan") else None
        with self.ends.target.raw() as target:
            if without_source:
                topics = self.kept().topics
            else:
                with self.ends.source.raw(beside=target) as source:
                    topics = topic_table(self.topology, self.flow, self.ledger, source, target)
            acls = acl_table(self.flow, target)
        return Tables(topics, group_table(plan, said.get("not_moved", ())), acls)

    def kept(self) -> Tables:
        """As they were written last."""
        return Tables(*(self.evidence.table(_file(name)) for name in Tables.__slots__))

    def publish(self, tables: Tables) -> str:
        """Write all of it; where its page is."""
        for name in Tables.__slots__:
            self.evidence.publish(_file(name), getattr(tables, name))
        said = self.evidence.read()
        whole = page(self.flow.name, said, tables.topics, tables.groups, tables.acls)
        return self.evidence.publish(".html", whole.encode())


def _file(name: str) -> str:
    return f"-{name}.parquet"
