"""Record the README's picture, the sampling lab moving: `python -m tests.bench.recording`.

A mouse drags two sliders of the real page; each screenshot is a frame of .github/sampling.webp.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import ROOT, Server, launch, settle

ADDRESS = "/sampling?lang=en&prompt=今天天气&temperature=1.0&top_p=1.0"
DRAGS = (("Temperature", (0.5, 0.3, 0.7)), ("Top-p", (0.99, 0.6, 0.9)))  # shares of the slider's width
SIZE = {"width": 1366, "height": 768}
SHOWN = (1024, 576)
STEP = 0.02  # of a slider's width, from frame to frame
MILLISECONDS, PAUSE = 80, 900  # a frame is shown; the last one of a drag


def drag(page: Page, slider: str, places: tuple[float, ...]) -> list[Image.Image]:
    """Drag a slider from place to place and return the frames."""
    handle = page.get_by_role("slider", name=slider, exact=True)
    box = handle.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    frames = []
    page.mouse.move(box["x"] + places[0] * box["width"], y)
    page.mouse.down()
    for start, end in zip(places, places[1:], strict=False):
        n = max(1, round(abs(end - start) / STEP))
        for i in range(1, n + 1):
            page.mouse.move(box["x"] + (start + (end - start) * i / n) * box["width"], y)
            page.wait_for_timeout(50)
            frames.append(
                Image.open(io.BytesIO(page.screenshot())).convert("RGB").resize(SHOWN, Image.Resampling.LANCZOS)
            )
    page.mouse.up()
    return frames


def main() -> None:
    """Write the recording."""
    target = ROOT / ".github" / "sampling.webp"
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Server("app.py", Path(folder) / "log.txt")
        browser = launch(playwright)
        try:
            page = browser.new_page(viewport=SIZE)
            page.goto(server.url + ADDRESS)
            page.locator(".row .now").first.wait_for(timeout=120_000)
            settle(page)
            first = page.get_by_role("slider", name=DRAGS[0][0], exact=True)
            first.evaluate("slider => slider.scrollIntoView({block: 'center'})")
            page.wait_for_timeout(2000)
            frames, times = [], []
            for slider, places in DRAGS:
                taken = drag(page, slider, places)
                frames += taken
                times += [MILLISECONDS] * (len(taken) - 1) + [PAUSE]
        finally:
            browser.close()
            server.stop()
    frames[0].save(target, save_all=True, append_images=frames[1:], duration=times, loop=0, quality=55, method=6)
    print(f"{target}: {len(frames)} frames, {target.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
