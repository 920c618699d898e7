from __future__ import annotations

from pathlib import Path

import pytest

from twinlog.airflow.settings import topology_path
from twinlog.errors import ConfigurationError


def test_the_environment_names_the_file() -> None:
    assert topology_path({"TWINLOG_TOPOLOGY": "/etc/twinlog.yaml"}) == Path("/etc/twinlog.yaml")


def test_airflows_configuration_names_it_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__TWINLOG__TOPOLOGY", "/etc/other.yaml")
    assert topology_path({}) == Path("/etc/other.yaml")


def test_with_neither_the_error_says_where_to_name_it() -> None:
    with pytest.raises(ConfigurationError, match="TWINLOG_TOPOLOGY or as `topology` in the section"):
        topology_path({})
