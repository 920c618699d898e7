"""What must be installed where Spark's tasks run."""

from __future__ import annotations

import subprocess
import sys
import sysconfig

from twinlog.operations.spark_package import REQUIRED

LISTED = """
import pkgutil, sys, importlib
import twinlog.wire, twinlog.cluster.copy_order
for module in pkgutil.iter_modules(twinlog.wire.__path__, "twinlog.wire."):
    importlib.import_module(module.name)
print(*{name.partition(".")[0] for name, module in sys.modules.items()
        if (getattr(module, "__file__", None) or "").startswith(sys.argv[1])})
"""


def test_all_that_copying_imports_is_asked_for() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTED, sysconfig.get_path("purelib")], capture_output=True, text=True, check=True
    )
    ours_or_theirs = {name for name in done.stdout.split() if not name.startswith("_")}
    assert ours_or_theirs - {"twinlog"} <= set(REQUIRED), "a module that copying imports is not asked for"
