# SPDX-License-Identifier: Apache-2.0
"""Takes the picture of docs/gateway.md: the page of ct2-gateway on the demo model, in Chromium.

python tools/gateway_picture.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait

from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import ServerOptions, TritonServer

if TYPE_CHECKING:
    from collections.abc import Iterator

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "gateway.png"
TEXT = "Great save by Navarro from Ortega!"  # its other translations read well, too
IS_SHOWN = "return document.getElementById('status').textContent.startsWith('Detected')"


@contextmanager
def gateway() -> Iterator[str]:
    """Serve the demo; give the page's address."""
    with tempfile.TemporaryDirectory() as folder:
        prepare(PrepareOptions("demo", Path(folder), io="both"))
        with TritonServer(ServerOptions([Path(folder)])) as server:
            command = [str(Path(sys.executable).with_name("ct2-gateway")), "--port", "0"]
            command += ["--model", "demo-text", "--model-repository", folder]
            command += ["--url", server.grpc_url]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                try:
                    yield (process.stdout.readline() if process.stdout else "").split()[1]
                finally:
                    process.terminate()


def take(driver: webdriver.Chrome, url: str) -> None:
    """Take the picture."""
    size = {"width": 1280, "height": 700, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(f"{url}?{urlencode({'source': 'auto', 'target': 'de', 'q': TEXT})}")
    WebDriverWait(driver, 60).until(lambda one: one.execute_script(IS_SHOWN))
    driver.save_screenshot(str(PICTURE))


def main() -> None:
    """Serve the page and take its picture."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--lang=en-US"):
        options.add_argument(argument)
    service = webdriver.ChromeService(executable_path="/usr/bin/chromedriver")
    with gateway() as url, webdriver.Chrome(options=options, service=service) as driver:
        take(driver, url)


if __name__ == "__main__":
    main()
