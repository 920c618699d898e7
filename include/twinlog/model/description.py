"""Which description of a flow holds, of all that the topologies of several sites give.

Two sites may run the same flows. The target keeps the digest of the description that the flow runs by, with its version
and the site that gave it, and lets nobody run the flow by another one:

    the same digest                                   holds for everybody
    a higher `version` of the topology                replaces what holds
    a lower version                                   is refused
    the same version and another digest               replaces it where the same site gave it, and is refused otherwise

So a site that was cut off and comes back with an old file does no harm.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from twinlog.model.flow import Flow
from twinlog.model.flow_running import RunningSettings
from twinlog.model.flow_takeover import TakeoverSettings
from twinlog.model.references import is_secret
from twinlog.model.settings import settings_of
from twinlog.model.topology import Topology

_NOT_OF_THE_FLOW = settings_of(RunningSettings).keys() | settings_of(TakeoverSettings).keys()
"""When and where a flow runs, and what is told of a takeover, each site may say for itself."""


@dataclass(frozen=True, slots=True)
class Description:
    """One site's description of one flow."""

    digest: str
    version: int
    site: str


def described(topology: Topology, flow: Flow) -> Description:
    """How this topology describes the flow: by its settings and the addresses of its clusters, secrets aside."""
    flow = flow.as_described
    chosen = {item.name: (getattr(flow, item.attribute), item.default) for item in settings_of(Flow).values()}
    content = {
        "flow": flow.name,
        "settings": {
            name: value
            for name, (value, default) in chosen.items()
            if value != default and name not in _NOT_OF_THE_FLOW
        },
        "overrides": {key: value for key, value in flow.overrides.items() if not is_secret(key)},
        "clusters": [
            sorted(topology.clusters[alias].bootstrap_servers.split(",")) for alias in (flow.source, flow.target)
        ],
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    return Description(digest, topology.version or 0, topology.site)


def why_not(held: Description | None, ours: Description, flow: str) -> str | None:
    """Why the flow must not be run by `ours` while `held` holds, in a sentence; None where it may."""
    if held is None or held.digest == ours.digest or ours.version > held.version:
        return None
    holds = f"{flow} runs by version {held.version} of the topology, as site {held.site} has it"
    if ours.version < held.version:
        older = f"site {ours.site} has version {ours.version} and describes the flow otherwise"
        return f"{holds}; {older}: bring its file up to date"
    if ours.site == held.site:
        return None
    return (
        f"{holds}; site {ours.site} describes the flow otherwise under the same version: make the files equal, or "
        "raise `version` in the one that is to hold"
    )


def adopted(held: Description | None, ours: Description) -> Description:
    """What holds once `ours`, against which nothing speaks, is run by."""
    if held is not None and held.digest == ours.digest and held.version >= ours.version:
        return held
    return ours
