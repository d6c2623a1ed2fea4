"""Base URLs in every form that people have at hand."""

import pytest

from cass.connection import Connection
from cass.context import Request
from cass.providers import anthropic, gemini, openai_compatible, openai_responses

KINDS = {kind.KIND: kind for kind in (openai_compatible, openai_responses, anthropic, gemini)}
PATHS = {
    "openai-compatible": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
}


def asked(kind: str, base_url: str, model: str = "m") -> str:
    return KINDS[kind].build(Connection("test", kind, base_url), Request("s", (), (), model, 1))[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["", "/", "{version}", "{version}/", "/{version}//", "{path}", "{path}/"])
def test_a08_with_and_without_version_slash_and_path_of_a_request(kind, form):
    path = PATHS[kind]
    version = path[: path.index("/", 1)]
    base_url = " http://h:1" + form.format(version=version, path=path.partition("?")[0]) + " "
    assert asked(kind, base_url) == "http://h:1" + path


@pytest.mark.parametrize(
    ("kind", "base_url", "url"),
    [
        ("openai-compatible", "http://h/api/coding/v3/", "http://h/api/coding/v3/chat/completions"),
        ("openai-compatible", "http://h/api", "http://h/api/chat/completions"),
        ("openai-responses", "http://h/d?api-version=1", "http://h/d/responses?api-version=1"),
        ("openai-responses", "http://h/v1/chat/completions", "http://h/v1/responses"),
        ("anthropic", "http://h/anthropic", "http://h/anthropic/v1/messages"),
        ("anthropic", "http://h/coding/v1/", "http://h/coding/v1/messages"),
        ("gemini", PATHS["gemini"], PATHS["gemini"]),
        ("gemini", "http://h/v1beta/openai/", "http://h" + PATHS["gemini"]),
        ("gemini", "http://h/v1beta/openai/chat/completions", "http://h" + PATHS["gemini"]),
        ("gemini", "http://h?key=k&alt=sse", "http://h" + PATHS["gemini"] + "&key=k"),
        ("gemini", "http://h/gemini", "http://h/gemini" + PATHS["gemini"]),
        (
            "gemini",
            "http://h/v1/publishers/google",
            "http://h/v1/publishers/google/models/m:streamGenerateContent?alt=sse",
        ),
    ],
)
def test_a08_an_address_of_its_own_is_kept(kind, base_url, url):
    assert asked(kind, base_url) == url


@pytest.mark.parametrize(
    ("model", "path"),
    [("models/x", "models/x"), ("tunedModels/x", "tunedModels/x"), ("a b?c#d", "models/a%20b%3Fc%23d")],
)
def test_gemini_has_its_model_in_the_address(model, path):
    assert asked("gemini", "http://h", model) == f"http://h/v1beta/{path}:streamGenerateContent?alt=sse"
