"""Widgets hold what the session holds, also in a browser that draws them anew."""

from __future__ import annotations

from urllib.parse import parse_qs

from streamlit.testing.v1 import AppTest

from tests.pages.harness import go_to, key_of, open_page, parts, well

MOVED = {"layer": "3", "share": "0.5", "size": "7", "part": "mlp", "kind": "b", "view": "two", "on": "1", "word": "cat"}


def every_widget() -> None:
    """Be a page with a widget of each kind."""
    from pages.common import link, widgets

    link.begin()
    widgets.slider("layer", "Layer", 0, 5, 0)
    widgets.slider("share", "Share", 0.0, 1.0, 0.0)
    widgets.number("size", "Size", 1, 9, 1)
    widgets.select("part", "Part", ["attn", "mlp"], "attn")
    widgets.choice("kind", "Kind", ["a", "b"], "a")
    widgets.views("view", {"one": "One", "two": "Two"}, 2)
    widgets.toggle("on", "On")
    widgets.text("word", "Word")
    link.publish()


def defaults(app: AppTest) -> dict[str, object]:
    """Return what each widget shows where a browser knows nothing else of it: by key, as the address has it."""
    found: dict[str, object] = {}
    for element in app.main:
        proto = getattr(element, "proto", None)
        if (key := key_of(getattr(proto, "id", ""))) and hasattr(proto, "default"):
            given = proto.default
            value = given if isinstance(given, (str, int, float)) else given[0]
            options = getattr(proto, "options", ())
            shown = options[int(value)] if options else value
            found[key] = getattr(shown, "content", shown)
    return found


def test_a_widget_that_a_browser_draws_anew_has_the_sessions_value() -> None:
    app = AppTest.from_function(every_widget)
    for name, value in MOVED.items():
        app.query_params[name] = value
    first = defaults(well(app.run()))
    again = defaults(well(app.run()))  # nothing was changed, so the server sets nothing
    assert first == again
    wanted = {"layer": 3, "share": 0.5, "size": 7, "part": "mlp", "kind": "b", "view": "Two", "on": True, "word": "cat"}
    assert again == wanted


def test_language_and_model_too() -> None:
    app = go_to(open_page("about", lang="zh", model="small-world-alibi"), "logits")
    known = {key_of(getattr(element.proto, "id", "")): element.proto for element in app.get("selectbox")}
    assert known["model"].options[known["model"].default] == "small-world-alibi"
    (lang,) = (each.proto for each in app.sidebar.get("button_group") if key_of(each.proto.id) == "lang")
    assert lang.options[lang.default[0]].content == "简体中文"


def test_a_page_that_stops_early_keeps_what_its_address_says() -> None:
    given = {"layer": "2", "blocks.view": "mlp", "units": "9"}
    app = open_page("blocks", prompt="", apply="1", **given)
    assert "needs at least 1 token" in app.info[0].value
    (told,) = parts(app, "link")
    said = parse_qs(told["query"], keep_blank_values=True)
    assert {name: said[name] for name in given} == {name: [value] for name, value in given.items()}
    assert "apply" not in said
    app = open_page("blocks", prompt="The king", **given)
    app.session_state["units"], app.session_state["prompt"] = 12, ""
    (told,) = parts(well(app.run()), "link")
    assert parse_qs(told["query"])["units"] == ["12"]


def test_an_address_brings_nothing_of_the_session_to_light_that_is_no_value_of_a_page() -> None:
    app = open_page("blocks", prompt="", **{"class.secrets": "x", "lesson.records": "x"})
    app.session_state["class.secrets"] = {"ABC": "secret"}
    (told,) = parts(well(app.run()), "link")
    assert parse_qs(told["query"])["class.secrets"] == parse_qs(told["query"])["lesson.records"] == ["x"]
