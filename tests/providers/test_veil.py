"""A key that a server sends back, cut anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cass.providers.veil import Answer, Veil
from cass.records import Assistant

KEY = "ababc-0123456789ab"
TEXT = f"ab {KEY}{KEY[:-1]} aba {KEY}a"
SHOWN = f"ab …{KEY[:-1]} aba …a"


def fed(secret: str, *pieces: str) -> tuple[str, str]:
    veil = Veil(secret)
    shown = "".join(map(veil.feed, pieces))
    return shown, shown + veil.end()


@pytest.mark.parametrize("cut", range(len(TEXT) + 1))
def test_it_is_hidden_wherever_the_text_is_cut(cut):
    assert fed(KEY, TEXT[:cut], TEXT[cut:])[1] == SHOWN


def test_it_is_hidden_character_by_character():
    shown, whole = fed(KEY, *TEXT)
    assert whole == SHOWN
    assert shown == SHOWN[:-1]


@given(st.text("ab", min_size=1, max_size=5), st.lists(st.text("ab", max_size=6)))
def test_only_what_may_yet_become_it_is_held_back(secret, pieces):
    shown, whole = fed(secret, *pieces)
    assert secret not in whole
    assert whole.replace("…", secret) == "".join(pieces)
    assert secret.startswith(whole.removeprefix(shown))


def test_what_would_go_back_as_it_came_does_not_where_it_holds_the_key():
    key = "sk-live-0123456789abcdef"
    block = {"type": "thinking", "thinking": f"the key is {key}", "signature": "s"}
    said = Assistant(id="m", content="x", raw={"kind": "anthropic", "blocks": [block]}, created_at="2026-06-20")
    assert Answer(key).message(said).raw is None
    assert Answer("another key of the person").message(said).raw == said.raw
