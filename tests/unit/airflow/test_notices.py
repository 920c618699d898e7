from __future__ import annotations

import json
import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import BaseNotifier

from twinlog.airflow.notices import FailureNotifier, Notice, NoticeKind, tell, tell_changes
from twinlog.airflow.settings import notifiers
from twinlog.errors import ConfigurationError

told: list[tuple[str, Notice]] = []


class Telling(BaseNotifier):
    template_fields = ("text",)

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def notify(self, context: Any) -> None:
        told.append((self.text, context["notice"]))


class Failing(BaseNotifier):
    def notify(self, context: Any) -> None:
        assert context["notice"] is LINKED
        raise OSError("the mail server is away")


def configure(monkeypatch: pytest.MonkeyPatch, *found: dict[str, Any]) -> None:
    monkeypatch.setenv("AIRFLOW__TWINLOG__NOTIFIERS", json.dumps(found))


@pytest.fixture(autouse=True)
def _nothing_told() -> None:
    told.clear()


def named(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


LATE = Notice(NoticeKind.LAG, "nyc->lon", "nyc->lon is 90 s behind")
CAUGHT_UP = Notice(NoticeKind.LAG, "nyc->lon", "nyc->lon is within 60 s again", over=True)
LINKED = replace(LATE, link="http://elsewhere")
TASK = SimpleNamespace(log_url="http://airflow/task", task_id="copy", dag_id="mirror__nyc_to_lon")


def context(**more: Any) -> Any:
    return {"ti": TASK, **more}


def test_whoever_is_named_is_told_with_the_notice_in_their_templates_and_where_to_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure(monkeypatch, {"class": named(Telling), "text": "!! {{ notice.title }}"})
    tell(context(), LATE)
    ((text, notice),) = told
    assert text == "!! nyc->lon is 90 s behind"
    assert notice.link == "http://airflow/task"
    assert notice.to_json()["kind"] == "lag"


def test_one_that_fails_or_cannot_be_made_is_named_and_the_others_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    configure(
        monkeypatch,
        {"class": named(Failing)},
        {"class": "nowhere.Notifier"},
        {"class": named(Telling), "wrong": "argument"},
        {"class": named(Telling), "text": "told"},
    )
    with caplog.at_level(logging.WARNING, "twinlog.airflow.notices"):
        tell(context(), LINKED)
    assert [text for text, _ in told] == ["told"]
    assert f"{named(Failing)} could not tell it: OSError: the mail server is away" in caplog.text
    assert "the notifier nowhere.Notifier could not be made: " in caplog.text
    assert f"the notifier {named(Telling)} could not be made: " in caplog.text


def test_what_holds_on_is_told_once_and_its_end_once(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, {"class": named(Telling), "text": "{{ notice.over }}"})
    assert tell_changes(context(), [CAUGHT_UP], before=[]) == []
    assert told == []
    holds = tell_changes(context(), [LATE], before=[])
    assert holds == ["lag"]
    holds = tell_changes(context(), [LATE], before=holds)
    assert [text for text, _ in told] == ["False"]
    assert tell_changes(context(), [CAUGHT_UP], before=holds) == []
    assert [text for text, _ in told] == ["False", "True"]


def test_of_runs_that_fail_one_after_the_other_the_first_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, {"class": named(Telling), "text": "{{ notice.title }}: {{ notice.text }}"})
    for before in (None, "success", "failed"):
        run = None if before is None else SimpleNamespace(state=before)
        ti = SimpleNamespace(**vars(TASK), get_previous_dagrun=lambda run=run: run)
        FailureNotifier("nyc->lon")(context(ti=ti, exception=OSError("no route")))
    assert [text for text, _ in told] == ["nyc->lon: copy of mirror__nyc_to_lon failed: no route"] * 2


def test_nobody_is_named_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW__TWINLOG__NOTIFIERS", raising=False)
    assert notifiers() == []


@pytest.mark.parametrize(
    "text", ['[{"class": "a.B", "password": "geheim"}', '{"class": "a.B"}', '[{"text": "geheim"}]']
)
def test_what_can_not_be_read_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("AIRFLOW__TWINLOG__NOTIFIERS", text)
    with pytest.raises(ConfigurationError, match=r"`notifiers` in the section \[twinlog\]") as refused:
        notifiers()
    assert "geheim" not in str(refused.value)
