"""Stages in files: what is right is registered, what is wrong is said, and nothing of it stays."""

from pathlib import Path

import pytest

from lmcore.sampling import STAGES, Range, SamplingSettings, load_stages, reshape, unregister
from lmcore.sampling.files import try_stage
from lmcore.sampling.registry import all_stages
from lmcore.sampling.stages import BUILT_IN

EVERY = """
from lmcore.sampling import Field, Range, Stage, register

def every_other(tokens, context):
    return tokens.keep_where(tokens.token_ids % context.settings.{name} == 0)

register(Stage(
    name="{name}", title="Every n-th", help="Keeps every n-th id.", kind="filter", formula="id mod n = 0",
    source="a test", run=every_other,
    fields=(Field(name="{name}", off=1, range=Range(1), whole=True, on=2, stops=lambda size: range(1, 9)),),
))
"""


@pytest.fixture(autouse=True)
def nothing_stays():
    yield
    for stage in all_stages()[len(STAGES) :]:
        unregister(stage.name)


def write(path: Path, text: str = EVERY.format(name="every")) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_a_stage_from_then_on(tmp_path):
    (file,) = load_stages(write(tmp_path / "every.py"))
    assert file.problem == "" and [stage.name for stage in file.stages] == ["every"]
    assert reshape([0.0] * 6, SamplingSettings(every=3)).kept_ids.tolist() == [0, 3]


def test_the_example_of_the_guide_is_one(tmp_path):
    guide = (Path(__file__).parents[3] / ".github" / "DEPLOYMENT.md").read_text("utf-8")
    (file,) = load_stages(write(tmp_path / "every.py", guide.split("```python\n")[1].split("```")[0]))
    assert file.problem == "" and reshape([0.0] * 6, SamplingSettings(every=4)).kept_ids.tolist() == [0, 4]


def test_a_folder_is_read_by_name_and_a_broken_file_stops_no_other(tmp_path):
    write(tmp_path / "a.py", EVERY.format(name="first") + "raise OSError('no disk')")
    write(tmp_path / "b.py", EVERY.format(name="second"))
    write(tmp_path / "c.py", EVERY.format(name="second").replace("Every n-th", "Another"))
    write(tmp_path / "d.py", "import sys; sys.exit(3)")
    write(tmp_path / "notes.txt", "no Python")
    first, second, third, fourth = load_stages(tmp_path)
    assert first.problem == "OSError: no disk" and isinstance(first.error, OSError)
    assert second.problem == "" and "registered before" in third.problem and fourth.problem == "SystemExit: 3"
    assert [(stage.name, stage.title) for stage in all_stages()[len(STAGES) :]] == [("second", "Every n-th")]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("register(Stage(", "print(Stage(", "registers no stage"),
        ("kind=", "colour=", "unexpected keyword argument 'colour'"),
        ('"filter"', '"filtre"', "has the kind 'filtre'; it must be one of edit, temperature, filter"),
        ('title="Every n-th"', 'title=""', "needs a title and a help"),
        ("on=2", "on=1", "needs a value `on` that is not its off value"),
        ("on=2", "on=0", "every is 0; it must be an integer, 1 or more"),
        ("off=1", "off=0", "every is 0; it must be an integer, 1 or more"),
        ("range(1, 9)", "range(2, 9)", "the stops of 'every' must include 1"),
        ("run=every_other", "run=every_other, switches=('top_k',)", "switches must name its first field"),
        ("return tokens.keep_where", "return 1 / 0, tokens.keep_where", "every = 2: ZeroDivisionError"),
        ("return tokens", "tokens", "failed when it was tried"),
        ("% context.settings.every == 0)", "% 2 == 0), 'a remark'", "a remark must be a lmcore.sampling.Note"),
        ("def every_other", "def every other", "SyntaxError"),
        ('name="every", title', 'name="top_k", title', "'top_k' is a stage of lmcore"),
    ],
)
def test_what_is_wrong_is_said_and_leaves_nothing(tmp_path, old, new, said):
    text = EVERY.format(name="every")
    assert old in text
    (file,) = load_stages(write(tmp_path / "every.py", text.replace(old, new, 1)))
    assert said in file.problem and file.stages == ()
    assert tuple(stage.name for stage in all_stages()) == STAGES


@pytest.mark.parametrize("name", ["active", "lambda", "_every", "温度", "seed"])
def test_a_name_that_settings_cannot_have_is_refused(tmp_path, name):
    (file,) = load_stages(write(tmp_path / "every.py", EVERY.format(name=name)))
    assert repr(name) in file.problem or "SyntaxError" in file.problem
    assert tuple(stage.name for stage in all_stages()) == STAGES


def test_a_name_that_the_caller_reserves_is_refused(tmp_path):
    (file,) = load_stages(write(tmp_path / "every.py"), reserved={"every"})
    assert "'every' has another meaning here" in file.problem


def test_nothing_there_is_said(tmp_path):
    assert "no such file or folder" in load_stages(tmp_path / "none.py")[0].problem
    assert "no Python file" in load_stages(tmp_path)[0].problem
    assert "must end in .py" in load_stages(write(tmp_path / "every.txt"))[0].problem


@pytest.mark.parametrize("stage", [each for each in BUILT_IN if each.name != "logit_bias"], ids=lambda each: each.name)
def test_lmcores_own_stages_pass_the_same_trial(stage):
    try_stage(stage)
    assert all(field.range == Range() or field.off is None or field.off in field.range for field in stage.fields)
