"""The demo: fixed rules, and scripts for tests."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from cass import providers
from cass.config import Connection
from cass.context import Request
from cass.errors import ConfigError, ProviderError
from cass.providers import demo
from cass.records import Assistant, Delta, ToolResult, User

AT = "2026-06-20T14:30:12.345Z"
READS = ("ls", "read", "grep")
ALL = (*READS, "write", "edit", "shell", "fetch")


def request(*messages: Any, tools: tuple[str, ...] = READS) -> Request:
    said = tuple(User(id=m, content=m, created_at=AT) if isinstance(m, str) else m for m in messages)
    return Request("s", said, tuple({"name": name} for name in tools), "demo", 100)


def result(content: str, ok: bool = True) -> ToolResult:
    return ToolResult(tool_call_id="c", name="grep", content=content, ok=ok, created_at=AT)


def said(id: str = "a") -> Assistant:
    return Assistant(id=id, content="x", created_at=AT)


async def _streamed(provider: providers.Provider, asked: Request, of: str) -> tuple[list[Delta], Assistant]:
    *deltas, message = [record async for record in provider.stream(asked, of)]
    assert isinstance(message, Assistant)
    return [delta for delta in deltas if isinstance(delta, Delta)], message


def streamed(connection: Connection, asked: Request) -> tuple[list[Delta], Assistant]:
    return asyncio.run(_streamed(providers.connect(connection), asked, "of"))


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("where is main defined?", "grep", {"regex": True, "paths": ["."]}),
        ("Where is the parser?", "grep", {"regex": True}),
        ("find TODO", "grep", {"query": "TODO", "paths": ["."]}),
        ("search for 'a b'", "grep", {"query": "a b"}),
        ("list", "ls", {"path": "."}),
        ("ls src/", "ls", {"path": "src/"}),
        ("list the files in ./docs", "ls", {"path": "./docs"}),
        ("what files are here?", "ls", {}),
        ("read a.py and b.py", "read", {"files": [{"path": "a.py"}, {"path": "b.py"}]}),
        ("show me the file README.md", "read", {"files": [{"path": "README.md"}]}),
        ("cat ../x", "read", {"files": [{"path": "../x"}]}),
        ("run ls -l | wc", "shell", {"command": "ls -l | wc"}),
        ("fetch https://example.org/a", "fetch", {"url": "https://example.org/a"}),
        ("$ make test", "shell", {"command": "make test"}),
        ("write a/b.txt: hello", "write", {"path": "a/b.txt", "content": "hello\n"}),
        ("write x:\none\ntwo\n", "write", {"path": "x", "content": "one\ntwo\n"}),
    ],
)
def test_a_rule_makes_a_call(text, name, arguments):
    step = demo.answer(request(text, tools=ALL))
    [call] = step.tool_calls
    assert call["name"] == name
    assert call["arguments"] | arguments == call["arguments"]
    assert demo.SIGN in step.text


def test_a_definition_is_searched_for_by_the_ways_of_writing_one():
    [call] = demo.answer(request("where is main defined?")).tool_calls
    for line in ("def main():", "fn main() {", "func main()", "int main(void)", "class main:", "const main = 1"):
        assert re.search(call["arguments"]["query"], line)
    assert not re.search(call["arguments"]["query"], "    main()")


@pytest.mark.parametrize("text", ["write x: y", "run ls"])
def test_a_call_that_the_mode_does_not_offer_is_not_made(text):
    step = demo.answer(request(text))
    assert step.tool_calls == ()
    assert "--workspace-edit or --full-access" in step.text


@pytest.mark.parametrize("text", ["hello", "", "explain this project to me"])
def test_anything_else_gets_the_rules(text):
    step = demo.answer(request(text))
    assert step.tool_calls == ()
    assert "no language model" in step.text
    assert "where is main defined?" in step.text


def test_results_are_shown_shortened_in_a_fence_that_they_cannot_close():
    long = "\n".join(f"line {number}" for number in range(100))
    text = demo.answer(request("find x", said(), result("a\n```\nb"), result(long), result("Error: no", ok=False))).text
    assert "````\na\n```\nb\n````" in text
    assert "line 19\n... and 80 lines more" in text
    assert "grep failed" in text
    assert demo.SIGN in text


def test_every_request_is_answered():
    assert demo.answer(request()).text
    assert demo.answer(Request("", (), (), "demo", 1)).text


def test_the_answer_is_streamed_in_small_pieces_that_add_up():
    deltas, message = streamed(Connection("demo", "demo", delay_ms=0), request("hello"))
    assert len(deltas) > 5
    assert "".join(delta.text or "" for delta in deltas) == message.content
    assert (message.id, message.model, message.stop) == ("of", "demo", "stop")
    assert message.usage is not None


def test_a_call_is_told_in_the_deltas_as_in_the_message():
    deltas, message = streamed(Connection("demo", "demo", delay_ms=0), request("list"))
    [call] = message.tool_calls
    assert message.stop == "tool_calls"
    assert deltas[-1].tool_call == {"index": 0, "id": call.id, "name": "ls", "arguments": '{"path":"."}'}


# ---- scripts --------------------------------------------------------------------------------------------------------


def scripted(tmp_path: Path, *steps: Any) -> Connection:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(steps))
    return Connection("demo", "demo", script=str(path), delay_ms=0)


def test_the_step_is_the_number_of_assistant_messages(tmp_path):
    connection = scripted(tmp_path, {"text": "one"}, {"text": "two", "reasoning": "hm", "deltas": 2}, {"text": "three"})
    for messages, expected in [(("a",), "one"), (("a", said(), "b"), "two"), (("a", said(), "b", said()), "three")]:
        assert streamed(connection, request(*messages))[1].content == expected
    deltas, message = streamed(connection, request("a", said()))
    assert [delta.text for delta in deltas if delta.text] == ["tw", "o"]
    assert message.reasoning == "hm"
    assert "no step 3" in streamed(connection, request(said(), said(), said()))[1].content


def test_a_step_can_call_tools_with_ids_of_its_own(tmp_path):
    calls = [{"name": "ls", "arguments": {"path": "."}, "id": "mine"}, {"name": "nonsense"}]
    message = streamed(scripted(tmp_path, {"tool_calls": calls}), request("a"))[1]
    assert [(call.id, call.name, call.arguments) for call in message.tool_calls] == [
        ("mine", "ls", {"path": "."}),
        ("of-1", "nonsense", {}),
    ]


def test_a_step_can_fail_a_number_of_times(tmp_path):
    async def tries(connection: Connection) -> list[str]:
        provider = providers.connect(connection)
        found = []
        for _ in range(3):
            try:
                found.append((await _streamed(provider, request("a"), "of"))[1].content)
            except ProviderError as e:
                found.append(f"{e.message} {e.transient}")
        return found

    step = {"text": "x", "error": "busy", "transient": True, "times": 2}
    assert asyncio.run(tries(scripted(tmp_path, step))) == ["busy True", "busy True", "x"]
    assert asyncio.run(tries(scripted(tmp_path, {"error": "no"}))) == ["no False"] * 3


def test_a_step_can_hang_until_it_is_cancelled(tmp_path):
    async def hang(connection: Connection) -> list[Any]:
        found: list[Any] = []

        async def read() -> None:
            async for record in providers.connect(connection).stream(request("a"), "of"):
                found.append(record)

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(read(), 0.2)
        return found

    assert [delta.text for delta in asyncio.run(hang(scripted(tmp_path, {"text": "x", "hang": True})))] == ["x"]


@pytest.mark.parametrize("content", [None, "{", "7", '[{"txt": 1}]', "[7]"])
def test_a_script_that_cannot_be_used_is_named(tmp_path, content):
    path = tmp_path / "script.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=r"script\.json: expected a JSON list of steps"):
        providers.connect(Connection("demo", "demo", script=str(path)))


def test_a_kind_that_is_not_known_is_named():
    with pytest.raises(ConfigError, match="carrier-pigeon"):
        providers.connect(Connection("x", "carrier-pigeon"))


def test_an_agent_is_called_for_each_part():
    step = demo.answer(request("agents list . | find TODO", tools=(*ALL, "agent")))
    assert [call["arguments"] for call in step.tool_calls] == [{"prompt": "list ."}, {"prompt": "find TODO"}]
