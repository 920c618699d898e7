"""What a migration held back on the target goes its way again once applications are there: retention and cleaning are
the source's, as on any twin.

Only what is still as it was held is changed: whoever has set something else meanwhile meant it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from twinlog.cluster.refusals import sentences
from twinlog.cluster.topic_settings import change_settings
from twinlog.model.topology import Flow, Topology
from twinlog.model.twin_settings import HELD, SettingChange
from twinlog.operations.run_scope import Ends
from twinlog.operations.sync_memory import read_memory
from twinlog.operations.sync_scope import Memory, Scope, sync_rules
from twinlog.operations.twin_planning import Sides, facts, plan_twins

_SETTINGS_ONLY = Scope(acls=False, clients=False)


@dataclass(frozen=True, slots=True)
class Released:
    """The settings that were put back, and what was refused, each a sentence."""

    changes: tuple[SettingChange, ...] = ()
    failures: tuple[str, ...] = ()


def release(topology: Topology, flow: Flow, ends: Ends) -> Released:
    """Put them back. Repeatable, and it can be done whatever state the flow is in."""
    rules = sync_rules(topology, flow, ends.source, ends.target)
    with ends.target.raw() as target, ends.source.raw(beside=target) as source:
        sides = Sides(source, source.run(source.metadata()), target, target.run(target.metadata()))
        memory = replace(target.run(read_memory(sides, rules)), holds=False)
        plan = target.run(plan_twins(sides, rules, _SETTINGS_ONLY, memory, int(time.time() * 1000)))
        changes = tuple(change for change in plan.settings if _was_held(change, flow, sides, memory))
        refused = target.run(change_settings(target, changes))
        said = sentences(
            target.alias,
            rules.target_principal,
            "ALTER_CONFIGS",
            {f"topic {name}": why for name, why in refused.items()},
            "it keeps its records for ever, and does not compact them, until that is put back",
        )
        done = tuple(change for change in changes if change.topic not in refused)
        # Topics whose settings could not be read may be held yet.
        return Released(done, (*said, *plan.failed))


def _was_held(change: SettingChange, flow: Flow, sides: Sides, memory: Memory) -> bool:
    if HELD.get(change.name) != change.before:
        return False
    # A flow that keeps no settings in step has held only those of the topics that it made.
    twin = sides.target_view.topics[change.topic]
    return flow.sync_topic_configs_enabled or memory.made(change.topic, facts(twin))
