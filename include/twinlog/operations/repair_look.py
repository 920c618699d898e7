"""Makes the plan of a repair from what the last reconciliation has found, and from both clusters as they are now;
changes nothing."""

from __future__ import annotations

import re
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np  # noqa: TID253 - no DAG imports an operation at its top

from twinlog.cluster.raw import RawClient
from twinlog.intake.extensions import naming_of
from twinlog.ledger.ledger_check import gone_from_journal, journal_rows
from twinlog.ledger.proof_rows import PairRows, by_target, unaccounted
from twinlog.ledger.proof_state import LastVerdict, ProofStore
from twinlog.ledger.repairs import Repairs
from twinlog.ledger.store import Ledger
from twinlog.model.flow_state import FlowRecord, State
from twinlog.model.naming import is_topic_name
from twinlog.model.reconciliation import Difference, Kind
from twinlog.model.repair import OF_LEDGER, SETTLED_BY_SYNC, Harm, Records, harms, moved
from twinlog.model.sync_plan import Change, ChangeKind
from twinlog.model.topology import Flow, Topology
from twinlog.operations.flow_gate import SOURCE_LEADS, record_of
from twinlog.operations.log_facts import SideFacts
from twinlog.operations.proof_plan import logs_of
from twinlog.operations.reconcile_look import Look, Scope, look
from twinlog.operations.reconcile_report import read_differences
from twinlog.operations.recopy_groups import groups_on
from twinlog.operations.recording import bring_up_to_date, journal_of
from twinlog.operations.repair_plan import RepairPlan, RepairRequest, TopicToRecopy, TopicToRecover
from twinlog.operations.run_scope import Ends
from twinlog.operations.sync import Sync

_CHANGES = frozenset(ChangeKind) - {ChangeKind.CREATE_TOPIC, ChangeKind.DELETE_TOPIC}


@dataclass(frozen=True)
class RepairLooking:
    """A flow and everything that looking at it needs."""

    topology: Topology
    flow: Flow
    ends: Ends
    ledger: Ledger

    def plan(self, request: RepairRequest) -> RepairPlan:
        """What a repair would do now; of one that was begun and has not ended, its plan."""
        under_way = self.under_way()
        if under_way is not None:
            return under_way
        made_at_ms = int(time.time() * 1000)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(made_at_ms / 1000))
        plan = RepairPlan(
            f"{stamp}-{uuid.uuid4().hex[:8]}",
            self.flow.name,
            self.flow.source,
            self.flow.target,
            made_at_ms,
            request,
        )
        last = ProofStore(self.ledger).last()
        refused = self._not_known(last)
        if refused is not None or last is None:
            return replace(plan, refused=(refused or "",))
        found = read_differences(ProofStore(self.ledger).folder, last.at_ms)
        plan = replace(plan, reconciled_at_ms=last.at_ms)
        with self.ends.target.raw() as target, self.ends.source.raw(beside=target) as source:
            record = target.run(record_of(self.flow, target))
            if record.state not in SOURCE_LEADS:
                reason = f"{self.flow.name} is {record.state}: what {self.flow.target} has is no twin any more"
                return replace(plan, refused=(reason,))
            return _Making(self, plan, found, source, target, record).made()

    def under_way(self) -> RepairPlan | None:
        """The plan that was begun and has not ended; it is what goes on, whatever is asked for now."""
        kept = Repairs(self.ledger).latest()
        if kept is None or "ended_at_ms" in kept:
            return None
        plan = RepairPlan.from_json(kept)
        return replace(plan, under_way=True, notes=(*plan.notes, "it was begun before, and goes on"))

    def _not_known(self, last: LastVerdict | None) -> str | None:
        """Why it isn't known what is to be repaired."""
        name = f"`twinlog reconcile '{self.flow.name}'`"
        if last is None:
            return f"{self.flow.name} was never compared; run {name} first"
        kept = Repairs(self.ledger).latest()
        if kept is not None and kept.get("ended_at_ms", 0) > last.at_ms:
            return f"{self.flow.name} was repaired after it was last compared; run {name} first"
        return None


class _Making:
    """One plan in the making."""

    def __init__(  # noqa: PLR0917 - what was found, and where
        self,
        of: RepairLooking,
        plan: RepairPlan,
        found: Sequence[Difference],
        source: RawClient,
        target: RawClient,
        record: FlowRecord,
    ) -> None:
        self._of = of
        self._flow = of.flow
        self._plan = plan
        self._found = found
        self._source = source
        self._target = target
        self._record = record
        self._notes: list[str] = []

    def made(self) -> RepairPlan:
        kinds = Counter(one.kind for one in self._found)
        broken = [one for one in self._found if one.kind in OF_LEDGER]
        ledger, holes = self._ledger(broken) if broken else (None, frozenset[str]())
        harmed = {topic: harm for topic, harm in harms(self._found).items() if self._asked(topic)}
        for topic in holes:
            if self._asked(topic):
                harmed.setdefault(topic, Harm(topic, {Kind.HOLE.value: 1}))
        recopy, recover = self._records(harmed)
        self._notes += (
            f"{one.topic}-{one.partition}: {one.detail}" for one in self._found if one.kind is Kind.UNREADABLE
        )
        return replace(
            self._plan,
            settings=self._settings() if kinds.keys() & SETTLED_BY_SYNC else (),
            ledger=ledger,
            checkpoints=kinds[Kind.GROUP],
            recover=tuple(recover),
            recopy=tuple(recopy),
            refused=tuple(self._refused(recopy)),
            notes=tuple(self._notes),
        )

    def _asked(self, topic: str) -> bool:
        pattern = self._plan.request.topics
        return pattern is None or re.fullmatch(pattern, topic) is not None

    def _settings(self) -> tuple[str, ...]:
        flow = self._flow
        if self._record.state is not State.ACTIVE:
            self._notes.append(f"settings are not put right, since {flow.name} is {self._record.state}")
            return ()
        result = Sync(self._of.topology, flow, self._of.ends.source, self._of.ends.target).run(dry_run=True)
        self._notes += result.warnings
        return tuple(_words(change) for change in result.changes if change.kind in _CHANGES)

    def _ledger(self, broken: Sequence[Difference]) -> tuple[str | None, frozenset[str]]:
        """Why the ledger is to be rebuilt, if it is; and the topics of which the journal lacks rows too."""
        of = self._of
        state = ProofStore(of.ledger).load()
        scope = Scope(full=True)
        seen = look(self._flow, of.ends, of.ledger, self._source, self._target, scope, state, compare_journal=True)
        if seen is None:
            return None, frozenset()
        proven = bring_up_to_date(of.ledger, self._flow, of.ends.target, self._target, set())
        journal = journal_of(self._flow, of.ends.target, self._target)
        entries = journal_rows(journal, proven.journal_ends)
        logs = {one.pair: logs_of(one.pair, seen.source, seen.target) for one in seen.pairs}
        floors = {pair: (found[0].rules.start, found[1].rules.start) for pair, found in logs.items() if found}
        lost = gone_from_journal(seen.pairs, entries, floors)
        if lost:
            rows = sum(lost.values())
            self._notes.append(
                f"the ledger is not rebuilt: the journal on {self._flow.target} lacks {rows:,} rows that the ledger "
                "has, and they would be lost; copying their topics again brings both together: "
                f"{', '.join(sorted({pair.source_topic for pair in lost})[:10])}"
            )
            return None, frozenset(pair.source_topic for pair in lost)
        holes = frozenset(_holes(by_target(entries).values(), seen.source, seen.target))
        return "; ".join(sorted({one.detail for one in broken})[:3]), holes

    def _records(self, harmed: Mapping[str, Harm]) -> tuple[list[TopicToRecopy], list[TopicToRecover]]:
        recopy: list[TopicToRecopy] = []
        recover: list[TopicToRecover] = []
        policy, choice = naming_of(self._flow), self._plan.request.records
        if choice is Records.LEAVE:
            self._notes += (f"{topic} stays as it is: {harm.words}" for topic, harm in sorted(harmed.items()))
            return recopy, recover
        names = sorted(harmed)
        here = self._source.run(self._source.metadata(names)).topics if names else {}
        there = self._target.run(self._target.metadata([policy.target_name(name) for name in names])) if names else None
        for topic in names:
            harm, twin = harmed[topic], policy.target_name(topic)
            twin_id = None if there is None else there.topics[twin].topic_id
            if here[topic].error is not None or twin_id is None:
                where = self._flow.source if here[topic].error is not None else self._flow.target
                self._notes.append(f"{topic} is not on {where}; the flow's next run sees to it")
                continue
            why_not = self._kept_from_recopying(topic) if choice is Records.RECOPY else ""
            if why_not is None:
                recopy.append(
                    TopicToRecopy(topic, twin, str(twin_id), harm.words, moved=tuple(moved(self._found, topic)))
                )
                continue
            if why_not:
                self._notes.append(f"{topic} is not copied again: {why_not}")
            recover += self._recovering(harm, twin)
        return self._weighed(recopy), recover

    def _kept_from_recopying(self, topic: str) -> str | None:
        """Why a twin can't be swapped, in a few words; None where it can."""
        flow = self._flow
        if self._record.state is not State.ACTIVE:
            return f"{flow.name} is {self._record.state}; resume it first"
        if flow.naming != "prefixed" or topic == flow.schemas_topic:
            return f"others may write to its twin on {flow.target}, which does not belong to the mirror alone"
        if self._record.came_home:
            return f"{flow.target} has led, so its twin has records of its own"
        if not is_topic_name(f"twinlog.{flow.source}.{topic}.repair-00000000.internal"):
            return "its name is too long for a fresh topic beside its twin"
        return None

    def _recovering(self, harm: Harm, twin: str) -> Iterator[TopicToRecover]:
        if harm.lacks:
            yield TopicToRecover(harm.topic, twin, harm.words, harm.lacking)
        beyond = {kind: count for kind, count in harm.kinds.items() if kind != Kind.MISSING.value}
        if beyond:
            left = ", ".join(f"{count:,} {kind}" for kind, count in sorted(beyond.items()))
            self._notes.append(f"{twin} keeps what can only be put right by copying it again: {left}")

    def _weighed(self, recopy: list[TopicToRecopy]) -> list[TopicToRecopy]:
        """With how much is copied, what only the twins have, and who reads them."""
        if not recopy:
            return recopy
        of = self._of
        scope = Scope(topics="|".join(re.escape(one.topic) for one in recopy))
        state = ProofStore(of.ledger).load()
        seen = look(self._flow, of.ends, of.ledger, self._source, self._target, scope, state, compare_journal=False)
        found = groups_on(self._flow, self._target, frozenset(one.twin for one in recopy))
        busy = sorted({one.group for one in found if one.active})
        if busy:
            self._notes.append(
                f"these groups have members on {self._flow.target} now, and must be stopped before a twin is swapped: "
                f"{', '.join(busy[:10])}"
            )
        return [
            replace(
                one,
                bytes=sum(_bytes_of(seen, one.topic)) if seen else 0,
                only_there=sum(_only_there(seen, one.topic)) if seen else 0,
                groups=tuple(sorted({each.group for each in found if each.partition.topic == one.twin})),
            )
            for one in recopy
        ]

    def _refused(self, recopy: Sequence[TopicToRecopy]) -> Iterator[str]:
        if self._plan.request.accept_loss:
            return
        for one in recopy:
            if one.only_there:
                yield (
                    f"{one.twin} has {one.only_there:,} records that {self._flow.source} has no longer, and copying it "
                    "again would lose them: accept the loss, or recover what is missing instead"
                )


def _holes(groups: Iterable[Sequence[PairRows]], source: SideFacts, target: SideFacts) -> Iterator[str]:
    for members in groups:
        for one in members:
            logs = logs_of(one.pair, source, target)
            if logs is not None and any(unaccounted(one, min(logs[0].rules.start, int(one.source_end[-1])), None)):
                yield one.pair.source_topic


def _bytes_of(seen: Look, topic: str) -> Iterator[int]:
    """Of what the source still has, as it was copied the first time."""
    for one in seen.pairs:
        logs = logs_of(one.pair, seen.source, seen.target)
        if one.pair.source_topic == topic and logs is not None:
            yield int(one.bytes[one.source_end > logs[0].rules.start].sum())


def _only_there(seen: Look, topic: str) -> Iterator[int]:
    """Records that the twin has and the source has no longer."""
    for one in seen.pairs:
        logs = logs_of(one.pair, seen.source, seen.target)
        if one.pair.source_topic == topic and logs is not None:
            gone = np.minimum((logs[0].rules.start - one.source_start).clip(min=0), one.count)
            kept = (gone - (logs[1].rules.start - one.target_start).clip(min=0)).clip(min=0)
            now_ms = int(time.time() * 1000)
            # What the target's own retention is about to remove is no loss.
            yield sum(
                int(kept[row])
                for row in np.flatnonzero(kept).tolist()
                if not logs[1].rules.may_have_expired(int(one.newest_ms[row]), now_ms)
            )


def _words(change: Change) -> str:
    before, after = (value if value is not None else "none" for value in (change.before, change.after))
    return f"{change.resource}: {change.name} from {before} to {after}"
