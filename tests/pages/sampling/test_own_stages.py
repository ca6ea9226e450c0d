"""The operator's own stages: in the lab with their knobs, computed by Python; what is wrong is in the log and on About.

They are imported once when a server starts, so each test starts a Python of its own, as a server would.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages.harness import ROOT

STAGE = """
from lmcore.sampling import Field, Note, Range, Stage, register

def every_other(tokens, context):
    kept = tokens.keep_where(tokens.token_ids % context.settings.position == 0)
    return kept, Note("kept of *{n}*", n=len(tokens))

register(Stage(
    name="position", title="**Every** <b>n-th</b>", help="Temperature", kind="filter", formula="id mod n = 0",
    source="a test", run=every_other,
    fields=(Field(name="position", off=1, range=Range(1, 9), whole=True, on=2, stops=lambda size: range(1, 10)),),
))
"""
SERVER = """
import base64, json, re
import app  # as a server does, which takes the stages in
import numpy as np
from pages.live.part import scripts
from tests.pages.harness import open_page, parts, table_with, told
"""
LAB = """
written = scripts()["sampling_lab/declared.js"].decode()
tables = dict(re.findall(r"export const (\\w+) = (.*?);\\n", written, re.DOTALL))
shown = open_page("sampling", prompt="今天天气", lang="zh", position="1", **{"own.position": "3"})
_data, settings, result, rest = parts(shown, "sampling")
packed = base64.b64decode(result["text"])
start, size = 8 + int.from_bytes(packed[:8], "little"), len(_data) // 4
frame = table_with(shown, "id")
refused = open_page("sampling", prompt="今天天气", **{"own.position": "12"})
print(json.dumps({
    "stage": json.loads(tables["STAGES"])["position"], "off": json.loads(tables["OFF"])["position"],
    "value": settings["position"], "declared": next(s for s in rest["stages"] if s["name"] == "position"),
    "head": json.loads(packed[8:start]),
    "kept": np.flatnonzero(np.frombuffer(packed[start : start + 8 * size])).tolist(),
    "removed by": sorted(set(frame.iloc[:, -2])),
    "ids": rest["history"]["prompt"], "size": size, "snippet": shown.code[-1].value,
    "lacks": [str(row) for row in shown.table[0].value.iloc[:, 0]], "told": told(refused),
}))
"""
ABOUT = """
shown = open_page("about")
print(json.dumps({"told": told(shown), "problems": [each.value for each in shown.code],
    "failed": len(shown.exception)}))
"""


def served(stages: Path, code: str) -> tuple[dict, str]:
    """Return what a fresh server says of itself, and its log."""
    env = os.environ | {"GLASS_BOX_LM_STAGES": str(stages), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", SERVER + code], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.py").write_text(STAGE, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_a_stage_of_the_operators_is_in_the_lab_and_computed_by_python(folder: Path) -> None:
    lab, _log = served(folder / "good.py", LAB)
    assert lab["stage"] == {"switches": ["position"], "fields": ["position"], "kind": "filter"} and lab["off"] == 1
    declared = lab["declared"]
    assert declared["title"] == "**Every** <b>n-th</b>" and declared["help"] == "Temperature"  # data: not translated
    (field,) = declared["fields"]
    assert (field["low"], field["high"], field["on"], field["stops"]) == (1, 9, 2, list(range(1, 10)))
    # The page's own position is another value than the stage's.
    assert lab["value"] == 3 and len(lab["ids"]) == 2
    assert [step["name"] for step in lab["head"]["steps"]] == ["position"]
    assert lab["head"]["steps"][0]["note"] == f"kept of *{lab['size']}*"
    assert lab["kept"] == [token for token in range(lab["size"]) if token % 3 == 0]
    assert lab["removed by"] == ["", "**Every** <b>n-th</b>"] and "position=3" in lab["snippet"]
    assert all("`**Every**␣<b>n-th</b>`" in row for row in lab["lacks"])  # a table in Markdown: literal
    assert "12 is not valid for own.position" in lab["told"]


@pytest.mark.slow
def test_what_cannot_be_used_is_in_the_log_and_on_about_and_the_rest_goes_on(folder: Path) -> None:
    (folder / "bad.py").write_text(STAGE.replace("position", "token"), encoding="utf-8")
    (folder / "broken.py").write_text("import nothing_of_that_name", encoding="utf-8")
    about, log = served(folder, ABOUT)
    assert about["failed"] == 0 and "good.py adds **Every** <b>n-th</b>, computed by Python." in about["told"]
    for name, problem in {
        "bad.py": "'token' has another meaning here; give the stage or field another name.",
        "broken.py": "ModuleNotFoundError: No module named 'nothing_of_that_name'",
    }.items():
        assert f"`{name}`, which GLASS_BOX_LM_STAGES names, could not be used." in about["told"]
        assert problem in about["problems"] and f"{folder / name} could not be used" in log and problem in log
