"""From "Draw" to the frame in which every part shows the new token: `python -m tests.bench.overview [model ...]`.

In a real browser, with the server on the same machine: the model's step, the way of the new token, the message and the
scripts' drawing are all in it. The clock starts at the click and stops in the first task after the frame that drew the
new row; all parts are drawn in one go. Beside it the processor time that the server and the browser took: on a busy
machine that says more than the clock.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import Server, launch, settle

PROMPTS = {8: "The capital of France is the city of", 60: "The capital of France is the city of Paris. " * 6}
TARGETS_MS = {"small-world": 100, "smollm2-135m-instruct": 300}
DRAWS = 12
LAPTOP = {"width": 1366, "height": 768}
DRAW = """() => new Promise((resolve) => {
  const hosts = [...document.querySelectorAll("*")].map((e) => e.shadowRoot).filter(Boolean);
  const view = [document, ...hosts].map((r) => r.querySelector(".overview")).find(Boolean);
  const start = performance.now();
  new MutationObserver((changes, observer) => {
    observer.disconnect();
    requestAnimationFrame(() => {
      const after = new MessageChannel();
      after.port1.onmessage = () => resolve(performance.now() - start);
      after.port2.postMessage(0);
    });
  }).observe(view.querySelector(".text .rows"), { childList: true });
  view.querySelector(".button.primary").click();
})"""


class Row(NamedTuple):
    """One model and length of text: what a draw took, in milliseconds."""

    model: str
    tokens: int
    first: float
    median: float
    largest: float
    server_cpu: float
    browser_cpu: float


def cpu_ms(pids: list[int]) -> float:
    """Return the processor time of processes, in milliseconds."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        ticks += int(fields[11]) + int(fields[12])
    return 1000 * ticks / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> list[int]:
    """Return a process and all that it started."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def measure(page: Page, server: Server, browsers: list[int], model: str, prompt: str) -> Row:
    """Draw some tokens and return what it took."""
    page.goto(f"{server.url}/?lang=en&model={model}&temperature=1&prompt={quote(prompt)}")
    page.locator(".overview .bar-row").first.wait_for()
    settle(page)
    page.wait_for_timeout(1000)
    # "4 tokens . ids below ..." is said by the page itself
    tokens = int(re.sub(r"\D", "", page.locator(".overview .text .note").inner_text().partition("·")[0]))
    took = []
    for draw in range(DRAWS):
        if draw == 1:
            before = cpu_ms([server.pid]), cpu_ms(browsers)
        took.append(page.evaluate(DRAW))
        page.wait_for_timeout(400)  # the row has come; what follows, as the address, is not waited for
    after = cpu_ms([server.pid]), cpu_ms(browsers)
    cpu = [(end - start) / (DRAWS - 1) for start, end in zip(before, after, strict=True)]
    return Row(model, tokens, took[0], statistics.median(took[1:]), max(took[1:]), *cpu)


def main() -> None:
    """Print the table."""
    models = sys.argv[1:] or list(TARGETS_MS)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Server("app.py", Path(folder) / "log.txt")
        browser = launch(playwright)
        try:
            print(f"{'model':24}{'tokens':>7}{'first':>8}{'median':>8}{'largest':>9}{'server':>10}{'browser':>10}  ms")
            context = browser.new_context(viewport=LAPTOP, locale="en-US")
            context.set_default_timeout(240_000)
            page = context.new_page()
            browsers = [pid for pid in descendants(os.getpid()) if pid not in (os.getpid(), server.pid)]
            for model in models:
                for prompt in PROMPTS.values():
                    row = measure(page, server, browsers, model, prompt)
                    target = TARGETS_MS.get(model)
                    met = "" if target is None else f"of {target}"
                    print(
                        f"{row.model:24}{row.tokens:>7}{row.first:>8.0f}{row.median:>8.0f}{row.largest:>9.0f}"
                        f"{row.server_cpu:>10.0f}{row.browser_cpu:>10.0f}  {met}",
                        flush=True,
                    )
        finally:
            browser.close()
            server.stop()


if __name__ == "__main__":
    main()
