"""The person's own tools: what says what it is, and what runs as every command does."""

import asyncio
import json
import os
import time
from dataclasses import replace

import pytest

from cass import tools
from cass.access import Action, Ask, Effect, Mode, Reach, decide
from cass.errors import ToolError
from cass.rules import Rules
from cass.toolbox import Toolbox
from cass.tools import Outcome, own, sandbox

SPEC = {"name": "say", "description": "Says it.", "parameters": {"type": "object"}, "does": "runs"}


@pytest.fixture
def write(workspace):
    """Makes an executable in the directory of tools: what it says it is, and the script it runs else."""
    directory = workspace.home / "tools"
    directory.mkdir(parents=True)

    def made(script="cat", name="say", schema=None, **spec):
        said = json.dumps(SPEC | spec) if schema is None else schema
        path = directory / name
        path.write_text(f"#!/bin/bash\nif [ \"$1\" = --schema ]; then cat <<'END'\n{said}\nEND\nexit; fi\n{script}\n")
        path.chmod(0o755)
        return path

    return made


def find(workspace):
    return tools.own_tools(workspace.home / "tools", workspace.environ)


def tool(workspace):
    ((_, found),), wrong = find(workspace)
    assert wrong == []
    return found


async def outcome(found, place, **arguments):
    live = ""
    async for piece in found.run(arguments, place):
        if isinstance(piece, Outcome):
            return piece, live
        live += piece
    raise AssertionError("no outcome")


def ran(workspace, run, **changes):
    return asyncio.run(outcome(tool(workspace), replace(workspace.place, **changes), **run))


def test_a_tool_gets_its_arguments_and_what_it_writes_is_the_result(workspace, write):
    write('read -r given; echo "$given"; pwd; echo "$CASS_CHAT" >&2')
    found, live = ran(workspace, {"text": "a\n'b'", "n": 1})
    assert found.ok
    assert found.content.split("\n") == ['{"text":"a\\n\'b\'","n":1}', str(workspace.root), "a-chat"]
    assert live.strip() == found.content


@pytest.mark.parametrize(
    ("script", "content"),
    [
        ("echo no such ticket; exit 3", "Error: exit status 3\nno such ticket"),
        ("kill -9 $$", "Error: killed by SIGKILL"),
        ("true", "(no output)"),
    ],
)
def test_what_fails_is_a_failed_result(workspace, write, script, content):
    write(script)
    found, _ = ran(workspace, {})
    assert (found.content, found.ok) == (content, not content.startswith("Error"))


def test_a_tool_that_hangs_is_ended(workspace, write):
    write("sleep 60", timeout_s=0.3)
    began = time.monotonic()
    assert ran(workspace, {})[0].content == "Error: timed out after 0.3 s"
    assert time.monotonic() - began < 20


def test_arguments_may_be_long_but_not_too_long(workspace, write):
    write("wc -c")
    assert ran(workspace, {"text": "ä" * 29_000})[0].content == str(2 * 29_000 + len('{"text":""}\n'))
    with pytest.raises(ToolError, match="too long"):
        ran(workspace, {"text": "x" * 30_000})


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("", "expected a JSON object"),
        ("[1]", "expected a JSON object"),
        (json.dumps(SPEC | {"extra": 1}), "not 'extra'"),
        (json.dumps(SPEC | {"does": "anything"}), "its effect is one of reads, writes, runs"),
        (json.dumps(SPEC | {"name": "no name"}), "a tool's name is"),
        (json.dumps(SPEC | {"description": ""}), '"description": expected a text'),
        (json.dumps(SPEC | {"parameters": {}}), '"type": "object"'),
        (json.dumps(SPEC | {"parameters": []}), '"parameters": expected a JSON schema'),
        (json.dumps(SPEC | {"paths": "file"}), '"paths": expected names'),
        (json.dumps(SPEC | {"timeout_s": 601}), '"timeout_s": expected seconds, 600 at most'),
        ("x" * 70_000, "more than 65,536 bytes"),
    ],
)
def test_one_that_does_not_say_what_it_is_is_not_used_and_that_is_said(workspace, write, schema, said):
    path = write(schema=schema)
    found, (text,) = find(workspace)
    assert found == []
    assert text.startswith(f"{path}: ")
    assert said in text


def test_one_that_cannot_start_or_never_answers_is_said_and_the_others_are_there(workspace, write):
    write()
    write(name="bad", schema="").write_text("#!/nowhere/at/all\n")
    write(name="hangs", schema="").write_text("#!/bin/sh\nsleep 60\n")
    write(name="broken", schema="").write_text("#!/bin/sh\necho 'no licence' >&2\nexit 3\n")
    write(name="forgotten").chmod(0o644)
    write(name="headless").write_text("echo {}\n")
    (workspace.home / "tools" / "README").write_text("no executable")
    found, wrong = own.find(workspace.home / "tools", workspace.environ, patience_s=2.0)
    assert [one.name for _, one in found] == ["say"]
    assert [text.partition(": ")[2] for text in wrong] == [
        "it does not start: the program that its first line names is not there; it is not used",
        "--schema: expected a JSON object; exit status 3: no licence; it is not used",
        "it is not executable (chmod +x); it is not used",
        "--schema: no answer in time; it is not used",
        "it does not start: a script begins with a line such as #!/bin/sh; it is not used",
    ]


@pytest.mark.parametrize("closed", ["tools", "tools/say"])
def test_what_cannot_be_read_is_said_and_no_chat_ends_of_it(workspace, write, closed):
    write()
    path = workspace.home / closed
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root reads everything")
    found, wrong = find(workspace)
    path.chmod(0o700)
    assert (found, [text.partition(":")[0] for text in wrong]) == ([], [str(path)])


def test_what_it_does_decides_where_it_is_offered_and_asked_about(workspace, write):
    for does in Effect:
        path = write(does=does.value)
        path.write_text(path.read_text().replace('"name": "say"', f'"name": "{does.value}"'))
        path.rename(path.with_name(does.value))
    box, wrong = Toolbox().joined(workspace.home / "tools", workspace.environ)
    assert wrong == []
    own = {"reads", "writes", "runs"}
    assert box.names(Mode.READ_ONLY) & own == {"reads"}
    assert box.names(Mode.WORKSPACE_EDIT) & own == own
    assert [schema["name"] for schema in box.schemas(Mode.FULL_ACCESS)][-3:] == ["reads", "runs", "writes"]
    for name in own:
        decision = decide(Mode.WORKSPACE_EDIT, Rules(), box.find(name).action({}, workspace.place))
        assert isinstance(decision, Ask) is (name != "reads")


def test_a_path_is_judged_as_every_tools_and_handed_over_resolved(workspace, write):
    write(does="reads", paths=["file"])
    action = tool(workspace).action({"file": "../OUT/x"}, workspace.place)
    reached = (Reach(str(workspace.beside / "x"), inside=False),)
    assert action == Action("say", reached, effect=Effect.READS, given='{"file":"../OUT/x"}')
    assert json.loads(ran(workspace, {"file": "a"})[0].content) == {"file": str(workspace.root / "a")}


def test_a_name_that_is_taken_stays_whose_it_is(workspace, write):
    write()
    second, third = write(name="second"), write(name="third", schema=json.dumps(SPEC | {"name": "agent"}))
    box, wrong = Toolbox().joined(workspace.home / "tools", workspace.environ)
    assert wrong == [
        f"{second}: there is a tool say already; it is not used",
        f"{third}: there is a tool agent already; it is not used",
    ]
    assert box.find("say").description == "Says it."


@pytest.mark.skipif(sandbox.problem() is not None, reason="no sandbox here")
def test_it_is_held_where_shell_is_and_sees_of_the_home_its_own_directory_only(workspace, write):
    path = write(f'cat "${{0%/*}}/beside"; cat {workspace.home}/config.json; touch {workspace.beside}/x "$0"; true')
    path.with_name("beside").write_text("beside\n")
    (workspace.home / "config.json").write_text("the secret")
    found, _ = ran(workspace, {}, sandboxed=True)
    assert found.content.startswith("beside\n"), found.content
    assert "the secret" not in found.content
    assert "Read-only file system" in found.content
    assert not (workspace.beside / "x").exists()
