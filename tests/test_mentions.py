"""Mentions: which words of a draft send a file along, what a pasted path becomes, and the clipboard."""

import asyncio
import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cass import attachments
from cass.composer import clipboard, mentions
from cass.errors import CassError, UsageError
from tests import drawn


@pytest.fixture
def place(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a.png", "b.JPG", "my picture.png", "it's.gif", 'say "hi".png', "c.png.txt"):
        (workspace / name).write_bytes(drawn.png())
    (workspace / "text.png").write_text("text")
    (workspace / "sub").mkdir()
    (workspace / "sub" / "d.webp").write_bytes(drawn.webp())
    monkeypatch.setenv("HOME", str(workspace))
    return workspace


def names(text: str, home, place) -> list[str]:
    return [one.name for one in mentions.found(text, home, str(place))]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("look", []),
        ("@a.png", ["a.png"]),
        ("is @a.png right?", ["a.png"]),
        ("see @a.png, @b.JPG. and (@a.png)", ["a.png", "b.JPG"]),
        ("see\n@a.png\n", ["a.png"]),
        ('@"my picture.png" and @it\'s.gif', ["my picture.png", "it's.gif"]),
        ("@sub/d.webp!", ["sub/d.webp"]),
        ("@~/a.png", ["~/a.png"]),
        ("@a.png @a.png", ["a.png"]),
        ("me@a.png x@b.JPG", []),
        ("@notes.txt @app.py @nobody", []),
        ("@c.png.txt", []),
        ("a.png ./a.png [image a.png] ![](a.png)", []),
        ("[image 12345] [image 1234567g]", []),
    ],
)
def test_a_word_with_an_at_sign_that_ends_as_an_image_sends_it_along(home, place, text, named):
    assert names(text, home, place) == named


@pytest.mark.parametrize(
    ("text", "words"),
    [("@text.png", "is no image"), ("@gone.png", "No such file"), ("[image 0123abcd]", "not kept any more")],
)
def test_what_cannot_be_sent_is_said_with_what_to_do(home, place, text, words):
    with pytest.raises(UsageError, match=words) as refused:
        names(f"look at @a.png and {text}", home, place)
    assert "without the @" in str(refused.value) or "delete it here" in str(refused.value)


def test_too_many_are_too_many_whatever_they_are_named_by(home, place):
    for number in range(21):
        (place / f"{number}.png").write_bytes(drawn.png(number + 1, 1))
    words = [f"@{number}.png" for number in range(20)]
    assert len(names(" ".join(words), home, place)) == 20
    last = attachments.word(attachments.every(home, [place / "20.png"])[0])
    with pytest.raises(UsageError, match="more than 20"):
        names(" ".join([*words, last]), home, place)


def test_an_image_is_named_by_its_hash_where_no_file_holds_it(home, place):
    kept = attachments.keep(home, drawn.gif(), "clipboard")
    word = attachments.word(kept)
    (found,) = mentions.found(f"see {word}, please", home, str(place))
    assert found == kept._replace(name=kept.sha256[:8])
    assert mentions.found(word[:-1], home, str(place)) == ()


PASTED = {
    "{at}/a.png": "@a.png",
    "{at}/a.png ": "@a.png",
    "{at}/a.png\n": "@a.png",
    "a.png": "@a.png",
    "~/a.png": "@a.png",
    "{at}/my picture.png": '@"my picture.png"',
    "{at}/my\\ picture.png": '@"my picture.png"',
    "'{at}/my picture.png'": '@"my picture.png"',
    '"{at}/my picture.png"': '@"my picture.png"',
    "file://{at}/my%20picture.png": '@"my picture.png"',
    "file://localhost{at}/a.png": "@a.png",
    "{at}/it\\'s.gif": "@it's.gif",
    "{at}/a.png {at}/b.JPG": "@a.png @b.JPG",
    "'{at}/a.png' '{at}/my picture.png'": '@a.png @"my picture.png"',
    "{at}/text.png": None,
    "{at}/gone.png": None,
    "{at}/app.py": None,
    "{at}/c.png.txt": None,
    "{at}/a.png {at}/app.py": None,
    "see {at}/a.png": None,
    "{at}/a.png\n{at}/b.JPG": None,
    "file://elsewhere{at}/a.png": None,
    "http://localhost{at}/a.png": None,
    '{at}/say\\ \\"hi\\".png': None,
    "'": None,
    "": None,
    " ": None,
    "{at}": None,
    "\0.png": None,
}


@pytest.mark.parametrize("text", PASTED)
def test_a_paste_that_is_nothing_but_paths_of_images_becomes_their_names(home, place, text):
    given = text.format(at=place)
    assert mentions.pasted(given, str(place)) == PASTED[text]
    if made := PASTED[text]:
        assert len(names(made, home, place)) == made.count("@")


def test_paths_elsewhere_stay_whole(place, tmp_path):
    (tmp_path / "e.png").write_bytes(drawn.png())
    assert mentions.pasted(f"{tmp_path}/e.png", str(place)) == f"@{tmp_path}/e.png"


@given(st.text(max_size=200) | st.text("@\"'[]image .png0af~/\\\n", max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_makes_it_stumble(home, text):
    mentions.pasted(text, "/nonexistent")
    with contextlib.suppress(UsageError):
        assert mentions.found(text, home, "/nonexistent") == ()


def test_a_paste_of_a_pipe_or_of_a_huge_file_is_text_and_holds_nobody_up(place):
    os.mkfifo(place / "pipe.png")
    assert mentions.pasted(f"{place}/pipe.png", str(place)) is None
    with open(place / "huge.png", "wb") as file:
        file.write(drawn.png())
        file.truncate(5 << 30)
    assert mentions.pasted(f"{place}/huge.png", str(place)) == "@huge.png"


# ---- what comes back into a draft -----------------------------------------------------------------------------------


def item(text: str, *found) -> dict:
    return {"type": "message", "content": text, "attachments": [one.said() for one in found]}


def test_a_message_that_comes_back_names_its_images_as_they_were(home, place):
    (place / "my picture.png").write_bytes(drawn.gif())
    sent = mentions.found('see @a.png and @"my picture.png"', home, str(place))
    text = 'see @a.png and @"my picture.png"'
    assert mentions.spelled(item(text, *sent), home, str(place)) == text
    (place / "a.png").write_bytes(drawn.png(9, 9))
    (place / "my picture.png").unlink()
    back = mentions.spelled(item(text, *sent), home, str(place))
    assert back == f"see {attachments.word(sent[0])} and {attachments.word(sent[1])}"
    assert [one.sha256 for one in mentions.found(back, home, str(place))] == [one.sha256 for one in sent]
    assert mentions.spelled(item(back, *sent), home, str(place)) == back


def test_an_image_that_its_message_does_not_name_is_named_where_it_comes_back(home, place):
    (sent,) = attachments.every(home, [place / "a.png"])
    assert mentions.spelled(item("look", sent), home, str(place)) == f"look {attachments.word(sent)}"
    gone = sent._replace(sha256="0" * 64)
    assert mentions.spelled(item("look", gone), home, str(place)) == "look"


# ---- the clipboard --------------------------------------------------------------------------------------------------


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes a program by a name, and a path that has nothing else but a shell and `cat`."""
    bin = tmp_path / "bin"
    bin.mkdir()
    for name in ("sh", "cat", "sleep"):
        (bin / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(bin))
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")

    def make(name: str, script: str) -> None:
        (bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (bin / name).chmod(0o755)

    (tmp_path / "clip").write_bytes(drawn.png(7, 5))
    return make


@pytest.mark.parametrize("name", ["wl-paste", "xclip", "pngpaste"])
def test_whichever_program_is_there_gives_the_image(tool, tmp_path, name):
    tool(name, f"cat {tmp_path}/clip")
    assert asyncio.run(clipboard.image()) == drawn.png(7, 5)


def test_one_that_fails_makes_way_for_the_next(tool, tmp_path):
    tool("wl-paste", "echo nothing >&2; exit 1")
    tool("xclip", f"cat {tmp_path}/clip")
    assert asyncio.run(clipboard.image()) == drawn.png(7, 5)


def test_apple_script_gives_it_in_hexadecimal(tool):
    tool("osascript", f"echo '«data PNGf{drawn.png(7, 5).hex().upper()}»'")
    assert asyncio.run(clipboard.image()) == drawn.png(7, 5)


@pytest.mark.parametrize("said", ["", "text", "«data PNGfXX»", "«data PNGf68656c6c6f»"])
def test_a_clipboard_without_an_image_is_said(tool, said):
    tool("xclip", f"echo '{said}'")
    with pytest.raises(CassError, match="holds no image"):
        asyncio.run(clipboard.image())


def test_no_program_for_it_and_no_display_are_said(tool, monkeypatch):
    with pytest.raises(CassError, match="wl-paste, xclip, pngpaste"):
        asyncio.run(clipboard.image())
    tool("xclip", "cat /dev/null")
    monkeypatch.delenv("DISPLAY")
    with pytest.raises(CassError, match="wl-paste, xclip, pngpaste"):
        asyncio.run(clipboard.image())
