"""Check: whether everything that cass needs is there and right, and what to do where it is not."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from cass import jsonl, opening
from cass.amounts import many
from cass.check import disk, extensions, machine, provider, verdicts
from cass.check.finding import Finding, Level
from cass.errors import ConfigError
from cass.home import Home
from cass.program import out
from cass.rules import vain


def run(home: Home, cwd: Path, *, online: bool, as_json: bool, environ: Mapping[str, str] = os.environ) -> int:
    """Print the findings; return the exit status, 1 where one is an error."""
    found = [*disk.look(home, cwd), *provider.look(home, environ, online=online)]
    found += [*extensions.look(home, cwd, provider.settings(home, environ), environ), *machine.look(environ)]
    out(as_lines(found) if not as_json else jsonl.dump([_object(finding) for finding in found]).decode())
    return 1 if any(finding.level is Level.ERROR for finding in found) else 0


def _object(finding: Finding) -> dict[str, str]:
    return {"about": finding.about, "level": finding.level, "text": finding.text, "advice": finding.advice}


def as_lines(found: Sequence[Finding]) -> str:
    """One finding a line, what to do below it, and a summary."""
    lines = []
    for finding in found:
        lines.append(f"{finding.level:8} {finding.about:9} {finding.text}")
        lines += [f"{'':18} -> {finding.advice}"] if finding.advice else []
    errors, warnings = (sum(one.level is level for one in found) for level in (Level.ERROR, Level.WARNING))
    found_some = f"{many(errors, 'error')}, {many(warnings, 'warning')}"
    lines.append(found_some if errors or warnings else "everything is fine")
    return "\n".join(lines)


def explain(question: str, home: Home, cwd: Path, *, as_json: bool, environ: Mapping[str, str] = os.environ) -> None:
    """Print what would be decided about a call here. Raises ConfigError, UsageError, ToolError."""
    found = provider.settings(home, environ)
    if found is None:
        raise ConfigError("the configuration is wrong; see: cass check")
    rules = opening.of_project(found, home, cwd).rules
    explained = verdicts.explain(question, rules, home, cwd)
    if as_json:
        out(jsonl.dump(explained.as_json()).decode())
    else:
        out("\n".join([*explained.lines(), *vain(rules)]))
