"""The ids of DAGs: lower-case, safe in a URL, and different for any two flows.

Nothing of Airflow is imported here, so that whoever looks for a DAG through the API can know its id.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable


def dag_ids(verb: str, flow_names: Iterable[str]) -> dict[str, str]:
    """The DAG id of each flow: `nyc->lon` becomes `status__nyc_to_lon`.

    Two names may come out alike (`NYC->lon` and `nyc->lon`, or `a_to_b->c` and `a->b_to_c`). Then a digest
    of the flow's name sets them apart, except for the first of those already written in the id's own
    spelling: adding a badly named flow must not rename the DAG, and lose the history, of a well named one.
    """
    by_slug: dict[str, list[str]] = {}
    for name in flow_names:
        by_slug.setdefault(_slug(name), []).append(name)
    ids = {}
    for slug, names in by_slug.items():
        plain = names[0] if len(names) == 1 else next((n for n in names if _is_plain(n)), None)
        for name in names:
            suffix = "" if name == plain else "_" + hashlib.sha256(name.encode()).hexdigest()[:6]
            ids[name] = f"{verb}__{slug}{suffix}"
    return ids


def _slug(flow_name: str) -> str:
    return re.sub(r"[^a-z0-9_.-]", "_", flow_name.lower().replace("->", "_to_"))


def _is_plain(flow_name: str) -> bool:
    return _slug(flow_name) == flow_name.replace("->", "_to_")
