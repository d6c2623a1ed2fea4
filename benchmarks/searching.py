#!/usr/bin/env python3
"""The search of grep beside ripgrep, GNU grep and git grep: benchmarks/searching.py [-n RUNS] [TREE]

One process of each, in turn, over the same 50,000 files (700 MB) in the page cache. CPU is user and system time of the
process: what a search costs, where the wall also tells what else the machine did. What counts is the ratio to `rg -j1`:
under 1.5, under 6 for an expression without any literal. TREE is made where it is missing, of source distributions
that pip downloads: some minutes, and 2 GB. Every figure is a median.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cass.walk import Walk  # noqa: E402 - the benchmark runs in a checkout, installed or not

PYTHON = str(ROOT / ".venv/bin/python")
SOURCES = ("Django==5.2", "ansible==9.1.0", "botocore==1.35.0", "sympy==1.13.3")
START = """
import sys
sys.path.insert(0, sys.argv[1])
from cass import search
search.OUTPUT_BYTES = 1 << 40  # the others know no limit
search.main()
"""


@dataclass(frozen=True)
class Query:
    """What is looked for, and the ratio to stay under; None: printed only."""

    text: str
    reach: float | None = 1.5
    regex: bool = False
    case_sensitive: bool = True


QUERIES = (
    Query("zqxjkvbnmw"),
    Query("def get_queryset"),
    Query("deprecationwarning", case_sensitive=False),
    Query(r"class \w+Error\b", regex=True),
    Query(r"^from (django|ansible)\.\w+ import", regex=True),
    Query(r"[A-Z]{6,}_[0-9]{3}", reach=6, regex=True),
    Query(r"\w+zqx", reach=6, regex=True),
    Query("self", reach=None),
)


@dataclass(frozen=True)
class Cost:
    cpu: float
    """Milliseconds."""
    wall: float
    memory: float
    """Mebibytes, at most: a process begins with what this one has."""
    lines: int


# ---- the tree -------------------------------------------------------------------------------------------------------


def make(tree: Path) -> None:
    """Unpack `SOURCES` into `tree`, as one repository."""
    with tempfile.TemporaryDirectory() as archives:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", archives]
        for source in SOURCES:
            print(f"downloading {source}", flush=True)
            subprocess.run([*pip, source], check=True)
        made = tree.with_name(f"{tree.name}.new")
        for archive in sorted(Path(archives).iterdir()):
            with tarfile.open(archive) as file:
                file.extractall(made, filter="data")
    git = ["git", "-C", str(made)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A", "-f"], check=True, stderr=subprocess.DEVNULL)
    # What cass passes over, and ripgrep does not, is taken out: both have the same to search.
    walked = {path + name for _, path, names in Walk(str(made.resolve())) for name in names}
    for path in {path for path in made.rglob("*") if path.is_file() or path.is_symlink()}:
        name = str(path.relative_to(made))
        if name not in walked and not name.startswith(".git/"):
            path.unlink()
    made.rename(tree)


def check(tree: Path) -> int:
    """How many files there are; ends where cass and ripgrep would not search the same ones."""
    ours = {path + name for _, path, names in Walk(str(tree)) for name in names}
    listed = subprocess.run([*RG, "--files"], cwd=tree, capture_output=True, check=True).stdout
    if ours != {os.fsdecode(name) for name in listed.splitlines()}:
        sys.exit(f"cass and rg do not find the same files in {tree}: remove it, and it is made anew")
    return len(ours)


# ---- the programs ---------------------------------------------------------------------------------------------------

RG = ["rg", "--no-config", "--hidden", "-g", "!.git", "-j1"]


def cass(query: Query, tree: Path) -> list[str]:
    asked = {
        "query": query.text,
        "regex": query.regex,
        "case_sensitive": query.case_sensitive,
        "context": 0,
        "most": 1 << 40,
        "paths": [[str(tree), "."]],
        "closed": [],
        "denied": "",
        "root": str(tree),
        "include": "",
        "exclude": "",
        "show": "lines",
    }
    return [PYTHON, "-I", "-S", "-X", "utf8", "-W", "ignore", "-c", START, str(ROOT), json.dumps(asked)]


def ripgrep(query: Query, _: Path) -> list[str]:
    case = "-s" if query.case_sensitive else "-i"
    return [*RG, "-n", "--no-heading", case, *(() if query.regex else ("-F",)), "-e", query.text]


def gnu_grep(query: Query, _: Path) -> list[str]:
    how = "-P" if "\\" in query.text else "-E" if query.regex else "-F"
    return [
        "grep",
        "-rnI",
        "--exclude-dir=.git",
        how,
        *(() if query.case_sensitive else ("-i",)),
        "-e",
        query.text,
        ".",
    ]


def git_grep(query: Query, _: Path) -> list[str]:
    how = "-P" if query.regex else "-F"
    return ["git", "grep", "-nI", "--threads=1", how, *(() if query.case_sensitive else ("-i",)), "-e", query.text]


PROGRAMS = {"rg -j1": ripgrep, "cass": cass, "grep -rnI": gnu_grep, "git grep": git_grep}


def run(command: list[str], tree: Path) -> Cost:
    """Run to the end in `tree`; what it prints is counted."""
    with tempfile.TemporaryFile() as output:
        environ = os.environ | {"LC_ALL": "C.UTF-8", "GIT_PAGER": "cat"}
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=tree, stdin=subprocess.DEVNULL, stdout=output, env=environ)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):  # 1: nothing found
            sys.exit(f"{' '.join(command)} ended with {process.returncode}")
        output.seek(0)
        lines = sum(block.count(b"\n") for block in iter(lambda: output.read(1 << 20), b""))
    cpu = used.ru_utime + used.ru_stime
    return Cost(cpu * 1e3, wall * 1e3, used.ru_maxrss / 1024, lines)


def measure(query: Query, tree: Path, runs: int) -> dict[str, Cost]:
    """The median of each program, all of them in turn."""
    costs: dict[str, list[Cost]] = {name: [] for name in PROGRAMS if shutil.which(name.split()[0]) or name == "cass"}
    for turn in range(runs + 1):
        for name, found in costs.items():
            cost = run(PROGRAMS[name](query, tree), tree)
            if turn:  # the first brings everything into the page cache
                found.append(cost)
    return {
        name: Cost(
            *(statistics.median(getattr(cost, field) for cost in found) for field in ("cpu", "wall", "memory")),
            found[0].lines,
        )
        for name, found in costs.items()
    }


def show(query: Query, costs: dict[str, Cost]) -> str:
    ours, theirs = costs["cass"], costs.get("rg -j1")
    cells = [f"{costs[name].cpu:6.0f}" if name in costs else "     -" for name in PROGRAMS]
    ratio = f"{ours.cpu / theirs.cpu:5.2f}" if theirs else "    -"
    reach = f"< {query.reach}" if query.reach else ""
    how = "" if query.case_sensitive else " -i"
    return f"{query.text + how:38}{ours.lines - 1:8,} " + " ".join(cells) + f" {ratio} {reach:6}{ours.memory:5.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "-n", "--runs", type=int, default=5, help="of each program, in turn, after one that is not counted"
    )
    parser.add_argument("tree", nargs="?", type=Path, default=Path(tempfile.gettempdir(), "cass-searching"))
    given = parser.parse_args()
    tree = given.tree.resolve()
    if not tree.exists():
        make(tree)
    if shutil.which("rg"):
        print(f"{check(tree):,} files in {tree}")
    else:
        print("rg (ripgrep) is not installed here: there is nothing to be compared with, and no ratio")
    print("cpu ms (median), cass / rg -j1 = ratio\n")
    print(f"{'query':38}{'lines':>8} " + " ".join(f"{name[:6]:>6}" for name in PROGRAMS) + " ratio reach  memory")
    for query in QUERIES:
        print(show(query, measure(query, tree, given.runs)), flush=True)


if __name__ == "__main__":
    main()
