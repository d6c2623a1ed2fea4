"""Extending by programs: the hooks and tools that docs/extending.md shows work as they stand."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from stage import argv, run

from cass.home import Home

TEXT = (Path(__file__).parents[1] / "docs" / "extending.md").read_text()
PATTERN = r"^`(~/\.cass/(?:hooks|tools)/[^`]*)`:\n\n```\w*\n(.*?)^```"
EXAMPLES = dict(re.findall(PATTERN, TEXT, re.DOTALL | re.MULTILINE))
JSON = re.findall(r"^```json\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
HOOKS = next(text for text in JSON if "before-tool" in text)


@pytest.fixture
def home(monkeypatch):
    """``~/.cass``, as the examples name it."""
    monkeypatch.setenv("CASS_HOME", os.path.expanduser("~/.cass"))
    return Home.find()


def write(name, text):
    path = Path(name).expanduser()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o700)


def test_a_hook(scripted, home, tmp_path):
    scripted({"tool_calls": [{"name": "shell", "arguments": {"command": "git push --force"}}]}, {"text": "Then not."})
    write("~/.cass/config.json", HOOKS)
    write("~/.cass/hooks/no-push", EXAMPLES["~/.cass/hooks/no-push"])
    assert run("cass", "-p", "push it", "--full-access").stdout == "Then not.\n"
    assert Path("~/outcomes").expanduser().read_text() == "done\n"
    (tmp_path / "bin").mkdir()
    write(f"{tmp_path}/bin/cass-view", f'#!/bin/sh\nexec {" ".join(argv("cass-view"))} "$@"\n')
    line = next(line for line in TEXT.split("\n") if line.startswith("cass-view"))
    environ = os.environ | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    said = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=environ, timeout=60)
    assert said.stdout == "shell\n", said.stderr
    assert "pushing is left to the person" in run("cass-view", ".", "--no-follow", "--json").stdout


def test_a_tool(scripted, home):
    calls = [{"name": "ticket", "arguments": {"id": id}} for id in ("42", "x")]
    scripted({"tool_calls": calls}, {"text": "It is the parser."})
    write("~/.cass/tools/ticket", EXAMPLES["~/.cass/tools/ticket"])
    done = run("cass", "-p", "what is 42?")
    assert (done.stdout, done.returncode) == ("It is the parser.\n", 0), done.stderr
    said = run("cass-view", ".", "--no-follow", "--json").stdout
    assert "ticket 42: the parser forgets the last line" in said
    assert "Error: exit status 1\\nno ticket x: tickets are numbers" in said


def test_agents(home, workspace, tmp_path):
    (workspace / "todo.txt").write_text("TODO: the parser\n")
    (tmp_path / "bin").mkdir()
    write(f"{tmp_path}/bin/cass", f'#!/bin/sh\nexec {" ".join(argv("cass"))} "$@"\n')
    example = next(
        text for text in re.findall(r"^```sh\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE) if "agents" in text
    )
    environ = os.environ | {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    said = subprocess.run(["bash", "-ec", example], capture_output=True, text=True, env=environ, timeout=60)
    assert "todo.txt:1:TODO: the parser" in said.stdout, said.stderr
    tree, ids = said.stdout.splitlines()[-5:-2], said.stdout.splitlines()[-2:]
    assert [line.split()[0] for line in tree[1:]] == ids
    assert [line[:2].isspace() for line in tree] == [False, True, True]
