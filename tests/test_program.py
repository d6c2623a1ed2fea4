"""What a program prints: made visible on a terminal, as it is everywhere else."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from terminal import Pty

CASS = Path(__file__).parents[1] / "cass"
HOSTILE = "a\x1b]0;pwned\x07\x9b2J\u202eb\u3164c"
SHOWN = "a␛]0;pwned␇␛[2J⟨U+202E⟩b⟨U+3164⟩c"


@pytest.mark.parametrize("name", ["out", "err"])
def test_on_a_terminal_nothing_is_obeyed(name):
    pty = Pty([sys.executable, "-c", f"from cass.program import *; {name}({HOSTILE!r})"])
    assert pty.end() == 0
    pty.close()
    assert pty.said.decode() == f"{SHOWN}\r\n"


@pytest.mark.parametrize(("name", "stream"), [("out", 1), ("err", 2)])
@pytest.mark.parametrize("text", [HOSTILE, "caf\udcff é", "\x1b[31mred\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_pipe_gets_the_bytes_as_they_are(name, stream, text, encoding):
    code = f"from cass.program import *; {name}({text!r})"
    environ = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environ, timeout=60)
    assert (done.stdout, done.stderr)[stream - 1] == text.encode("utf-8", "surrogateescape") + b"\n"


def test_a_program_without_standard_streams_prints_nothing_and_goes_on():
    code = "from cass.program import *; out('x'); err('y')"
    done = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", sys.executable, "-c", code], timeout=60)
    assert done.returncode == 0


@pytest.mark.parametrize("name", ["cli", "program", "subcommands", "verdict"])
def test_there_is_no_other_way_to_print(name):
    printing = {"echo", "secho", "print", "write", "writelines", "echo_via_pager", "style"}
    for function in ast.walk(ast.parse((CASS / f"{name}.py").read_text())):
        if not isinstance(function, ast.FunctionDef) or (name, function.name) == ("program", "_print"):
            continue
        called = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
        names = {getattr(func, "attr", getattr(func, "id", "")) for func in called}
        assert names & printing == set(), function.name
