from __future__ import annotations

import logging

import pytest

import twinlog.cluster.connections  # noqa: F401 - what it does to the library's loggers is what is tested


@pytest.mark.parametrize("name", ["kafka.net.connection", "kafka.protocol.parser", "kafka.net.manager"])
def test_the_library_logs_nothing_at_any_level(name: str) -> None:
    assert not logging.getLogger(name).isEnabledFor(logging.CRITICAL)


def test_a_library_logger_that_is_given_a_level_reaches_no_handler_either(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[logging.LogRecord] = []
    everything = logging.Handler()
    monkeypatch.setattr(everything, "emit", shown.append)
    monkeypatch.setattr(logging.getLogger(), "handlers", [everything])
    logger = logging.getLogger("kafka.net.connection")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        logger.error("a body with a password")
    finally:
        logger.setLevel(level)
    assert not shown
