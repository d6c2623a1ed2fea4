"""A program pays only for itself: which heavy packages each module, and each quick command, loads."""

import ast
import os
import re
import subprocess
import sys

import pytest
from test_order import SOURCES

from cass.tools import NAMES

HEAVY = {"asyncio", "httpx", "justhtml", "markdown_it", "mcp", "prompt_toolkit", "pygments", "rich", "watchfiles"}


def loaded(*arguments: str, home: str = "/nonexistent") -> set[str]:
    """Top-level packages that a fresh interpreter has loaded when it ends, from its own trace of imports."""
    environ = os.environ | {"CASS_HOME": home, "HOME": home}
    done = subprocess.run(
        [sys.executable, "-I", "-X", "importtime", *arguments], capture_output=True, text=True, env=environ, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"^import time:.*\|\s+(\w+)", done.stderr, re.MULTILINE))


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("records", set()),
        ("inbox", set()),
        ("presence", set()),
        ("tail", set()),
        ("config", set()),
        ("context", set()),
        ("blocks", set()),
        ("providers", set()),
        ("tools", set()),
        ("tools.fetch", {"asyncio"}),
        ("loop", {"asyncio"}),
        ("session", {"asyncio"}),
        ("send", set()),
        ("launch", set()),
        ("cli", set()),
        ("worker", {"asyncio"}),
        ("providers.http", {"asyncio", "httpx"}),
        ("viewer.view", {"markdown_it", "pygments", "rich", "watchfiles"}),
        ("composer.compose", {"asyncio", "prompt_toolkit"}),
    ],
)
def test_a_module_loads_no_more_than_it_needs(module, allowed):
    assert loaded("-c", f"import cass.{module}") & HEAVY <= allowed


def test_the_package_itself_loads_nothing_and_knows_where_everything_is():
    code = "import sys, cass; print(*sys.modules); assert all(getattr(cass, name) for name in cass.__all__)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert (HEAVY | {"click", "orjson", "typing"}) & set(done.stdout.split()) == set()


@pytest.mark.parametrize(
    "command",
    [
        ("cass", "--version"),
        ("cass", "--help"),
        ("cass", "ls"),
        ("cass", "status", "--json"),
        ("cass-send", "--help"),
        ("cass-view", "--help"),
        ("cass-compose", "--help"),
        ("cass-agent", "--help"),
    ],
    ids=" ".join,
)
def test_a_quick_command_loads_nothing_heavy(command, tmp_path):
    assert loaded("-m", "cass.cli", *command, home=str(tmp_path)) & HEAVY == set()


def test_a_worker_loads_nothing_that_only_screens_need_and_no_tool_before_it_is_called():
    code = "import sys, cass.worker; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    ours = {name.removeprefix("cass.") for name in done.stdout.split() if name.startswith("cass.")}
    assert {name for name in ours if name.startswith(("viewer", "composer", "export", "acp", "check"))} == set()
    assert ours & {"blocks", "markdown", "web.page", "web.visit", "mcp.host", "mcp.pipe"} == set()
    assert ours & {f"tools.{name}" for name in (*NAMES, "own", "hook")} == set()


@pytest.mark.parametrize("module", ["cass.cli", "cass.worker", "cass.viewer.view", "cass.composer.compose"])
def test_importing_a_module_prints_and_creates_nothing(module, tmp_path):
    place = tmp_path / "empty"
    place.mkdir()
    environ = os.environ | {"HOME": str(place), "CASS_HOME": str(place / "cass")}
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import {module}"], capture_output=True, env=environ, cwd=place, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(place.iterdir()) == []


def test_no_module_compiles_a_pattern_before_it_is_used():
    """`pattern` in place of `re.compile`: some sixty of them took a tenth of the start of the worker."""
    found = [
        f"{name}: line {node.lineno}"
        for name, path in SOURCES.items()
        for statement in ast.parse(path.read_text()).body
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
    ]
    assert found == []
