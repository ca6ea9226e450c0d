"""A text under a slider, in a browser: from the key that moves it to the picture: `python -m tests.bench.through_page`.

The prompt is a text of about 512 tokens, for SmolLM2 or the model that is named. What is told is the time from the
key's release to the last change of the summary, of the text and of the chart; the page answers with everything else
that it shows meanwhile.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import Server, launch, settle

SENTENCE = (
    "The weather report said that it would rain in the north, but the sun shone on the {n} old bridges of the town. "
)
SLIDERS = {"Top-p": {}, "Temperature": {"temperature": 1.5}, "Repetition penalty": {"repetition_penalty": 1.2}}
MOVES = 5
PARTS = {"summary": ".stTable", "text": ".st-key-through-text", "chart": ".st-key-through-chart"}
WATCH = """(parts) => {
  globalThis.changed = {};
  addEventListener("keyup", () => { globalThis.begun = performance.now(); changed = {}; }, true);
  new MutationObserver((changes) => {
    for (const { target } of changes) {
      const element = target.nodeType === 1 ? target : target.parentElement;
      for (const [name, selector] of Object.entries(parts)) {
        const isOf = element?.closest(selector) || element?.querySelector?.(`:scope > ${selector}`);
        if (isOf) changed[name] = performance.now();
      }
    }
  }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
}"""


def measure(page: Page, slider: str) -> dict[str, list[float]]:
    """Move a slider by keys and return what each part took."""
    page.evaluate(WATCH, PARTS)
    handle = page.get_by_role("slider", name=slider, exact=True)
    handle.focus()
    found: dict[str, list[float]] = {name: [] for name in PARTS}
    for _ in range(MOVES):
        page.keyboard.press("ArrowLeft")
        page.wait_for_timeout(1500)
        settle(page)
        for name, at in page.evaluate(
            "Object.fromEntries(Object.entries(changed).map(([n, t]) => [n, t - begun]))"
        ).items():
            found[name].append(at)
    return found


def main() -> None:
    """Print the table."""
    model = sys.argv[1] if len(sys.argv) > 1 else "smollm2-135m-instruct"
    prompt = "".join(SENTENCE.format(n=n) for n in range(20))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Server("app.py", Path(folder) / "log.txt")
        browser = launch(playwright)
        try:
            print(f"{'slider':<20}" + "".join(f"{name + ' ms':>14}" for name in PARTS))
            for slider, values in SLIDERS.items():
                asked = {"model": model, "prompt": prompt, "through": 1, "top_p": 0.9, **values}
                page = browser.new_page(viewport={"width": 1400, "height": 1000})
                page.goto(f"{server.url}/sampling?{urlencode(asked)}")
                page.locator(".st-key-through-chart").wait_for(timeout=180_000)
                settle(page)
                found = measure(page, slider)
                page.close()
                told = (f"{statistics.median(times):>14.0f}" if times else f"{'-':>14}" for times in found.values())
                print(f"{slider:<20}" + "".join(told), flush=True)
        finally:
            browser.close()
            server.stop()


if __name__ == "__main__":
    main()
