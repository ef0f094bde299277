# SPDX-License-Identifier: Apache-2.0
"""Takes the pictures of docs/gateway.md: the page of ct2-gateway on the demo model, in Chromium.

python tools/gateway_pictures.py
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

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
TEXT = "Welcome to Castelmar! The ticket office opens at 5:45."
PICTURES = {  # width, height, scheme, target
    "gateway.png": (1280, 700, "light", "de"),
    "gateway-dark.png": (1280, 700, "dark", "fr"),
    "gateway-phone.png": (390, 844, "light", "es"),
}
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


def take(driver: webdriver.Chrome, url: str, name: str) -> None:
    """Take one picture."""
    width, height, scheme, target = PICTURES[name]
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(f"{url}?{urlencode({'source': 'auto', 'target': target, 'q': TEXT})}")
    WebDriverWait(driver, 60).until(lambda one: one.execute_script(IS_SHOWN))
    driver.save_screenshot(str(IMAGES / name))


def main() -> None:
    """Take all pictures."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--lang=en-US"):
        options.add_argument(argument)
    service = webdriver.ChromeService(executable_path="/usr/bin/chromedriver")
    with gateway() as url, webdriver.Chrome(options=options, service=service) as driver:
        for name in PICTURES:
            take(driver, url, name)


if __name__ == "__main__":
    main()
