"""twinlog.model needs nothing but Python itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

INCLUDE = Path(__file__).parents[3] / "include"

# Without -S's site-packages nothing else can be imported at all; what was loaded is listed to be sure.
PROGRAM = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import twinlog.model
for module in pkgutil.iter_modules(twinlog.model.__path__, "twinlog.model."):
    importlib.import_module(module.name)
allowed = sys.stdlib_module_names | {"twinlog", "__main__"}
print(sorted(name for name in sys.modules if name.partition(".")[0] not in allowed))
print(sorted({".".join(name.split(".")[:2]) for name in sys.modules if name.startswith("twinlog.")}))
"""


def test_the_model_imports_in_a_bare_python() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROGRAM, str(INCLUDE)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[]", "['twinlog.errors', 'twinlog.model']"]
