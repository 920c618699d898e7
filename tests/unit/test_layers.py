"""Dependencies point one way: a layer imports those below it, and nothing of twinlog imports the embedded default."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from local.places import INCLUDE

# From the top to the bottom; of two on one line neither imports the other.
LAYERS = (("airflow", "cli"), ("commands",), ("operations",), ("ledger",), ("cluster", "intake"), ("wire",), ("model",))
RANK = {name: rank for rank, names in enumerate(reversed(LAYERS), start=1) for name in names} | {"errors": 0}


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(module: str) -> str:
    return module.split(".")[1]


def test_every_layer_has_its_place() -> None:
    found = {path.stem for path in (INCLUDE / "twinlog").iterdir() if not path.name.startswith("__")}
    assert found == set(RANK)


def test_imports_point_downwards() -> None:
    upwards = []
    for file in (INCLUDE / "twinlog").rglob("*.py"):
        module = ".".join(file.relative_to(INCLUDE).with_suffix("").parts)
        if module == "twinlog.__init__":
            continue
        for name in imported(file):
            if name.startswith("local.") or (
                name.startswith("twinlog.")
                and layer(name) != layer(module)
                and RANK[layer(name)] >= RANK[layer(module)]
            ):
                upwards.append(f"{module} imports {name}")
    assert upwards == []


def test_of_the_embedded_default_only_the_demo_knows_twinlog() -> None:
    knowing = {
        file.relative_to(INCLUDE).as_posix()
        for file in (INCLUDE / "local").rglob("*.py")
        if any(name.split(".")[0] == "twinlog" for name in imported(file))
    }
    assert knowing == {"local/demo.py"}
