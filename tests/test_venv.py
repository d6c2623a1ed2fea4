"""A fresh checkout: its first start makes `.venv`, whatever happened to an earlier try."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PYPROJECT = '[project]\ndependencies = ["pip"]\n'
"""What every new environment has already, so that nothing is fetched."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the real `venv.sh` and `bin/cass`, whose program says its arguments."""
    root = tmp_path / "a checkout"
    (root / "cass").mkdir(parents=True)
    (root / "bin").mkdir()
    shutil.copy(ROOT / "venv.sh", root)
    shutil.copy(ROOT / "bin/cass", root / "bin")
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "cass/__init__.py").touch()
    (root / "cass/cli.py").write_text("import sys\ndef main(program): print(program, *sys.argv[1:])\n")
    return root


def start(program: Path, path: str = os.environ["PATH"], cwd: Path | None = None) -> "subprocess.Popen[str]":
    environ = os.environ | {"PATH": path}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [program, "hi"], stdout=pipe, stderr=pipe, env=environ, cwd=cwd, text=True, start_new_session=True
    )


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_the_first_start_makes_the_environment_and_says_so_and_the_next_is_silent(checkout):
    status, out, err = ended(start(checkout / "bin/cass"))
    assert (status, out) == (0, "cass hi\n")
    assert err.startswith(f"cass: making {checkout}/.venv with pip\n")
    assert ended(start(checkout / "bin/cass")) == (0, "cass hi\n", "")


def test_a_program_starts_through_a_link_from_anywhere_and_after_the_checkout_moved(checkout, tmp_path):
    ended(start(checkout / "bin/cass"))
    moved = checkout.rename(tmp_path / "moved")
    link = tmp_path / "link"
    link.symlink_to("moved/bin/cass")
    assert ended(start(link, cwd=Path("/"))) == (0, "cass hi\n", "")
    assert ended(start(moved / "bin/cass", cwd=moved / "bin")) == (0, "cass hi\n", "")


def test_first_starts_at_once_make_it_once(checkout):
    starts = [start(checkout / "bin/cass") for _ in range(3)]
    ends = [ended(process) for process in starts]
    assert [(status, out) for status, out, _ in ends] == [(0, "cass hi\n")] * 3
    assert sum("making" in err for _, _, err in ends) == 1


def test_an_interrupted_making_is_begun_again(checkout):
    interrupted = start(checkout / "bin/cass")
    while not (checkout / ".venv/bin/python").exists():
        assert interrupted.poll() is None
        time.sleep(0.001)
    os.killpg(interrupted.pid, signal.SIGKILL)
    assert ended(interrupted)[0] == -signal.SIGKILL
    assert not (checkout / ".venv/made").exists()
    status, out, err = ended(start(checkout / "bin/cass"))
    assert (status, out) == (0, "cass hi\n")
    assert "making" in err


def test_new_requirements_are_noticed_and_a_touched_file_is_not(checkout):
    ended(start(checkout / "bin/cass"))
    pyproject = checkout / "pyproject.toml"
    pyproject.write_text(PYPROJECT)
    assert ended(start(checkout / "bin/cass")) == (0, "cass hi\n", "")
    pyproject.write_text(PYPROJECT.replace("pip", "pip>=1"))
    assert "with pip>=1" in ended(start(checkout / "bin/cass"))[2]
    assert ended(start(checkout / "bin/cass")) == (0, "cass hi\n", "")


@pytest.mark.parametrize(
    ("fails_on", "message"),
    [
        (
            "ensurepip",
            "cass: python3 cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv\n",
        ),
        ("version_info", "cass: Python 3.11 or newer is needed; python3 is Python "),
    ],
)
def test_a_python_that_cannot_do_it_is_named_with_what_to_do(checkout, tmp_path, fails_on, message):
    path = tmp_path / "path"
    path.mkdir()
    for program in ("sh", "readlink"):
        (path / program).symlink_to(str(shutil.which(program)))
    python = path / "python3"
    python.write_text(f'#!/bin/sh\ncase "$*" in *{fails_on}*) exit 1;; esac\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    status, out, err = ended(start(checkout / "bin/cass", path=str(path)))
    assert (status, out) == (1, "")
    assert err.startswith(message)
    assert not (checkout / ".venv").exists()


def test_a_checkout_that_cannot_be_written_is_named(checkout):
    (checkout / ".venv").touch()
    status, _, err = ended(start(checkout / "bin/cass"))
    assert status == 1
    assert err.startswith(f"cass: cannot make {checkout}/.venv: ")
    assert err.count("\n") == 1
