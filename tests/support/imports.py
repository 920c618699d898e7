"""What must hold of every import, whatever it was made from."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from twinlog.intake.imported import Imported
from twinlog.intake.topology_file import load
from twinlog.model.topology import Topology


def loaded(imported: Imported) -> Topology:
    """The written topology, read by the real reader with every variable set."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "topology.yaml"
        path.write_text(imported.topology_yaml, encoding="utf-8")
        return load(path, environ=dict.fromkeys(imported.variables, "from-the-environment"))


def assert_every_key_is_somewhere(imported: Imported, keys: Iterable[str]) -> None:
    """Each key once: taken, with something at the place it names, or left out, with a reason."""
    went = [entry.key for entry in (*imported.taken, *imported.left_out)]
    assert Counter(went) == Counter(keys)
    document = yaml.safe_load(imported.topology_yaml)
    for taken in imported.taken:
        here: Any = document
        for step in taken.path:
            assert step in here, f"{taken.key} is not at {taken.path}"
            here = here[step]
    assert all(left.reason for left in imported.left_out)


def everything_shown(imported: Imported) -> str:
    """All text of an import that anybody may get to see."""
    return repr(imported)


def reasons(imported: Imported) -> dict[str, str]:
    return {left.key: left.reason for left in imported.left_out}
