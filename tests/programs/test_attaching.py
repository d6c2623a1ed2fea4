"""Images in messages, by whole programs: what each API is sent, what people are shown, what is kept how long."""

import base64
import hashlib
import json
import os
import shlex
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sessions import asynchronous, of, take
from stage import argv, end_worker, facts, run, script, wait_for
from terminal import Tmux

from cass import attachments, blobs, catalogue, inbox, jsonl, records, send
from cass.context import Request
from cass.errors import UsageError
from cass.home import Files, Home
from cass.records import Assistant, TurnEnd, User
from cass.session import Session
from tests import drawn, scripted, spoken

PNG, JPEG, GIF = drawn.png(640, 480), drawn.jpeg(30, 20), drawn.gif()
DATA = {name: base64.b64encode(content).decode() for name, content in (("p", PNG), ("j", JPEG), ("g", GIF))}


@pytest.fixture
def pictures(workspace: Path) -> Path:
    for name, content in (("pic.png", PNG), ("b.jpg", JPEG), ("c.gif", GIF)):
        (workspace / name).write_bytes(content)
    (workspace / "no.png").write_text("SECRET")
    return workspace


def provider(home: Home, kind: str, url: str, **facts: Any) -> None:
    """Configure the provider `asked`, and what is known of its model."""
    home.make()
    entry = {"id": "asked", "kind": kind, "base_url": url, "default_model": "m"}
    home.providers.write_bytes(jsonl.dump({"providers": [entry]}))
    home.models.write_bytes(jsonl.dump({"models": [{"id": "m", **facts}]}))


def only(home: Home) -> Files:
    (chat_id,) = catalogue.ids(home)
    return home.files(chat_id)


def shown(kind: str, body: dict[str, Any]) -> list[Any]:
    """The pieces of the last message of the user, without what is said besides."""
    if kind == "gemini":
        return body["contents"][-1]["parts"]
    if kind == "openai-responses":
        return body["input"][-1]["content"]
    return body["messages"][-1]["content"]


def caption(name: str) -> str:
    return f"[image {name}]"


def uri(kind: str, name: str) -> str:
    return f"data:image/{kind};base64,{DATA[name]}"


TEXTS = {
    "openai-compatible": lambda text: {"type": "text", "text": text},
    "openai-responses": lambda text: {"type": "input_text", "text": text},
    "anthropic": lambda text: {"type": "text", "text": text},
    "gemini": lambda text: {"text": text},
}
IMAGES = {
    "openai-compatible": lambda type, name: {"type": "image_url", "image_url": {"url": uri(type, name)}},
    "openai-responses": lambda type, name: {"type": "input_image", "detail": "auto", "image_url": uri(type, name)},
    "anthropic": lambda type, name: {
        "type": "image",
        "source": {"type": "base64", "media_type": f"image/{type}", "data": DATA[name]},
    },
    "gemini": lambda type, name: {"inlineData": {"mimeType": f"image/{type}", "data": DATA[name]}},
}


@pytest.mark.parametrize("kind", spoken.PATHS)
def test_each_api_is_sent_images_in_its_own_form_and_the_same_bytes_again(kind, home, pictures):
    answers = [spoken.answer(kind, "seen"), spoken.answer(kind, "again")]
    with scripted.Server(answers, path=spoken.PATHS[kind]) as server:
        provider(home, kind, server.url)
        done = run("cass", "-P", "asked", "-p", "what is this?", "--attach", "pic.png", "-a", "b.jpg")
        assert (done.returncode, done.stdout) == (0, "seen\n"), done.stderr
        assert run("cass", "-P", "asked", "-p", "and now?", "--resume", only(home).chat_id).stdout == "again\n"
    first, second = (
        json.loads(asked.raw.replace(b',"cache_control":{"type":"ephemeral"}', b"")) for asked in server.asked
    )
    found = shown(kind, first)
    words = [part for part in found if "what is this?" in str(part.get("text"))]
    assert len(words) == 1
    text, image = TEXTS[kind], IMAGES[kind]
    images = [text(caption("pic.png")), image("png", "p"), text(caption("b.jpg")), image("jpeg", "j")]
    assert found == (images + words if kind in ("anthropic", "gemini") else words + images)
    key = {"gemini": "contents", "openai-responses": "input"}.get(kind, "messages")
    assert second[key][: len(first[key])] == first[key]
    if kind == "openai-compatible":
        assert server.problems == []


def test_an_image_alone_needs_no_caption_and_the_chat_holds_none_of_its_bytes(home, pictures):
    with scripted.Server([scripted.says("seen")]) as server:
        provider(home, "openai-compatible", server.url)
        assert run("cass", "-P", "asked", "-p", "look", "-a", "pic.png").returncode == 0
    text, image = server.asked[0].body["messages"][-1]["content"]
    assert (text["type"], image) == ("text", IMAGES["openai-compatible"]("png", "p"))
    chat = only(home).chat.read_bytes()
    assert DATA["p"][:40].encode() not in chat
    assert PNG[:20] not in chat
    (user,) = facts(only(home), User)
    assert isinstance(user, User)
    assert blobs.content(home, user.attachments[0].sha256) == PNG


@pytest.mark.parametrize("asked", [("cass", "-p", "look"), ("cass-send", ".", "look", "--wait")], ids=lambda a: a[0])
@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["no.png"], "no.png is no image"),
        (["gone.png"], "gone.png cannot be attached: No such file"),
        (["pic.png", "no.png"], "no.png is no image"),
        (["pic.png"] * 21, "more than 20 images"),
    ],
)
def test_what_cannot_be_attached_is_an_error_before_anything_is_sent(home, files, pictures, asked, names, words):
    before = files.chat.read_bytes()
    done = run(*asked, *(part for name in names for part in ("--attach", name)))
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "SECRET" not in done.stderr
    assert (catalogue.ids(home), files.chat.read_bytes()) == ([files.chat_id], before)
    assert not home.blobs.exists()


def test_attach_without_a_message_says_how_it_is_done_in_a_chat(pictures):
    done = run("cass", "--attach", "pic.png")
    assert done.returncode == 2
    assert "@picture.png" in done.stderr


def test_a_model_without_images_is_told_their_names_and_the_person_that(home, pictures):
    with scripted.Server([scripted.says("blind")] * 2) as server:
        provider(home, "openai-compatible", server.url, supports_images=False)
        done = run("cass", "-P", "asked", "-p", "look", "-a", "pic.png")
        again = run("cass", "-P", "asked", "-p", "and?", "--resume", only(home).chat_id)
    words = "image pic.png, 640x480: not sent, this model takes no images"
    assert (done.returncode, words in done.stderr, words in again.stderr) == (0, True, False)
    assert server.asked[0].body["messages"][-1]["content"].endswith(f"look\n\n[{words}]")
    assert server.problems == []


@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_refusal_of_images_says_what_to_do_and_the_chat_goes_on(home, pictures, status):
    refusal = scripted.fails(status, {"error": {"message": "No endpoints found that support image input"}})
    with scripted.Server([refusal, scripted.says("fine")]) as server:
        provider(home, "openai-compatible", server.url)
        done = run("cass", "-P", "asked", "-p", "look", "-a", "pic.png")
        assert (done.returncode, len(server.asked)) == (1, 1)
        assert "support image input" in done.stderr
        assert '"supports_images": false' in done.stderr
        assert run("cass", "-P", "asked", "-p", "hello", "--resume", only(home).chat_id).stdout == "fine\n"
    assert isinstance(server.asked[1].body["messages"][-1]["content"], str)


def test_an_image_that_is_not_kept_any_more_ends_no_chat(home, pictures):
    with scripted.Server([scripted.says("seen"), scripted.says("gone")]) as server:
        provider(home, "openai-compatible", server.url)
        run("cass", "-P", "asked", "-p", "look", "-a", "pic.png")
        for blob in home.blobs.iterdir():
            blob.unlink()
        assert run("cass", "-P", "asked", "-p", "and?", "--resume", only(home).chat_id).stdout == "gone\n"
    assert "[image pic.png, 640x480: no longer kept]" in server.asked[1].body["messages"][1]["content"]


@pytest.fixture
def attached(home, pictures, monkeypatch):
    """A chat with one image in its first message."""
    monkeypatch.setenv("CASS_PROVIDER", "demo")
    assert "one image, 640x480" in run("cass", "-p", "hello", "-a", "pic.png").stdout
    return only(home)


def test_a_sent_message_brings_its_image_and_bad_ones_are_said_and_left(attached, home):
    done = run("cass-send", attached.chat_id, "hi there", "-a", "b.jpg", "--wait")
    assert "one image, 30x20" in done.stdout
    (good,) = facts(attached, User)[0].attachments
    item = inbox.message("one more", ask=False, origin={"by": "send"}, attached=[good, good._replace(sha256="0" * 64)])
    id = inbox.put(attached, item)
    assert run("cass", "wait", attached.chat_id).returncode == 0
    sent = next(record for record in facts(attached, User) if record.id == id)
    assert sent.attachments == (good,)
    assert "its content is not kept" in attached.log.read_text()
    send.stop(attached, 20)


@pytest.mark.parametrize("text", ["@pic.png look", "[image pic.png]", "![x](pic.png)", '{"attachments": ["pic.png"]}'])
def test_no_text_attaches_a_file(attached, text):
    run("cass-send", attached.chat_id, text, "--wait")
    with attached.bell.open("w") as bell:
        bell.write(f"{text} once more\n")
    wait_for(lambda: len(facts(attached, TurnEnd)) == 3)
    assert [len(user.attachments) for user in facts(attached, User)] == [1, 0, 0]
    send.stop(attached, 20)


def test_people_see_what_was_attached_in_every_form(attached, tmp_path):
    label = f"[image pic.png 640×480 {len(PNG) / 1000:.1f} kB]"
    assert label in run("cass-view", "-F", attached.chat_id).stdout
    assert label in run("cass-view", "-F", "--plain", attached.chat_id).stdout
    lines = run("cass-view", "-F", "--json", attached.chat_id).stdout.splitlines()
    (said,) = (json.loads(line)["attachments"] for line in lines if '"attachments"' in line)
    assert (said[0]["name"], said[0]["width"]) == ("pic.png", 640)
    assert label.replace("[", "\\[").replace("]", "\\]") in run("cass", "export", attached.chat_id).stdout
    page, hidden, whole = (tmp_path / name for name in ("a.html", "b.html", "c.json"))
    assert run("cass", "export", attached.chat_id, "-o", str(page)).returncode == 0
    assert run("cass", "export", attached.chat_id, "-o", str(hidden), "--redact").returncode == 0
    assert run("cass", "export", attached.chat_id, "-o", str(whole)).returncode == 0
    assert f'<img src="{uri("png", "p")}"' in page.read_text()
    assert "img-src data:" in page.read_text()
    assert (label in hidden.read_text(), "<img" in hidden.read_text()) == (True, False)
    assert [r["attachments"] for r in json.loads(whole.read_text())["records"] if "attachments" in r] == [said]
    assert "pic.png" in run("cass", "grep", "pic.png").stdout


def test_a_page_holds_no_blob_that_is_another_type_than_it_says(attached, home, tmp_path):
    (user,) = facts(attached, User)
    (blob,) = home.blobs.iterdir()
    said = user.attachments[0]._replace(media_type="image/gif").said()
    line = records.encode(user).replace(jsonl.dump(user.attachments[0].said()), jsonl.dump(said))
    attached.chat.write_bytes(attached.chat.read_bytes().replace(records.encode(user), line))
    page = tmp_path / "a.html"
    run("cass", "export", attached.chat_id, "-o", str(page))
    assert "<img" not in page.read_text()
    blob.write_bytes(b"<script>alert(1)</script>")
    run("cass", "export", attached.chat_id, "-o", str(page))
    assert "<img" not in page.read_text()
    assert "alert" not in page.read_text()


def test_what_a_chat_a_branch_a_waiting_message_or_a_draft_needs_is_not_pruned(attached, home, pictures):
    (blob,) = home.blobs.iterdir()
    long_ago = time.time() - 100 * 86_400
    os.utime(blob, (long_ago, long_ago))
    made = run("cass", "branch", attached.chat_id, "2")
    assert made.returncode == 0, made.stderr
    assert run("cass", "prune", "--yes").returncode == 0
    assert blob.exists()
    (other,) = set(catalogue.ids(home)) - {attached.chat_id}
    (user,) = facts(home.files(other), User)
    attached.chat.unlink()
    run("cass", "prune", "--yes")
    assert (blob.exists(), user.attachments[0].sha256) == (True, blob.name)
    waiting = home.files(other)
    waiting.make()
    lines = waiting.chat.read_bytes().splitlines(keepends=True)
    waiting.chat.write_bytes(b"".join(line for line in lines if b"attachments" not in line))
    item = inbox.message("x", ask=False, origin={"by": "send"}, attached=user.attachments)
    inbox.put(waiting, item)
    run("cass", "prune", "--yes")
    assert blob.exists()
    for path in waiting.inbox.iterdir():
        path.unlink()
    waiting.draft.write_text(f"look at {attachments.word(user.attachments[0])} again")
    run("cass", "prune", "--yes")
    assert blob.exists()
    waiting.draft.unlink()
    run("cass", "prune", "--yes")
    assert not blob.exists()


def test_an_image_that_no_message_names_yet_is_kept_for_an_hour_and_again_when_it_is_wanted_again(home, pictures):
    (one,) = attachments.every(home, [pictures / "pic.png"])
    run("cass", "prune", "--yes")
    assert blobs.content(home, one.sha256) == PNG
    hours_ago = time.time() - 7200
    os.utime(home.blobs / one.sha256, (hours_ago, hours_ago))
    attachments.every(home, [pictures / "pic.png"])
    run("cass", "prune", "--yes")
    assert blobs.content(home, one.sha256) == PNG
    os.utime(home.blobs / one.sha256, (hours_ago, hours_ago))
    run("cass", "prune", "--yes")
    assert blobs.content(home, one.sha256) is None


def test_a_secret_in_the_name_of_an_image_is_redacted(attached, home, pictures):
    name = "sk-live-0123456789abcdef0123.png"
    (pictures / name).write_bytes(PNG)
    run("cass", "-p", "hello", "--resume", attached.chat_id, "-a", name)
    for form in ("md", "json", "html"):
        said = run("cass", "export", attached.chat_id, "--format", form, "--redact").stdout
        assert ("pic.png" in said, "0123456789abcdef" in said) == (True, False)


def test_a_summary_speaks_of_images_by_name(home, pictures):
    with scripted.Server([scripted.says("seen"), scripted.says("a summary"), scripted.says("on")]) as server:
        provider(home, "openai-compatible", server.url)
        run("cass", "-P", "asked", "-p", "look", "-a", "pic.png")
        files = only(home)
        inbox.put(files, {"type": "compact"})
        done = run("cass", "-P", "asked", "-p", "go on", "--resume", files.chat_id)
        assert done.stdout == "on\n"
        asked = server.asked[1].body["messages"]
    assert "name each" in asked[-1]["content"]
    assert asked[1]["content"][1] == IMAGES["openai-compatible"]("png", "p")


def test_the_demo_says_what_it_was_given(attached):
    done = run("cass", "-p", "hello", "--resume", attached.chat_id, "-a", "pic.png", "-a", "c.gif")
    assert "I was given 2 images, 640x480, 4x3." in done.stdout


def test_a_schema_sends_its_images_once(home, pictures, tmp_path):
    schema = tmp_path / "s.json"
    schema.write_text('{"type": "object"}')
    script(home, {"text": "no"}, {"text": "{}"})
    done = run("cass", "-P", "scripted", "-p", "look", "-a", "pic.png", "--schema", str(schema))
    assert done.returncode == 0, done.stderr
    assert [len(user.attachments) for user in facts(only(home), User)] == [1, 0]


# ---- in a composer --------------------------------------------------------------------------------------------------

HANGS = {"text": "word " * 5000, "deltas": 5000, "delay_ms": 20}


@contextmanager
def composing(tmp_path: Path, home: Home, *steps: dict[str, Any]) -> Iterator[Tmux]:
    """A tmux with `cass` in it, ready."""
    script(home, *steps)
    given = {name: os.environ[name] for name in ("HOME", "CASS_HOME")}
    made = Tmux(tmp_path / "tmux", environ=given, inside=False)
    try:
        made.until("$")
        made.type(shlex.join([*argv("cass"), "-P", "scripted"]))
        made.press("Enter")
        made.until("idle")
        yield made
    finally:
        made.close()
        for chat_id in catalogue.ids(home):
            end_worker(home.files(chat_id))


def sent(home: Home, count: int) -> list[User]:
    """The messages of the chat, once there are so many."""
    found = wait_for(lambda: users if len(users := facts(only(home), User)) >= count else None)
    return [user for user in found if isinstance(user, User)]


def paste(tmux: Tmux, text: str) -> None:
    tmux.do("set-buffer", text)
    tmux.do("paste-buffer", "-p", "-t", tmux.pane)


def test_named_and_pasted_files_go_along_and_what_cannot_be_sent_stays_in_the_draft(tmp_path, home, pictures):
    (pictures / "my picture.png").write_bytes(JPEG)
    with composing(tmp_path, home, *[{"text": f"Seen {n}."} for n in range(4)]) as tmux:
        tmux.type("see @pic")
        tmux.until("pic.png")
        tmux.press("Tab")
        tmux.until("❯ see @pic.png")
        tmux.type(", @c.gif and @notes.txt")
        tmux.press("Enter")
        tmux.until("Seen 0.")
        assert "[image pic.png 640×480" in tmux.screen()
        tmux.type("and")
        paste(tmux, f"{pictures}/my\\ picture.png ")
        tmux.until('❯ and @"my picture.png"')
        tmux.press("Enter")
        tmux.until("Seen 1.")
        tmux.type("bad @no.png")
        tmux.press("Enter")
        tmux.until("no.png is no image")
        tmux.until("❯ bad @no.png")
        tmux.press("C-u")
        paste(tmux, "a long text\n" * 30 + "with @pic.png in it\n")
        tmux.until("[pasted 31 lines]")
        tmux.until(lambda: tmux.press("Enter") or "Seen 2." in tmux.screen())  # one that is too soon is of the paste
        tmux.type("!echo @pic.png")
        tmux.press("Enter")
        tmux.until("Seen 3.")
    said = sent(home, 4)
    assert [user.content.split("\n")[0] for user in said] == [
        "see @pic.png, @c.gif and @notes.txt",
        'and @"my picture.png" ',
        "a long text",
        "$ echo @pic.png",
    ]
    assert [[one.name for one in user.attachments] for user in said] == [
        ["pic.png", "c.gif"],
        ["my picture.png"],
        [],
        [],
    ]


def test_a_waiting_message_that_is_taken_back_keeps_its_images(tmp_path, home, pictures):
    with composing(tmp_path, home, HANGS, {"text": "Seen."}) as tmux:
        tmux.type("go on for long")
        tmux.press("Enter")
        tmux.until("word word")
        tmux.type("look at @pic.png")
        tmux.press("Enter")
        tmux.until("waiting 1: look at @pic.png")
        (pictures / "pic.png").unlink()
        tmux.press("Up")
        word = f"[image {hashlib.sha256(PNG).hexdigest()[:8]}]"
        tmux.until(f"❯ look at {word}")
        assert run("cass-send", only(home).chat_id, "from a shell", "-a", "c.gif").returncode == 0
        tmux.until("waiting 1: from a shell")
        tmux.press("C-u")
        tmux.type("/queue")
        tmux.press("Enter")
        tmux.until("> ")
        tmux.press("Enter")
        tmux.until(f"❯ from a shell [image {hashlib.sha256(GIF).hexdigest()[:8]}]")
        tmux.type(f"{word} too")
        tmux.press("Escape")
        tmux.until("■ cancelled")
        tmux.press("Enter")
        said = sent(home, 2)
    assert [(one.width, one.media_type) for one in said[1].attachments] == [(4, "image/gif"), (640, "image/png")]


def test_a_branch_before_a_message_has_its_images_in_its_draft(tmp_path, home, attached):
    made = json.loads(run("cass", "branch", attached.chat_id, "1", "--json").stdout)
    word = f"[image {hashlib.sha256(PNG).hexdigest()[:8]}]"
    assert home.files(made["chat_id"]).draft.read_text() == f"hello {word}"


# ---- from Python ----------------------------------------------------------------------------------------------------


class Seeing:
    """A provider of the host program that says what it was shown."""

    async def stream(self, request: Request, of: str) -> AsyncIterator[Assistant]:
        seen = [base64.b64decode(request.images[one.sha256]) for one in request.messages[-1].attachments]
        yield Assistant(id=of, content=f"{[content == PNG for content in seen]}", model="m", created_at=jsonl.now())

    async def aclose(self) -> None:
        pass


@asynchronous
async def test_a_host_program_attaches_files_and_its_provider_is_shown_them(home, pictures):
    async with await Session.new(home=home.root, cwd=pictures, provider=Seeing(), model="m") as session:
        with pytest.raises(UsageError, match=r"no\.png is no image"):
            session.turn("look", attach=["pic.png", "no.png"])
        found = await take(session, "look", attach=[pictures / "pic.png", "b.jpg"])
    assert [record.content for record in of(found, Assistant)] == ["[True, False]"]
    assert [one.media_type for one in of(found, User)[0].attachments] == ["image/png", "image/jpeg"]
