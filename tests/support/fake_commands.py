"""Commands that only say what a test wants them to say, in a folder that serves as PATH."""

from __future__ import annotations

from pathlib import Path


def fake_command(folder: Path, name: str, says: str = "", exit_code: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    command = folder / name
    # A PATH of this folder alone must still find what the script itself needs.
    command.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\ncat <<'END'\n{says}\nEND\nexit {exit_code}\n")
    command.chmod(0o755)
    return command
