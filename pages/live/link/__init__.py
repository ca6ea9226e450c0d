"""Write the page's state into the browser's address, without a new entry in its history."""

from __future__ import annotations

from urllib.parse import urlencode

from pages.live.part import part


def show_in_address(run: int, parameters: dict[str, str]) -> None:
    """Make the browser's address say `parameters`, e.g. {"prompt": "今天天气", "layer": "2"}.

    `run` grows from run to run, also when the server was started anew, so that the script runs even when the
    parameters are the same as before, turning to a page clears the address, and never goes back to an older run.
    """
    part("link")(key="explorer_link", data={"query": urlencode(parameters), "run": run}, height=0)
