"""The contrast of every text on every view, in light and dark, texts of charts too, which axe-core leaves out.

    python -m tests.bench.contrast [page ...]

Prints texts below 4.5 (WCAG 2.2, success criterion 1.4.3), or below 3 where they are large, each kind once.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import Server, launch, settle
from tests.browser.views import VIEWS, address

# Texts written on cells and bars are left out: tests/browser/test_cells.py and Plotly see to them.
_FAINT = """() => {
  const channels = (written) => {
    const parts = (written.match(/[\\d.]+/g) ?? []).map(Number);
    return written.startsWith("color(srgb") ? [...parts.slice(0, 3).map((part) => part * 255), parts[3] ?? 1]
      : [...parts.slice(0, 3), parts[3] ?? 1];
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
  const luminance = (rgb) => rgb.map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const above = (element) => element.parentElement ?? element.getRootNode().host ?? null;
  const paper = channels(getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor);
  const found = {}, roots = [document.querySelector("[data-testid=stApp]")];
  for (const root of roots)
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) roots.push(element.shadowRoot);
      const own = [...element.childNodes].filter((node) => node.nodeType === 3);
      const text = own.map((node) => node.data).join("").trim();
      if (!text || element.matches("style, script, title, .bartext, .textpoint *, .hovertext *")) continue;
      if (element.closest(".katex-mathml, [disabled], [aria-disabled=true], [data-testid=stIconMaterial]")) continue;
      if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      const box = element.getBoundingClientRect();
      if (box.width < 2 || box.height < 2) continue;
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
      const style = getComputedStyle(element), isSvg = element instanceof SVGElement;
      let opacity = isSvg ? Number(style.fillOpacity) : 1;
      const layers = [];
      for (let around = element; around; around = above(around)) {
        const its = getComputedStyle(around), area = around.getBoundingClientRect();
        opacity *= Number(its.opacity);
        const isBehind = area.left <= x && x <= area.right && area.top <= y && y <= area.bottom;
        if (isBehind && its.backgroundImage !== "none") layers.push(null);
        if (isBehind) layers.push(channels(its.backgroundColor));
      }
      if (layers.includes(null)) continue; // a gradient: nothing to compute
      const ground = layers.reverse().reduce((below, layer) => over(layer, below), paper.slice(0, 3));
      const ink = channels(isSvg ? style.fill : style.color);
      const ratio = contrast(over([...ink.slice(0, 3), ink[3] * opacity], ground), ground);
      const size = parseFloat(style.fontSize), isBold = Number(style.fontWeight) >= 700;
      const isLarge = size >= (isBold ? 18.66 : 24);
      if (ratio < (isLarge ? 3 : 4.5)) {
        const kind = [element.tagName, element.getAttribute("class") ?? "", style.color, ratio.toFixed(2)].join(" ");
        found[kind] ??= text.slice(0, 40);
      }
    }
  return Object.entries(found);
}"""


def main() -> None:
    """Go through the views."""
    faint = 0
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        server = Server("app.py", Path(scratch) / "log.txt")
        browser = launch(playwright)
        try:
            page = browser.new_page(viewport={"width": 1280, "height": 1000}, locale="en-US")
            for name in sys.argv[1:] or VIEWS:
                for view in VIEWS[name][1]:
                    for scheme in ("light", "dark"):
                        page.emulate_media(color_scheme=scheme)
                        page.goto(server.url + address(name, view, prompt="The weather today is very", lang="en"))
                        settle(page)
                        page.wait_for_timeout(1000)
                        for kind, text in page.evaluate(_FAINT):
                            faint += 1
                            print(f"{name} {view}, {scheme}: {kind}: {text!r}", flush=True)
        finally:
            browser.close()
            server.stop()
    print(f"{faint} kinds of faint text")


if __name__ == "__main__":
    main()
