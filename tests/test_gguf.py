"""What the head of a model's file says."""

import struct
from pathlib import Path

import pytest

from cass import gguf, models
from cass.known import LOCAL_CONTEXT
from cass.models import Prices


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def key(name: bytes, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


NAME = key(b"general.name", 8, text(b"small"))
TOKENS = key(b"tokenizer.tokens", 9, struct.pack("<IQ", 8, 2) + text(b"a") + text(b"bc"))
SCORES = key(b"tokenizer.scores", 9, struct.pack("<IQ", 6, 3) + bytes(12))
FLAG = key(b"general.flag", 7, b"\1")


def length(tokens: int) -> bytes:
    return key(b"llama.context_length", 4, struct.pack("<I", tokens))


def file(path: Path, *keys: bytes, count: int | None = None) -> str:
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, len(keys) if count is None else count) + b"".join(keys))
    return str(path)


@pytest.mark.parametrize("before", [(), (NAME,), (TOKENS, SCORES), (FLAG, SCORES, NAME, TOKENS)])
def test_the_context_is_found_wherever_it_stands(tmp_path, before):
    assert gguf.context(file(tmp_path / "m", *before, length(8192), NAME)) == 8192


@pytest.mark.parametrize(
    "content",
    [b"", b"GGUF", b"not a model at all, but long enough", struct.pack("<4sIQQ", b"GGUF", 3, 0, 1 << 40)],
)
def test_what_is_no_such_file_says_nothing(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    assert gguf.context(str(tmp_path / "m")) is None
    assert gguf.context(str(tmp_path)) is None
    assert gguf.context(str(tmp_path / "missing")) is None


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_file_that_was_cut_says_nothing(tmp_path, cut):
    path = Path(file(tmp_path / "m", NAME, length(8192)))
    path.write_bytes(path.read_bytes()[:-cut])
    assert gguf.context(str(path)) is None


def test_a_model_from_a_file_costs_nothing_and_is_given_no_more_room_than_it_was_trained_for(tmp_path):
    small, large = file(tmp_path / "s", length(2048)), file(tmp_path / "l", length(1 << 20))
    assert models.find("local", small).context == 2048
    assert models.find("local", large).context == models.find("local", "missing").context == LOCAL_CONTEXT
    assert models.find("local", small).prices == ((0, Prices(0, 0)),)
