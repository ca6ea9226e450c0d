"""The page that browsers get first: Streamlit's, with our style, language and title."""

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from pages.common.first_page import FirstPage, style

PAGE = (st.__file__.rpartition("/")[0]) + "/static/index.html"
BROWSER = {"accept": "text/html,*/*", "accept-encoding": "gzip"}


@pytest.fixture(scope="module")
def client() -> TestClient:
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    routes = [
        Route("/text", lambda _request: PlainTextResponse("<html lang='en'></body>")),
        Route("/missing", lambda _request: HTMLResponse("no", 404)),
        Route("/{path:path}", lambda _request: HTMLResponse(page, headers={"etag": "old"})),
    ]
    return TestClient(Starlette(routes=routes, middleware=[Middleware(FirstPage), Middleware(GZipMiddleware)]))


def test_the_style_stands_last_and_the_length_is_right(client: TestClient) -> None:
    answer = client.get("/sampling", headers=BROWSER)
    assert f"<style>{style()}</style></body>" in answer.text
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert "etag" not in answer.headers and "content-encoding" not in answer.headers


@pytest.mark.parametrize(
    ("query", "accepts", "language", "title"),
    [
        ("", "en-US,en", "en", "Language model explorer"),
        ("", "zh-CN,zh;q=0.9", "zh-CN", "语言模型探索器"),
        ("?lang=zh", "en-US", "zh-CN", "语言模型探索器"),
        ("?lang=en", "zh-CN", "en", "Language model explorer"),
    ],
)
def test_language_and_title_are_the_readers(client: TestClient, query: str, accepts: str, language: str, title: str):
    text = client.get(f"/{query}", headers={**BROWSER, "accept-language": accepts}).text
    assert f'<html lang="{language}">' in text and f"<title>{title}</title>" in text


def test_all_else_passes_as_it_is(client: TestClient) -> None:
    assert client.get("/text", headers=BROWSER).text == "<html lang='en'></body>"
    missing = client.get("/missing", headers=BROWSER)
    assert (missing.status_code, missing.text) == (404, "no")
    assert "<style>" not in client.get("/", headers={"accept": "*/*"}).text.split("</head>")[1]
