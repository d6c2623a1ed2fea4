"""The gallery: which images a request holds, what stands for the others, and that requests stay prefixes."""

import base64
from typing import Any

import pytest

from cass import budget, context, gallery
from cass.budget import weight
from cass.context import Request
from cass.records import Assistant, Attachment, Record, TurnEnd, User

AT = "2026-06-20T14:30:12.345Z"
CONTENTS = {f"{n:064x}": bytes([n]) * 10 for n in range(40)}


def image(number: int, size: int = 10, name: str = "", **more: Any) -> Attachment:
    given = {"media_type": "image/png", "width": 640, "height": 480} | more
    return Attachment(f"{number:064x}", name=name or f"{number}.png", bytes=size, **given)


def user(id: str, *images: Attachment, content: str = "look") -> User:
    return User(id=id, content=content, created_at=AT, attachments=images)


def turn(id: str, *images: Attachment) -> list[Record]:
    end = TurnEnd(turn=id, answers=(id,), outcome="done", created_at=AT)
    return [user(id, *images), Assistant(id=f"a{id}", content="seen", created_at=AT), end]


def build(*records: Record, kind: str = "x", takes: bool | None = None, limit: int = 1_000_000) -> Request:
    return context.build(
        records,
        tools=(),
        model="m",
        max_tokens=100,
        effort=None,
        limit_tokens=limit,
        max_tool_output=1000,
        refused=lambda one: gallery.refusal(kind, takes, one),
    )


def read(one: Attachment) -> bytes | None:
    return CONTENTS.get(one.sha256)


def test_a_request_holds_each_image_once_in_base64():
    hung = gallery.hang([user("1", image(1), image(2)), user("2", image(1))], read)
    assert hung.images == {one.sha256: base64.b64encode(CONTENTS[one.sha256]).decode() for one in (image(1), image(2))}
    assert [message.attachments for message in hung.messages] == [(image(1), image(2)), (image(1),)]
    assert hung.unseen == ()


@pytest.mark.parametrize(
    ("kind", "takes", "one", "why"),
    [
        ("openai-compatible", False, image(1), "not sent, this model takes no images"),
        ("gemini", True, image(1, media_type="image/gif"), "not sent, this API takes no GIF"),
        ("anthropic", None, image(1, size=4_000_000), "not sent, this API takes 3.9 MB"),
        ("openai-compatible", None, image(1, size=4_000_000, media_type="image/gif"), ""),
        ("gemini", None, image(1, size=5_000_000), ""),
        ("anthropic", True, image(1, size=3_900_000), ""),
    ],
)
def test_what_a_model_or_an_api_does_not_take_is_told_in_words(kind, takes, one, why):
    request = build(user("1", one, image(2)), kind=kind, takes=takes)
    (message,) = request.messages
    assert isinstance(message, User)
    words = f"[image 1.png, 640x480: {why}]"
    assert (words in message.content) is (why != "")
    assert (one in message.attachments) is (why == "")
    assert [gone.words for gone in request.unseen][:1] == ([words] if why else [])


def test_an_image_that_is_gone_is_told_in_words_and_the_rest_is_shown():
    hung = gallery.hang([user("1", image(77, name="a\x1b[31m\n]b.png"), image(1))], read)
    (message,) = hung.messages
    assert isinstance(message, User)
    assert message.attachments == (image(1),)
    assert "640x480: no longer kept]" in message.content
    assert message.content.split("\n\n")[1].isprintable()
    assert [gone.of for gone in hung.unseen] == ["1"]


def test_the_oldest_images_give_way_by_steps_and_never_those_of_the_last_message():
    messages = [user(str(n), image(n, size=5_000_000)) for n in range(10)]
    counts = []
    for end in range(1, 11):
        hung = gallery.hang(messages[:end], read)
        assert messages[end - 1] in hung.messages
        assert sum(one.bytes for m in hung.messages if isinstance(m, User) for one in m.attachments) <= gallery.LARGEST
        counts.append(len(hung.unseen))
    assert counts == [0, 0, 0, 0, 1, 2, 3, 4, 5, 6]
    small = [user(str(n), image(n, size=1_000_000)) for n in range(30)]
    gone = [len(gallery.hang(small[:end], read).unseen) for end in range(1, 31)]
    assert sorted(set(gone)) == [0, 5, 10]  # so that most requests begin as the one before
    whole = user("w", *(image(n, size=5_000_000) for n in range(4)))
    assert gallery.hang([*small[:3], whole], read).messages[-1] == whole


def test_an_image_counts_by_its_pixels_and_not_by_its_bytes():
    alone = weight(user("1"))
    assert weight(user("1", image(1, size=5_000_000))) - alone == budget.IMAGE_TOKENS[0]
    assert weight(user("1", image(1, width=1568, height=1568))) - alone == 1568 * 1568 // 750
    assert weight(user("1", image(1, width=8000, height=8000))) - alone == budget.IMAGE_TOKENS[1]
    found = turn("1", *(image(n, width=3000, height=3000) for n in range(5))) + turn("2")
    assert build(*found, limit=10_000).left_out == 1
    assert build(*found, limit=10_000, takes=False).left_out == 0  # words weigh less
