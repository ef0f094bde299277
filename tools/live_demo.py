# SPDX-License-Identifier: Apache-2.0
"""Live captions in the browser: a server, a commentary as a recognizer gives it, and the pages.

With --seconds 0 the commentary goes on until it is interrupted; --screenshot takes a picture of
a page with Chromium and ends. docs/images/live-viewers.png is of --page '?to=de'.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp

from ct2_triton.errors import Ct2TritonError
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import ServerOptions, TritonServer

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))
from recognizer_simulator import RecognizerSimulator  # noqa: E402

if TYPE_CHECKING:
    from ct2_triton.live import SegmentUpdate

BUILD = ROOT / "build" / "live-demo"
COMMENTARY = Path(__file__).with_name("commentary.txt")
LANGUAGES = "de,fr,es,it,pt,nl"
SPEAKER = "stadium"
_RECORD = "arecord -q -t raw -r 16000 -f S16_LE"


def main() -> int:
    """Run the demo.

    Returns:
        The exit code: 0 done, 1 failed, 130 interrupted.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="(default: %(default)g)")
    parser.add_argument("--port", type=int, default=8090, help="(default: %(default)s)")
    parser.add_argument("--screenshot", type=Path, metavar="FILE", help="a .png of a page")
    parser.add_argument("--page", default="demo", help="of which; '?to=de': the viewers' page")
    args = parser.parse_args()
    try:
        _demo(args)
    except Ct2TritonError as error:
        print(f"live-demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _demo(args: argparse.Namespace) -> None:
    repository = BUILD / "model_repository"
    prepare(PrepareOptions("demo", repository, force=True))
    with TritonServer(ServerOptions(model_repositories=[repository])) as server:
        command = [str(Path(sys.executable).with_name("ct2-live")), "--model", "demo"]
        command += ["--from", "en", "--to", LANGUAGES, "--url", server.grpc_url]
        command += ["--model-repository", str(repository), "--port", str(args.port)]
        command += ["--subtitles", str(BUILD / "subtitles")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as live:
            try:
                if not live.stdout or not (line := live.stdout.readline()):
                    raise Ct2TritonError("ct2-live has not started; it has said why")
                url = line.split()[1]
                print(f"viewers: {url}   demo: {url}demo   (for {args.seconds:g} s)")
                print(
                    f"your microphone: {_RECORD} | python examples/hear.py --event {url}",
                    flush=True,
                )
                asyncio.run(_speak(url, args))
            finally:
                live.terminate()
                live.wait()
    print(f"subtitles: {BUILD / 'subtitles'}")


async def _speak(url: str, args: argparse.Namespace) -> None:
    """Speaks the commentary, and takes the picture in the middle of a sentence."""
    lines = COMMENTARY.read_text(encoding="utf-8").splitlines()
    seconds = args.seconds or 1e9
    updates = list(RecognizerSimulator(SPEAKER, 1).updates(lines, seconds))
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{url}speak?speaker={SPEAKER}") as socket,
    ):
        picture = asyncio.create_task(_picture(url, args)) if args.screenshot else None
        start = time.monotonic()
        for update in updates:
            await asyncio.sleep(max(0.0, start + _time(update) - time.monotonic()))
            message = {"segment": update.segment, "text": update.text, "final": update.final}
            await socket.send_json({**message, "time": update.time})
            await socket.receive_json()
            if picture and picture.done():
                break
        if picture:
            await picture


async def _picture(url: str, args: argparse.Namespace) -> None:
    """Take a picture of the page after some sentences."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--window-size=1400,900", "--lang=en-US"):
        options.add_argument(argument)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    browser = await asyncio.to_thread(webdriver.Chrome, options=options, service=service)
    await asyncio.to_thread(browser.get, f"{url}{args.page}")
    await asyncio.sleep(min(25.0, 0.6 * args.seconds))
    await asyncio.to_thread(browser.save_screenshot, str(args.screenshot))
    await asyncio.to_thread(browser.quit)


def _time(update: SegmentUpdate) -> float:
    return update.time or 0.0


if __name__ == "__main__":
    sys.exit(main())
