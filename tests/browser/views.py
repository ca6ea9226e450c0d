"""Every view of every page by its address, and what is looked for on all of them."""

from __future__ import annotations

from urllib.parse import quote

from playwright.sync_api import Page

# A page, the value that says which view it shows, and its views.
VIEWS = {
    "overview": ("", ("",)),
    "tokenization": (
        "tokenization.view",
        ("tokens", "chat", "compare", "merges", "train", "vocabulary", "special", "whose", "names"),
    ),
    "embedding": ("table.view", ("lookup", "neighbours", "map", "film", "random", "arithmetic", "sentences")),
    "position": (
        "position.view",
        ("order", "length", "distance", "compare", "sinusoidal", "learned", "rope", "scaling", "alibi", "relative"),
    ),
    "blocks": (
        "blocks.view",
        ("attention", "query", "residual", "mlp", "interventions", "experts", "context", "tensors"),
    ),
    "logits": ("logits.view", ("next", "text", "several", "dot", "lens", "parts")),
    "sampling": ("source", ("model", "step", "own", "worked")),
    "generation": (
        "generation.view",
        ("write", "search", "trap", "many", "ties", "reported", "cache", "constraints", "speculation"),
    ),
    "compare": ("compare.view", ("positions", "texts", "parts", "quantisation")),
    "tying": ("tying.view", ("storage", "operations", "parameters", "compute", "models", "checks")),
    "training": ("training.view", ("records", "live", "step", "sides", "over")),
    "lessons": ("", ("",)),
    "about": ("", ("",)),
}

# What stands out of the window to the right, or makes it scroll sideways; parts of what scrolls or clips are no matter.
_TOO_WIDE = """() => {
  const width = document.documentElement.clientWidth, main = document.querySelector("[data-testid=stMain]");
  const found = [document.documentElement, main]
    .filter((element) => element.scrollWidth > element.clientWidth + 1)
    .map((element) => `${element.tagName} scrolls by ${element.scrollWidth - element.clientWidth}`);
  const above = (element) => element.parentElement ?? element.getRootNode().host ?? null;
  const isHeld = (element) => {
    for (let around = above(element); around && around !== main; around = above(around))
      if (getComputedStyle(around).overflowX !== "visible" && around.getBoundingClientRect().right <= width + 1)
        return true;
    return false;
  };
  const roots = [document];
  for (const root of roots)
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) roots.push(element.shadowRoot);
      const box = element.getBoundingClientRect();
      if (box.width > 1 && box.height > 1 && box.right > width + 1 && !isHeld(element))
        found.push(`${element.tagName}.${element.getAttribute("class")} by ${Math.round(box.right - width)}`);
    }
  return found.slice(0, 3);
}"""


def address(name: str, view: str, **state: str) -> str:
    """Return the address of a view, e.g. "/blocks?blocks.view=mlp&prompt=..."."""
    values = {**state, **({VIEWS[name][0]: view} if view else {})}
    return f"/{name}?" + "&".join(f"{key}={quote(value, safe='')}" for key, value in values.items())


def too_wide(page: Page) -> list[str]:
    """Return what stands out of the window to the right; charts have some seconds to follow a change of its width."""
    for _ in range(20):
        if not (found := page.evaluate(_TOO_WIDE)):
            return []
        page.wait_for_timeout(250)
    return found


def shown_errors(page: Page) -> list[str]:
    """Return the tracebacks, errors and dialogs of Streamlit that the page shows."""
    return [
        text
        for name in ("stException", "stDialog", "stAlertContentError")
        for text in page.get_by_test_id(name).all_inner_texts()
    ]
