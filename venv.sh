# The Python environment of this checkout: sets VENV, and makes it first where it is missing or half made.
# Sourced by bin/*, tests/run and .ci/run with ROOT set; WITH names extras of pyproject.toml ("test", "test,dev").

VENV=$ROOT/.venv

make_venv() {
    new_enough=
    for python in python3 python3.14 python3.13 python3.12 python3.11; do
        "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
        new_enough=$python
        if "$python" -I -c 'import ensurepip, venv' 2>/dev/null; then
            run_maker
            return
        fi
    done
    if [ -n "$new_enough" ]; then
        echo "cass: $new_enough cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv"
    else
        echo "cass: Python 3.11 or newer is needed; python3 is $(python3 -V 2>&1 || echo missing)"
    fi
    return 1
} >&2

run_maker() {
    "$python" -I - "$ROOT" "${WITH-}" <<'EOF'
"""Make or complete .venv.

A marker for each set of extras holds its requirements and is written last. When none is there, the last making was
interrupted, and everything is begun again.
"""

import fcntl, os, subprocess, sys, tomllib
from pathlib import Path

root, extras = Path(sys.argv[1]).resolve(), sys.argv[2]
home = root / ".venv"
python = home / "bin" / "python"


def main():
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    base = project["dependencies"]
    more = [line for extra in extras.split(",") if extra for line in project["optional-dependencies"][extra]]
    wanted = {"made": base} | ({f"made-{extras}": base + more} if extras else {})
    home.mkdir(exist_ok=True)
    fcntl.flock(os.open(home, os.O_RDONLY), fcntl.LOCK_EX)  # of two first starts at once the second waits
    made = {path.name: path.read_text().splitlines() for path in home.glob("made*")} if python.exists() else {}
    if not any({*base, *more} <= set(lines) for lines in made.values()):
        print(f"cass: making {home} with {', '.join(base + more)}", flush=True)
        for path in home.glob("made*"):
            path.unlink()
        if not made:
            begin()
        run("-m", "pip", "install", "--quiet", "--no-input", *base, *more)
    for name, lines in (made | wanted).items():
        (home / name).write_text("".join(f"{line}\n" for line in lines))


def begin():
    subprocess.run([sys.executable, "-I", "-m", "venv", "--clear", home], check=True, stdout=2)
    # Python 3.11 puts setuptools there, whose .pth file every start would pay for.
    run("-m", "pip", "uninstall", "--quiet", "--yes", "setuptools")
    # A path instead of an installed project: the cheapest way to import a checkout, and relative, so it may be moved.
    packages = next(home.glob("lib/python3*/site-packages"))
    (packages / "cassady.pth").write_text(os.path.relpath(root, packages) + "\n")


def run(*arguments):
    os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    subprocess.run([python, "-I", *arguments], check=True, stdout=2)


try:
    main()
except (OSError, subprocess.CalledProcessError) as e:
    sys.exit(f"cass: cannot make {home}: {e}")
except KeyboardInterrupt:
    sys.exit(130)
EOF
}

if ! [ -x "$VENV/bin/python" ] || ! [ "$VENV/made${WITH:+-$WITH}" -nt "$ROOT/pyproject.toml" ]; then
    make_venv || exit
fi
