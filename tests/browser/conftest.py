"""A real browser for the pages we make: Debian's chromium, driven by Playwright.

Every page opened through `open_page` is held to the same: no error on the
console, no request to anywhere but its own file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PLACES = ("chromium", "chromium-browser", "google-chrome")


def _missing(what: str) -> None:
    """A missing browser is a failure where it was promised, and a clear skip elsewhere."""
    if os.environ.get("CI") == "true":
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("no browser test: pip install playwright")
    program = next((path for name in PLACES if (path := shutil.which(name))), None)
    if program is None:
        _missing("no browser test: chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a file in a fresh context; scheme, width and height may be named."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def open_one(file: Path, *, scheme: str = "light", width: int = 1200, height: int = 900) -> Any:
        context = browser.new_context(
            color_scheme=scheme,
            viewport={"width": width, "height": height},
            reduced_motion="reduce",
            accept_downloads=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: _judge_request(request.url, complaints))
        page.goto(file.resolve().as_uri())
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


def _judge_request(url: str, complaints: list[str]) -> None:
    if not url.startswith(("file:", "data:", "blob:")):
        complaints.append(f"the page asked for {url}")


@pytest.fixture
def axe() -> Callable[[Any], list[str]]:
    """Return what axe-core finds wrong with a page, one line a fault."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        _missing("no accessibility test: pip install axe-playwright-python")

    def run(page: Any) -> list[str]:
        found = Axe().run(page).response["violations"]
        return [
            f"{fault['id']}: {node['html'][:120]}: {node['failureSummary']}"
            for fault in found
            for node in fault["nodes"]
        ]

    return run
