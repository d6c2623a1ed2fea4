"""What a provider's error says, in every dialect."""

import json
import time
from email.utils import formatdate
from typing import Any

import pytest

from cass.errors import ProviderError
from cass.providers import failures

URL = "http://127.0.0.1:1/v1/chat/completions"
LLAMA = {
    "error": {
        "code": 400,
        "message": "request (124071 tokens) exceeds the available context size (123904 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 124071,
        "n_ctx": 123904,
    }
}
VLLM = {
    "error": {
        "message": "This model's maximum context length is 196608 tokens. However, you requested 16384 output tokens "
        "and your prompt contains at least 180225 input tokens, for a total of at least 196609 tokens.",
        "type": "BadRequestError",
        "param": "input_tokens",
        "code": 400,
    }
}


def refused(status: int, body: Any, **headers: str) -> ProviderError:
    text = body if isinstance(body, str) else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return failures.refused(status, named, text, URL)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, LLAMA),
        (400, VLLM),
        (400, {"error": {"message": "Too much.", "code": "context_length_exceeded"}}),
        (400, {"type": "error", "error": {"message": "prompt is too long: 204857 tokens > 200000 maximum"}}),
        (413, "<html><title>Request Entity Too Large</title></html>"),
        (400, {"error": {"message": json.dumps(LLAMA)}}),
        (400, {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps(LLAMA)}}}),
        (400, {"error": {"message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}}),
        (400, {"error": {"message": "Invalid request: Your request exceeded model token limit: 131072"}}),
        (400, {"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}),
        (400, {"error": "This model's maximum prompt length is 131072 but the request contains 200000 tokens."}),
        (400, {"message": "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 and 200"}),
        (400, {"message": "The input (40000 tokens) is longer than the model's context length (32768 tokens)."}),
        (400, {"error": "The number of tokens to keep from the initial prompt is greater than the context length."}),
        (400, {"message": "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]"}),
        (400, {"error": {"message": "the input token count is 32769 but model only supports up to 32768."}}),
        (400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}),
    ],
)
def test_h02_too_long_in_every_dialect(status, body):
    error = refused(status, body)
    assert error.too_long
    assert not error.transient


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        ("prompt is too long: 204857 tokens > 200000 maximum", (204_857, 200_000)),
        ("The input token count (9000) exceeds the maximum number of tokens allowed (4096).", (9_000, 4_096)),
        ("the context is 8192 tokens; you asked for 12,000 (11,000 in the messages, 1,000 to come)", (11_000, 8_192)),
        ("the context is 8192 tokens; you asked for 8200 (8000 in the messages, 200 to come)", (8_000, 8_192)),
        ("`max_tokens` exceed context limit: 188240 + 21333 > 200000", (188_240, 200_000)),
        ("the context of gpt-4.1-2025-04-14 is too small", None),
        ("exceeds the context by 904", None),
    ],
)
def test_h02_what_was_asked_and_what_may_be_is_learnt_from_the_words(words, sizes):
    assert failures.sizes(words) == sizes


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "'temperature' does not support 0.2 with this model."}}),
        (400, {"error": {"message": "max_tokens is too large: 100000. This model supports at most 16384 tokens."}}),
        (429, {"error": {"message": "Request too large for this model on tokens per minute: context 9"}}),
        (404, {"error": {"message": "The model `x` does not exist"}}),
    ],
)
def test_other_refusals_are_not_taken_for_too_long(status, body):
    assert not refused(status, body).too_long


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "no such model", "type": "x"}}, "no such model"),
        ({"error": "no such model"}, "no such model"),
        ({"message": "no such model"}, "no such model"),
        ({"detail": "no such model"}, "no such model"),
        ({"detail": [{"loc": ["body"], "msg": "field required"}, {"msg": "and more"}]}, "field required; and more"),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": "why"}}}, "Provider returned error: why"),
        ([{"error": {"message": "in a list"}}], "in a list"),
        ("<html><head><style>a{}</style><title>502</title></head><body>Bad  Gateway</body></html>", "502 Bad Gateway"),
        ("plain words", "plain words"),
        ("", "the server gave no reason"),
        ({}, "{}"),
    ],
)
def test_the_servers_own_words_are_found_wherever_they_stand(body, words):
    assert refused(400, body).message == words


def nested(kind: str, levels: int) -> str:
    return {
        "objects": '{"error":' * levels + '"deep"' + "}" * levels,
        "lists": "[" * levels + '"deep"' + "]" * levels,
        "both": '[{"message":' * levels + '"deep"' + "}]" * levels,
    }[kind]


@pytest.mark.parametrize("kind", ["objects", "lists", "both"])
@pytest.mark.parametrize("levels", [1, 3, 300, 500, 900, 990, 1023, 1024, 5000])
def test_an_error_of_any_depth_is_told(kind, levels):
    body = nested(kind, levels)
    assert refused(400, body).message in ("deep", body)


@pytest.mark.parametrize("kind", ["objects", "lists", "both"])
@pytest.mark.parametrize("levels", [1, 3, 300])
def test_so_is_one_in_a_stream(kind, levels):
    assert failures.in_stream(json.loads(nested(kind, levels))).message


@pytest.mark.parametrize(
    "body",
    ["<" * 60_000, "<script" * 9_000, "<script>" * 8_000, "exceed" * 10_000, "context" * 9_000, '{"error":[' * 6_000],
    ids=lambda body: body[:9],
)
def test_no_error_takes_long_to_be_understood(body):
    began = time.process_time()
    refused(400, body)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("status", "body", "is_refused"),
    [
        (401, {"error": {"message": "no"}}, True),
        (403, "", True),
        (400, {"error": {"message": "API key not valid.", "details": [{"reason": "API_KEY_INVALID"}]}}, True),
        (400, {"error": "Incorrect API key provided: xa***y."}, True),
        (400, {"error": "the field api_key is not known"}, False),
        (404, {"error": "no such model"}, False),
    ],
)
def test_a_refused_key_is_known_whatever_the_status(status, body, is_refused):
    assert refused(status, body).key_refused == is_refused


@pytest.mark.parametrize(("key_env", "words"), [("THE_KEY", "check the key in THE_KEY"), (None, "no API key was sent")])
def test_a_refused_key_names_its_variable(key_env, words):
    assert failures.advice(key_env, "mine") == f"; {words} (cass login mine keeps one that works)"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://h:1/v1/chat/completions", "http://h:1/v1/chat/completions"),
        ("http://me:hidden@h/v1?key=SECRET&x=1#y", "http://h/v1?…"),
        ("https://SECRET@h", "https://h"),
        ("/elsewhere?SECRET", "/elsewhere?…"),
        ("http://[SECRET", "an address that is none"),
    ],
)
def test_what_may_be_secret_in_an_address_is_not_shown(url, shown):
    assert failures.address(url) == shown


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_may_go_better_later_is_transient(status):
    assert refused(status, "x").transient


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422, 501])
def test_what_stays_wrong_is_not_transient(status):
    assert not refused(status, "x").transient


def test_a_redirect_says_where_to():
    assert "points to https://h/v1?…: " in refused(308, "", location="https://a:b@h/v1?token=t").message


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        ("2.5", 2.5),
        ("86400", 86400.0),
        (formatdate(1_000_003, usegmt=True), 3.0),
        (formatdate(1, usegmt=True), 0.0),
        ("-5", 0.0),
        ("abc", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        (None, None),
    ],
)
def test_h01_retry_after_is_a_number_or_a_date(value, seconds):
    assert failures.retry_after(value, 1_000_000) == seconds


@pytest.mark.parametrize(
    "error",
    [
        {"type": "overloaded_error", "message": "Overloaded"},
        {"code": 502, "message": "worker limit reached"},
        {"code": 503, "status": "UNAVAILABLE", "message": "busy"},
        {"code": "rate_limit_exceeded", "message": "slow down"},
    ],
)
def test_an_error_in_a_stream_may_pass_where_nothing_was_said_before(error):
    assert failures.in_stream(error, begun=False).transient
    assert not failures.in_stream(error).transient
    assert not failures.in_stream({"type": "invalid_request_error", "message": "no"}, begun=False).transient


def test_google_says_in_the_body_how_long_to_wait():
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}
    error = refused(429, {"error": {"code": 429, "message": "Quota exceeded.", "details": [info]}})
    assert (error.retry_after, error.transient) == (34.07, True)
    assert refused(429, {"error": {"details": [info]}}, retry_after="2").retry_after == 2


def test_an_error_of_no_known_shape_is_shown_as_it_is():
    assert failures.in_stream({"code": 7}).message == '{"code":7}'
    assert failures.in_stream(True).message == "true"


BLIND = {"error": {"message": "image input is not supported - hint: you may need to provide the mmproj"}}


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (400, BLIND, True),
        (400, {"error": {"message": "messages[1].content must be a string"}}, True),
        (404, {"error": {"message": "No endpoints found that support image input"}}, True),
        (413, "<html><title>Request Entity Too Large</title></html>", True),
        (500, BLIND, True),
        (500, "oops", False),
        (429, {"error": {"message": "too many image tokens"}}, False),
        (503, {"error": {"message": "the vision service is overloaded"}}, False),
        (401, {"error": {"message": "no image for you"}}, False),
        (400, LLAMA, False),
    ],
)
def test_a_refusal_that_may_be_of_images_says_so_and_is_none_of_length_or_of_the_moment(status, body, told):
    error = refused(status, body)
    before = (error.transient, error.too_long)
    words = failures.images(error, 2)
    assert ("2 images" in words) is told
    assert (error.transient, error.too_long) == ((False, False) if told else before)
    assert failures.images(refused(status, body), 0) == ""
