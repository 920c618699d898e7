"""The Mirroring page as a person meets it: log in, find it in the navigation, read the flows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from local import airflow, places
from support.airflow_site import GOOD_DAG, Site

TIMEOUT_MS = 30_000

# Whichever test is first waits for the whole Airflow to start.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def page(airflow_site: Site) -> Iterator[Page]:
    chromium = shutil.which("chromium")
    assert chromium is not None, "install Chromium: `make test` does it"
    with sync_playwright() as playwright:
        # Containers have no user namespaces for the sandbox; the only pages opened are our own.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 720}, locale="en-GB")
        page.set_default_timeout(TIMEOUT_MS)
        requested: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        yield page
        browser.close()
    assert [url for url in requested if url.startswith("http") and not url.startswith(airflow_site.url)] == []


def log_in(page: Page, site: Site) -> None:
    page.goto(site.url)
    password = json.loads(site.password_file.read_text())[airflow.USER]
    page.get_by_label("Username").fill(airflow.USER)
    page.locator("input[type=password]").fill(password)
    page.locator("button[type=submit]").click()
    page.wait_for_url(lambda url: "/login" not in url)


def test_a_person_logs_in_and_sees_the_flows(page: Page, airflow_site: Site) -> None:
    client = airflow_site.client
    run = client.await_run(client.trigger(GOOD_DAG), 150)
    log_in(page, airflow_site)
    page.get_by_role("link", name="Mirroring").click()
    frame = page.frame_locator("iframe[title=Mirroring]")
    expect(frame.get_by_role("heading", name="Mirroring")).to_be_visible(timeout=TIMEOUT_MS)
    row = frame.get_by_role("row").filter(has_text="nyc->lon")
    expect(row).to_contain_text("prefixed")
    looked = row.get_by_role("cell").filter(has_text="lon:").get_by_role("link", name="success")
    expect(looked).to_be_visible(timeout=TIMEOUT_MS)
    folder = places.work_folder() / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / "mirroring.png")
    looked.click()
    page.wait_for_url(f"**/dags/{GOOD_DAG}/runs/**", timeout=TIMEOUT_MS)
    assert run.run_id.split(":")[0] in page.url


def test_who_is_not_logged_in_sees_nothing_of_it(page: Page, airflow_site: Site) -> None:
    answer = page.goto(f"{airflow_site.url}/twinlog/")
    assert answer is not None
    assert answer.status == 401
    assert "nyc" not in page.content()
