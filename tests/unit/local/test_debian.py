from __future__ import annotations

import os
from pathlib import Path

import pytest

from local import debian
from local.errors import LocalError, PreconditionError
from support.fake_commands import fake_command


def test_a_command_that_is_there_is_left_alone(tmp_path: Path) -> None:
    fake_command(tmp_path, "chromium")
    fake_command(tmp_path, "apt-get", exit_code=1)
    said: list[str] = []
    debian.ensure("chromium", said.append, {"PATH": str(tmp_path)})
    assert said == [f"chromium: already at {tmp_path}/chromium"]


def test_a_missing_command_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    # Installs by putting the command beside itself.
    apt = fake_command(tmp_path, "apt-get")
    apt.write_text(f'#!/bin/sh\nPATH=/usr/bin:/bin\ncase "$*" in install*) cp "$0" {tmp_path}/chromium;; esac\n')
    said: list[str] = []
    debian.ensure("chromium", said.append, {"PATH": str(tmp_path)})
    assert said == ["chromium: installing the Debian package", f"chromium: ready at {tmp_path}/chromium"]


def test_without_apt_the_reader_is_told_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(PreconditionError, match=r"^chromium is missing and there is no apt-get here;"):
        debian.ensure("chromium", print, {"PATH": str(tmp_path)})


def test_only_root_may_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    fake_command(tmp_path, "apt-get")
    with pytest.raises(PreconditionError, match=r"only root may install it; run `sudo apt-get install chromium`\.$"):
        debian.ensure("chromium", print, {"PATH": str(tmp_path)})


def test_what_apt_said_is_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    fake_command(tmp_path, "apt-get", "E: no network", exit_code=100)
    with pytest.raises(LocalError, match=r"ended with exit code 100; it said:\nE: no network$"):
        debian.ensure("chromium", print, {"PATH": str(tmp_path)})
