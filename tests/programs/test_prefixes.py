"""Each request begins with the one before, byte for byte: in a loop of calls, by another worker, on another day."""

import pytest

from benchmarks import prefix
from tests import spoken


@pytest.mark.parametrize("kind", spoken.PATHS)
def test_a_request_begins_with_the_one_before(kind, tmp_path):
    bodies = prefix.requests(kind, tmp_path)
    assert len(bodies) == prefix.STEPS + 1 + prefix.TURNS
    if kind == "anthropic":  # marks stand on the last two turns of the user, and move with them: nothing else changes
        assert all(body.count(prefix.MARK) in (3, 4) for body in bodies)
        assert min(prefix.shares(kind, bodies)) > 0.85
        bodies = [body.replace(prefix.MARK, b"") for body in bodies]
    assert set(prefix.shares(kind, bodies)) == {1.0}
    signed = {"openai-responses": 11, "anthropic": 11, "gemini": 17}  # Gemini signs the text of an answer too
    assert bodies[-1].count(spoken.SIGNED.encode()) == signed.get(kind, 0)


def test_what_begins_every_request_is_short(tmp_path):
    assert prefix.beginning(tmp_path) < 5_000
