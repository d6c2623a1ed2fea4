"""Attachments: which files are taken, which are not, and what the worker believes of what it is told."""

import os
import stat
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stage import wait_for

from cass import attachments, blobs
from cass.attachments import LARGEST
from cass.errors import UsageError
from cass.values import Attachment
from tests import drawn


def kept(home) -> list[str]:
    return sorted(path.name for path in home.blobs.glob("*"))


@pytest.mark.parametrize("kind", drawn.KINDS)
def test_an_image_is_kept_by_its_hash_and_described(home, tmp_path, kind):
    media_type, draw = drawn.KINDS[kind]
    path = tmp_path / "picture"
    path.write_bytes(draw(640, 480))
    (found,) = attachments.every(home, [path])
    size = path.stat().st_size
    assert found == Attachment(found.sha256, media_type, str(path), size, 640, 480)
    assert attachments.content(home, found) == path.read_bytes()
    assert stat.S_IMODE((home.blobs / found.sha256).stat().st_mode) == 0o600
    assert attachments.checked(home, [found.said()]) == ((found,), [])


def test_two_names_of_one_image_are_one_content(home, tmp_path):
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(drawn.png())
    found = attachments.every(home, [tmp_path / "a.png", tmp_path / "b.png"])
    assert [os.path.basename(one.name) for one in found] == ["a.png", "b.png"]
    assert kept(home) == [found[0].sha256]


def sparse(path) -> None:
    with open(path, "wb") as file:
        file.write(drawn.png())
        file.truncate(5 << 30)


def loop(path) -> None:
    path.symlink_to(path.name)


MADE = {
    "nothing": (lambda path: None, "No such file"),
    "empty": (lambda path: path.touch(), "no image"),
    "text": (lambda path: path.write_text("SECRET=1"), "no image"),
    "svg": (lambda path: path.write_text("<svg width='1' height='1'>SECRET</svg>"), "no image"),
    "directory": (lambda path: path.mkdir(), "cannot be attached"),
    "fifo": (os.mkfifo, "no regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "no regular file"),
    "link to a text": (lambda path: path.symlink_to("/etc/passwd"), "no image"),
    "loop": (loop, "symbolic links"),
    "5 GB": (sparse, "5.4 GB"),
    "too large": (lambda path: path.write_bytes(drawn.png() + bytes(LARGEST)), "5.0 MB are the most"),
    "absurd": (lambda path: path.write_bytes(drawn.png(0x7FFFFFFF, 0x7FFFFFFF)), "8000 a side"),
    "flat": (lambda path: path.write_bytes(b"GIF89a\1\0\0\0" + bytes(20)), "8000 a side"),
}


@pytest.mark.parametrize("what", MADE)
def test_what_is_no_image_that_can_be_sent_is_refused_in_words_and_nothing_is_kept(home, tmp_path, what):
    make, words = MADE[what]
    make(tmp_path / "picture.png")
    (tmp_path / "good.png").write_bytes(drawn.png())
    with pytest.raises(UsageError) as refused:
        attachments.every(home, [tmp_path / "good.png", tmp_path / "picture.png"])
    said = str(refused.value)
    assert "picture.png" in said
    assert words in said
    assert "SECRET" not in said
    assert "root:" not in said
    assert kept(home) == []


def test_a_link_to_an_image_is_that_image(home, tmp_path):
    (tmp_path / "real.png").write_bytes(drawn.png())
    (tmp_path / "link.png").symlink_to("real.png")
    (found,) = attachments.every(home, [tmp_path / "link.png"])
    assert found.width == 4


def test_too_many_images_and_too_many_bytes_are_refused_before_any_is_kept(home, tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(drawn.png() + bytes(LARGEST - 1000))
    with pytest.raises(UsageError, match="more than 20 images"):
        attachments.every(home, [path] * 21)
    with pytest.raises(UsageError, match=r"20\.0 MB are the most"):
        attachments.every(home, [path] * 5)
    assert kept(home) == []


def test_a_name_with_control_characters_cannot_write_on_a_screen(home, tmp_path):
    path = tmp_path / "a\x1b]0;owned\x07\n\x9b31m\udcff.png"
    path.write_bytes(drawn.png())
    (found,) = attachments.every(home, [path])
    assert found.name.isprintable()
    path.write_text("no image")
    with pytest.raises(UsageError) as refused:
        attachments.every(home, [path])
    assert str(refused.value).isprintable()
    with pytest.raises(UsageError, match="cannot be attached"):
        attachments.every(home, ["a\0b.png"])


def test_a_file_that_changes_while_it_is_read_is_refused(home, tmp_path):
    path, over = tmp_path / "a.png", threading.Event()
    path.write_bytes(drawn.png() + bytes(2 << 20))

    def grow() -> None:
        with open(path, "r+b", buffering=0) as file:
            file.seek(2 << 20)
            while not over.is_set():
                file.write(b"\x89" * 100)
                if file.tell() > 4 << 20:
                    file.truncate(2 << 20)
                    file.seek(2 << 20)

    def refused() -> str:
        try:
            attachments.every(home, [path])
        except UsageError as e:
            return str(e)
        return ""

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        assert "a.png changed while it was read" in wait_for(refused)
    finally:
        over.set()
        writer.join()


# ---- what the worker is told ----------------------------------------------------------------------------------------


@pytest.fixture
def taken(home, tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(drawn.png())
    return attachments.every(home, [path])[0]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"sha256": "0" * 64}, "not kept"),
        ({"sha256": "../../config.json"}, "no attachment of ours"),
        ({"media_type": "image/jpeg"}, "not what it says"),
        ({"media_type": "text/html"}, "no attachment of ours"),
        ({"bytes": 1}, "not what it says"),
        ({"width": 5}, "not what it says"),
        ({"height": -1}, "no attachment of ours"),
        ({"width": True}, "no attachment of ours"),
        ({"name": ["a"]}, "no attachment of ours"),
        ({"name": "x" * 5000}, "no attachment of ours"),
    ],
)
def test_the_worker_takes_what_is_as_it_says_and_leaves_the_rest_with_a_word(home, taken, more, why):
    found, wrong = attachments.checked(home, [taken.said() | more, taken.said()])
    assert found == (taken,)
    assert len(wrong) == 1
    assert why in wrong[0]


def test_a_blob_that_is_no_image_or_was_changed_goes_with_no_message(home, taken):
    blobs.store(home, "1" * 64, b"text")
    (home.blobs / taken.sha256).write_bytes(drawn.gif())
    found, wrong = attachments.checked(home, [taken.said(), taken._replace(sha256="1" * 64).said()])
    assert (found, len(wrong)) == ((), 2)
    (home.blobs / taken.sha256).unlink()
    os.mkfifo(home.blobs / taken.sha256)
    assert attachments.checked(home, [taken.said()])[0] == ()


def test_more_than_a_message_may_have_is_left(home, taken):
    found, wrong = attachments.checked(home, [taken.said()] * 1000)
    assert (found, wrong) == ((taken,) * 20, ["a message came with 1000 attachments: 20 are taken"])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("0" * 64),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*Attachment._fields, "more"]), inner, max_size=7)
    ),
    max_leaves=10,
)


@given(VALUES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_that_an_item_says_makes_the_worker_stumble(home, said):
    found, wrong = attachments.checked(home, said)
    assert found == ()
    assert all(line.isprintable() for line in wrong)
