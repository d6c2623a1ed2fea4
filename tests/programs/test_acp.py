"""`cass acp` as an editor drives it: the package's own client, over a real pipe, and the ordinary worker behind it."""

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessions import asynchronous
from stage import argv, end_worker, facts, run, script, wait_for

from cass import catalogue, extras, presence
from cass import chat as chats
from cass.records import Approval, Assistant, TurnEnd, User
from tests import drawn

acp = pytest.importorskip("acp")
from acp import schema  # noqa: E402

from cass.acp import lines  # noqa: E402

PATIENT = {"shutdown_timeout": 20.0}
"""Of the client, with an agent that ends: on a busy machine that takes a while."""


class Editor:
    """Keeps what it is told; answers questions with `choice`, or never where that is None."""

    def __init__(self):
        self.updates, self.asked = [], []
        self.choice = "once"

    def on_connect(self, conn):
        pass

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append((tool_call, [option.option_id for option in options]))
        if self.choice is None:
            await asyncio.Event().wait()
        chosen = {
            "outcome": {"outcome": "selected", "optionId": self.choice} if self.choice else {"outcome": "cancelled"}
        }
        return schema.RequestPermissionResponse.model_validate(chosen)

    def texts(self, kind="agent_message_chunk"):
        return "".join(update.content.text for update in self.updates if update.session_update == kind)

    def of(self, kind):
        return [update for update in self.updates if update.session_update == kind]


@pytest.fixture
def opened(home, workspace, monkeypatch):
    """An editor with a new session, and the id of its chat."""

    @asynccontextmanager
    async def made(*steps, flags=()):
        if steps:
            script(home, *steps)
        monkeypatch.setenv("CASS_PROVIDER", "scripted")
        editor = Editor()
        command = argv("cass", "acp", *flags)
        async with acp.spawn_agent_process(editor, *command, env=dict(os.environ), transport_kwargs=PATIENT) as (
            agent,
            process,
        ):
            editor.agent, editor.process = agent, process
            await agent.initialize(protocol_version=1)
            editor.id = (await agent.new_session(cwd=str(workspace), mcp_servers=[])).session_id
            editor.files = home.files(editor.id)
            yield editor

    yield made
    for chat_id in catalogue.ids(home):
        end_worker(home.files(chat_id))


async def say(editor, text):
    answer = await editor.agent.prompt(session_id=editor.id, prompt=[acp.text_block(text)])
    return answer.stop_reason


async def until(found):
    return await asyncio.to_thread(wait_for, found)


def calls(name, **arguments):
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


HANGING = {"text": "some words", "hang": True}
DONE = {"text": "ok"}


# ---- turns ----------------------------------------------------------------------------------------------------------


@asynchronous
async def test_text_and_thoughts_come_as_they_are_streamed_and_once(opened):
    long = "word " * 40
    async with opened({"text": long, "reasoning": "let me think", "delay_ms": 10}) as editor:
        assert await say(editor, "hi") == "end_turn"
        assert editor.texts() == long
        assert editor.texts("agent_thought_chunk") == "let me think"
        assert len(editor.of("agent_message_chunk")) > 3
        assert editor.texts("user_message_chunk") == ""
    assert [record.content for record in facts(editor.files, User, Assistant)] == ["hi", long]


@asynchronous
async def test_calls_are_told_with_what_they_touch_and_the_changes_they_make(opened, workspace):
    steps = [
        calls("read", files=[{"path": "app.py"}]),
        calls("edit", path="app.py", edits=[{"old_text": "return 1", "new_text": "return 2"}]),
        calls("write", path="notes.txt", content="new\n"),
        calls("write", path="made.txt", content="new\n"),
        calls("read", files=[{"path": "nothing"}]),
    ]
    async with opened(*steps, DONE, flags=["--workspace-edit"]) as editor:
        assert await say(editor, "hi") == "end_turn"
        started = editor.of("tool_call")
        ended = [update for update in editor.of("tool_call_update") if update.status in ("completed", "failed")]
    assert [(call.title, call.kind) for call in started[:3]] == [
        ("read app.py", "read"),
        ("edit app.py", "edit"),
        ("write notes.txt", "edit"),
    ]
    assert [location.path for location in started[0].locations] == [f"{workspace}/app.py"]
    assert [call.tool_call_id for call in started] == [call.tool_call_id for call in ended]
    assert [call.status for call in ended] == ["completed"] * 4 + ["failed"]
    (change,) = started[1].content
    assert (change.path, change.old_text, change.new_text) == (f"{workspace}/app.py", "return 1", "return 2")
    written = [call.content[0] for call in ended[2:4]]
    assert [(change.old_text, change.new_text) for change in written] == [("nothing here\n", "new\n"), (None, "new\n")]
    assert "def main" in ended[0].content[0].content.text


@asynchronous
async def test_output_comes_while_a_command_runs(opened):
    async with opened(calls("shell", command="echo one; sleep 30"), flags=["--full-access"]) as editor:
        turn = asyncio.create_task(say(editor, "hi"))
        await until(
            lambda: any(u.content and "one" in u.content[0].content.text for u in editor.of("tool_call_update"))
        )
        await editor.agent.cancel(session_id=editor.id)
        assert await turn == "cancelled"
    assert facts(editor.files, TurnEnd)[0].outcome == "cancelled"


@asynchronous
async def test_a_message_that_still_waits_is_taken_back_by_a_cancel(opened):
    async with opened(HANGING) as editor:
        run("cass-send", editor.id, "from a shell")
        await until(lambda: facts(editor.files, User))
        turn = asyncio.create_task(say(editor, "from the editor"))
        await until(lambda: os.listdir(editor.files.inbox))
        with pytest.raises(acp.RequestError, match="is being answered"):
            await say(editor, "at the same time")
        await editor.agent.cancel(session_id=editor.id)
        assert await turn == "cancelled"
        assert [user.content for user in facts(editor.files, User)] == ["from a shell"]
        assert os.listdir(editor.files.inbox) == []
    assert facts(editor.files, TurnEnd) == []


@asynchronous
async def test_images_go_along_where_they_stand_and_what_is_none_is_refused_in_words(opened):
    image = base64.b64encode(drawn.png()).decode()
    async with opened(DONE) as editor:
        for bad, words in ((b"text", "no image"), (b"\x89PNG\r\n\x1a\n", "no image")):
            block = acp.image_block(base64.b64encode(bad).decode(), "image/png")
            with pytest.raises(acp.RequestError, match=words):
                await editor.agent.prompt(session_id=editor.id, prompt=[acp.text_block("see"), block])
        blocks = [acp.text_block("see"), acp.image_block(image, "image/jpeg"), acp.text_block("there")]
        await editor.agent.prompt(session_id=editor.id, prompt=blocks)
    (user,) = facts(editor.files, User)
    (found,) = user.attachments
    assert (found.media_type, found.width, found.height) == ("image/png", 4, 3)
    assert user.content.split("\n\n") == ["see", f"[image {found.sha256[:8]}]", "there"]


@asynchronous
async def test_files_that_the_editor_names_and_gives_reach_the_model(opened):
    async with opened(DONE) as editor:
        blocks = [
            acp.text_block("look at"),
            acp.resource_link_block("app.py", "file:///some%20where/app.py"),
            acp.resource_block(acp.embedded_text_resource("file:///b.txt", "its text")),
            acp.audio_block("aGk=", "audio/wav"),
        ]
        await editor.agent.prompt(session_id=editor.id, prompt=blocks)
    (user,) = facts(editor.files, User)
    assert user.content.split("\n\n") == [
        "look at",
        "@/some where/app.py",
        "/b.txt:\nits text",
        "[something that is no text was left out]",
    ]
    assert user.origin["program"] == "cass acp"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"text": "some", "error": "the model is broken"}, "the model is broken"),
        ({"text": ""}, "without any text"),
    ],
)
@asynchronous
async def test_a_turn_that_fails_says_why(opened, step, words):
    async with opened(step, {"text": "better"}) as editor:
        with pytest.raises(acp.RequestError, match=words):
            await say(editor, "hi")


@asynchronous
async def test_an_answer_that_was_cut_off_says_so(opened):
    async with opened({"text": "half an ans", "stop": "length"}) as editor:
        assert await say(editor, "hi") == "max_tokens"


@asynchronous
async def test_a_worker_that_is_killed_is_said_and_the_next_message_gets_another(opened):
    async with opened(HANGING, {"text": "again"}) as editor:
        turn = asyncio.create_task(say(editor, "hi"))
        await until(lambda: editor.texts() == "some words")
        os.kill(presence.holder(editor.files)["pid"], signal.SIGKILL)
        with pytest.raises(acp.RequestError, match=r"the worker of .* is gone"):
            await turn
        script(editor.files.home, DONE, DONE)
        assert await say(editor, "go on") == "end_turn"
        assert editor.texts().endswith("ok")


# ---- decisions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "decision", "rule", "is_made"),
    [
        ("once", "approved", None, True),
        ("always", "approved", "shell(touch made)", True),
        ("no", "denied", None, False),
        ("", "denied", None, False),
        ("another", "denied", None, False),
    ],
)
@asynchronous
async def test_a_question_is_put_to_the_person_in_the_editor(opened, workspace, choice, decision, rule, is_made):
    async with opened(calls("shell", command="touch made"), DONE, flags=["--workspace-edit"]) as editor:
        editor.choice = choice
        assert await say(editor, "hi") == "end_turn"
        ((call, options),) = editor.asked
    assert options == ["once", "always", "no"]
    assert (call.title, call.tool_call_id) == ("touch made", editor.of("tool_call")[0].tool_call_id)
    assert "asks before every command" in call.content[-1].content.text
    (approval,) = facts(editor.files, Approval)
    assert (approval.decision, approval.rule) == (decision, rule)
    assert "by cass acp" in approval.by
    assert (workspace / "made").exists() == is_made


@pytest.mark.parametrize(
    ("call", "texts"),
    [
        (calls("write", path="../out.txt", content="new\n"), [("old\n", "new\n")]),
        (calls("edit", path="../out.txt", edits=[{"old_text": "o", "new_text": "n"}]), [("old\n", "nld\n")]),
        (calls("shell", command=f"true {'x' * 300} && touch made"), f"true {'x' * 300} && touch made"),
        (calls("read", files=[{"path": "app.py"}, {"path": "link"}]), "link"),
    ],
    ids=["write", "edit", "a long command", "read"],
)
@asynchronous
async def test_a_question_shows_all_that_would_be_done(opened, workspace, call, texts):
    (workspace.parent / "out.txt").write_text("old\n")
    (workspace / "link").symlink_to(workspace.parent / "out.txt")
    async with opened(call, DONE, flags=["--workspace-edit"]) as editor:
        editor.choice = "no"
        await say(editor, "hi")
        ((asked, _),) = editor.asked
    *what, because = asked.content
    if isinstance(texts, str):
        assert texts in what[0].content.text
    else:
        assert [(one.old_text, one.new_text) for one in what] == texts
    assert str(workspace.parent / "out.txt") in because.content.text or "asks before" in because.content.text


@asynchronous
async def test_a_question_may_be_answered_from_elsewhere(opened, workspace):
    async with opened(calls("shell", command="touch made"), DONE, flags=["--workspace-edit"]) as editor:
        editor.choice = None
        turn = asyncio.create_task(say(editor, "hi"))
        await until(lambda: editor.asked)
        (status,) = json.loads(run("cass", "status", editor.id, "--json").stdout)
        assert run("cass", "approve", editor.id, status["pending"][0]["request_id"]).returncode == 0
        assert await turn == "end_turn"
    assert (workspace / "made").exists()


@asynchronous
async def test_modes_are_set_here_and_told_when_they_change_elsewhere(opened):
    async with opened(DONE, DONE, DONE) as editor:
        await editor.agent.set_session_mode(session_id=editor.id, mode_id="workspace-edit")
        await say(editor, "one")
        await editor.agent.set_session_mode(session_id=editor.id, mode_id="full-access")
        await say(editor, "two")
        assert editor.of("current_mode_update") == []
        with pytest.raises(acp.RequestError, match="Invalid params"):
            await editor.agent.set_session_mode(session_id=editor.id, mode_id="other")
    assert [user.mode for user in facts(editor.files, User)] == ["workspace-edit", "full-access"]


# ---- chats ----------------------------------------------------------------------------------------------------------


@asynchronous
async def test_a_chat_of_the_terminal_is_loaded_and_goes_on_in_both(opened, home, workspace):
    script(home, calls("ls", path="."), {"text": "one file"}, {"text": "two"}, {"text": "three"})
    assert run("cass", "-p", "--provider", "scripted", "what is here?").stdout == "one file\n"
    (chat,) = catalogue.ids(home)
    of_agent = {"provider": "p", "model": "m", "system": "s", "agent_of": chat}
    agent = chats.create(home, cwd=workspace, **of_agent).chat_id
    async with opened() as editor:
        listed = await editor.agent.list_sessions(cwd=str(workspace))
        assert [(one.session_id, one.title) for one in listed.sessions if one.title] == [(chat, "what is here?")]
        assert agent not in [one.session_id for one in listed.sessions]
        loaded = await editor.agent.load_session(cwd=str(workspace), session_id=chat, mcp_servers=[])
        assert loaded.modes.current_mode_id == "read-only"
        assert (editor.texts("user_message_chunk"), editor.texts()) == ("what is here?", "one file")
        assert [call.title for call in editor.of("tool_call")] == ["ls ."]
        editor.id = chat
        assert await say(editor, "and then?") == "end_turn"
        assert editor.texts() == "one filetwo"
        assert run("cass-send", "--wait", chat, "last").stdout == "three\n"
        with pytest.raises(acp.RequestError, match="no chat 'nothing'"):
            await editor.agent.load_session(cwd=str(workspace), session_id="nothing", mcp_servers=[])
        with pytest.raises(acp.RequestError, match="Invalid params"):
            await editor.agent.prompt(session_id="nothing", prompt=[acp.text_block("hi")])


@asynchronous
async def test_a_missing_key_is_said_in_words_and_leaves_no_chat(home, workspace):
    editor = Editor()
    command = argv("cass", "acp", "--provider", "openai")
    async with acp.spawn_agent_process(editor, *command, env=dict(os.environ)) as (agent, _):
        await agent.initialize(protocol_version=1)
        with pytest.raises(acp.RequestError, match="set OPENAI_API_KEY"):
            await agent.new_session(cwd=str(workspace), mcp_servers=[])
    assert catalogue.ids(home) == []


def test_an_editor_that_goes_leaves_the_turn_to_its_end_and_wrote_only_the_protocol(home, workspace):
    script(home, {"text": "word " * 60, "delay_ms": 20})
    environ = os.environ | {"CASS_PROVIDER": "scripted"}
    process = subprocess.Popen(argv("cass", "acp"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ)
    lines = []

    def ask(id, method, **params):
        request = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()

    def answer():
        lines.append(json.loads(process.stdout.readline()))
        return lines[-1]

    ask(1, "initialize", protocolVersion=1)
    assert answer()["result"]["agentCapabilities"]["loadSession"] is True
    ask(2, "session/new", cwd=str(workspace), mcpServers=[{"name": "x", "command": "x", "args": [], "env": []}])
    files = home.files(answer()["result"]["sessionId"])
    ask(3, "session/prompt", sessionId=files.chat_id, prompt=[{"type": "text", "text": "hi"}])
    while answer().get("params", {}).get("update", {}).get("sessionUpdate") != "agent_message_chunk":
        pass
    process.stdin.close()
    rest = process.stdout.read().splitlines()
    assert process.wait(20) == 0
    process.stdout.close()
    assert all(message["jsonrpc"] == "2.0" for message in [*lines, *map(json.loads, rest)])
    wait_for(lambda: facts(files, TurnEnd))
    assert facts(files, TurnEnd)[0].outcome == "done"
    end_worker(files)


def test_without_its_package_it_says_what_to_install():
    code = "import sys; sys.modules['acp'] = None; from cass.cli import cass; cass(['acp'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert extras.adding("acp") in done.stderr


def test_what_can_be_no_editors_end_is_said(tmp_path):
    with open(os.devnull, "rb") as nothing, open(tmp_path / "file", "wb") as file:
        for given, name in (({"stdin": nothing, "stdout": subprocess.PIPE}, "input"), ({"stdout": file}, "output")):
            streams = {"stdin": subprocess.PIPE, **given}
            done = subprocess.run(argv("cass", "acp"), **streams, stderr=subprocess.PIPE, check=False, timeout=60)
            assert done.returncode == 2
            assert f"is started by an editor, over pipes, and standard {name} is none" in done.stderr.decode()


# ---- a hostile editor -----------------------------------------------------------------------------------------------


@asynchronous
async def test_always_is_no_answer_where_it_was_not_offered(opened, workspace):
    async with opened(calls("write", path=".envrc", content="x"), DONE, flags=["--workspace-edit"]) as editor:
        editor.choice = "always"
        assert await say(editor, "hi") == "end_turn"
        ((_, options),) = editor.asked
    assert options == ["once", "no"]
    assert not (workspace / ".envrc").exists()


INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
HOSTILE = [
    b"{\n",
    b"[]\n",
    b"null\n",
    b"7\n",
    b"\xff\xfe\n",
    b"\n\n\r\n",
    b'{"jsonrpc":"2.0","id":1,"result":{}}\n',
    b'{"jsonrpc":"2.0","id":{},"result":{}}\n',
    b'{"jsonrpc":"2.0","id":0,"error":5}\n',
    b'{"jsonrpc":"2.0","id":[],"method":"initialize"}\n',
    b'{"jsonrpc":"2.0","id":"x","method":5}\n',
    b'{"jsonrpc":"2.0","id":"x","method":"session/list","params":[]}\n',
    b'{"id":7,"method":"session/prompt","params":' + b"[" * 100_000 + b"\n",
    b"x" * (lines.LONGEST + 1) + b"\n",
]


def test_no_line_of_an_editor_ends_the_server(home, workspace):
    given = b"".join(HOSTILE) + INITIALIZE
    done = subprocess.run(argv("cass", "acp"), input=given, capture_output=True, timeout=60)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr[-2000:]
    assert [answer["id"] for answer in answers] == [None] * 12 + [1]
    assert {answer["error"]["code"] for answer in answers[:-1]} == {lines.NO_JSON, lines.NO_MESSAGE}
    assert answers[-1]["result"]["agentInfo"]["name"] == "cassady"


WRONG = [
    ("session/new", {"cwd": "a\0b", "mcpServers": []}, "the workspace a\0b is gone"),
    ("session/new", {"cwd": "/", "mcpServers": []}, "/ cannot be the workspace"),
    ("session/load", {"cwd": ".", "sessionId": "../../etc/passwd", "mcpServers": []}, "no chat '../../etc/passwd'"),
    ("session/load", {"cwd": ".", "sessionId": ".", "mcpServers": []}, "no chat in"),
    ("session/prompt", {"sessionId": "../x", "prompt": []}, "Invalid params"),
    ("session/set_mode", {"sessionId": "../x", "modeId": "full-access"}, "Invalid params"),
]


@pytest.mark.parametrize(("method", "params", "said"), WRONG, ids=lambda one: str(one)[:40])
def test_what_an_editor_names_wrongly_is_said(home, workspace, method, params, said):
    asked = json.dumps({"jsonrpc": "2.0", "id": 2, "method": method, "params": params}).encode() + b"\n"
    done = subprocess.run(
        argv("cass", "acp", "--workspace-edit"), input=INITIALIZE + asked, capture_output=True, timeout=60
    )
    (answer,) = [one for one in map(json.loads, done.stdout.splitlines()) if one["id"] == 2]
    assert answer["error"]["message"].startswith(said)
    assert not catalogue.ids(home)


KEYS = st.sampled_from(["id", "method", "params", "result", "error"])
VALUES = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)
)


@given(st.binary() | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_line_is_a_message_or_says_why_not(line):
    found = lines.message(line)
    if isinstance(found, dict):
        hash(found.get("id"))
    assert isinstance(found, dict) or found in (lines.NO_JSON, lines.NO_MESSAGE)


@given(st.lists(st.sampled_from([b'{"method":"m"}', b"x" * 40, b"x" * 200, b"", b"[]"]), max_size=6), st.data())
def test_messages_do_not_depend_on_where_their_bytes_are_cut(parts, data):
    given = b"".join(part + b"\n" for part in parts)
    cut = data.draw(st.integers(0, len(given)))

    async def read():
        reader, sent = asyncio.StreamReader(limit=100), []
        taken = lines.Lines(reader, None)
        taken.send = lambda message: asyncio.sleep(0, sent.append(message))
        reader.feed_data(given[:cut])
        asyncio.get_running_loop().call_soon(reader.feed_data, given[cut:])
        asyncio.get_running_loop().call_soon(reader.feed_eof)
        found = []
        while (message := await taken.receive()) is not None:
            found.append(message)
        return found, [one["error"]["code"] for one in sent]

    found, codes = asyncio.run(read())
    assert found == [{"method": "m"}] * parts.count(b'{"method":"m"}')
    said = {b"[]": lines.NO_MESSAGE, b"x" * 40: lines.NO_JSON, b"x" * 200: lines.NO_JSON}
    assert codes == [said[part] for part in parts if part in said]
