# SPDX-License-Identifier: Apache-2.0
"""A real Chromium without a screen, for tests of pages."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no chromium and chromedriver: tools/browser_packages.sh"
)


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """Starts it with a profile folder of its own."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--lang=en-US", "--js-flags=--expose-gc", f"--user-data-dir={profile}",
        "--window-size=1280,800",
    ):  # fmt: skip
        options.add_argument(argument)
    service = webdriver.ChromeService(executable_path=str(DRIVER))
    with webdriver.Chrome(options=options, service=service) as driver:
        yield driver


async def run(browser: Any, script: str) -> Any:
    """Gives the value of an expression; the event loop serves the page meanwhile."""
    return await asyncio.to_thread(browser.execute_script, f"return {script}")


async def until(browser: Any, script: str, wanted: Any) -> None:
    """Waits until an expression gives a value."""
    for _ in range(600):
        found = await run(browser, script)
        if found == wanted:
            return
        await asyncio.sleep(0.05)
    assert found == wanted


def show_as(browser: Any, width: int, height: int, scheme: str) -> None:
    """Gives the page a size, as of a phone, and a light or dark scheme."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


async def set_languages(browser: Any, accepted: str) -> None:
    """Sets the languages of the browser's user."""
    agent = await run(browser, "navigator.userAgent")
    given = {"userAgent": agent, "acceptLanguage": accepted}
    await asyncio.to_thread(browser.execute_cdp_cmd, "Emulation.setUserAgentOverride", given)
