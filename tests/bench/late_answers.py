"""Every control of every page, worked faster than the server answers.

    python -m tests.bench.late_answers [--seconds 0.8] [page ...]

Prints, for each view, what was not as the reader left it. A minute for four or five views.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, sync_playwright

from tests.browser.conftest import Server, launch, settle
from tests.browser.delaying_proxy import DelayingProxy
from tests.browser.late import controls, faults
from tests.browser.views import VIEWS, address

PROMPT = "The weather today is very"


def main() -> None:
    """Go through the pages."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.late_answers", description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*", help=f"of {', '.join(VIEWS)}, or one view as blocks:attention; else all")
    parser.add_argument("--seconds", type=float, default=0.8, help="by which answers are late")
    given = parser.parse_args()
    n_controls = n_faults = 0
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        server = Server("app.py", Path(scratch) / "log.txt")
        browser = launch(playwright)
        try:
            for name in given.pages or VIEWS:
                page_name, _, only = name.partition(":")
                for view in [only] if only else VIEWS[page_name][1]:
                    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US")
                    context.set_default_timeout(120_000)
                    proxy, started = DelayingProxy(server.port), time.monotonic()

                    def fresh(url: str, context: BrowserContext = context) -> Page:
                        page = context.new_page()
                        page.goto(url)
                        settle(page)
                        return page

                    page = fresh(proxy.url + address(page_name, view, prompt=PROMPT, lang="en"))
                    page.wait_for_timeout(500)
                    found = controls(page)
                    wrong = list(faults(page, proxy, fresh, given.seconds, found))
                    n_controls, n_faults = n_controls + len(found), n_faults + len(wrong)
                    title = f"{page_name} {view}".strip()
                    print(f"{title}: {'; '.join(map(str, found))} ({time.monotonic() - started:.0f} s)", flush=True)
                    for line in wrong:
                        print(f"    {line}", flush=True)
                    context.close()
                    proxy.close()
        finally:
            browser.close()
            server.stop()
    print(f"{n_controls} controls, {n_faults} faults")


if __name__ == "__main__":
    main()
