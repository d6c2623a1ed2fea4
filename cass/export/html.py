"""The page of a chat: one HTML file that needs nothing else, no script to be read, light or dark, and prints whole."""

import html
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

from cass import amounts
from cass.blocks import Block, Call, Moved
from cass.callers import sent
from cass.export import document
from cass.headline import as_json, headline, pictured
from cass.markdown import parser
from cass.records import Approval, Assistant, Attachment, Compaction, Fact, Notice, TurnEnd, User
from cass.visible import safe, safe_line

_CODE_LIGHT, _CODE_DARK = HtmlFormatter(nowrap=True, style="default"), HtmlFormatter(nowrap=True, style="github-dark")
_MARKS = {"ok": "●", "failed": "✗", "denied": "✗", "no result": "○"}

_STYLE = """\
:root { color-scheme: light dark; --ink: #1f2328; --paper: #ffffff; --dim: #59636e; --line: #d1d9e0; --soft: #f6f8fa;
  --good: #1a7f37; --bad: #c0262d; --added: #dafbe1; --gone: #ffebe9; --mark: #0969da }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --dim: #9198a1; --line: #3d444d;
  --soft: #161b22; --good: #3fb950; --bad: #ff7b72; --added: #12361f; --gone: #451a1e; --mark: #58a6ff } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.5rem; line-height: 1.25 } h2 { font-size: 1.25rem } h3 { font-size: 1.1rem }
header dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; color: var(--dim);
  font-size: .875rem } header dd { margin: 0 }
article { margin: 1.25rem 0 } article > :first-child { margin-top: 0 } article > :last-child { margin-bottom: 0 }
.user { border-left: 3px solid var(--mark); padding: .25rem 0 .25rem 1rem; font-weight: 600; white-space: pre-wrap }
.said, time { color: var(--dim); font-size: .875rem } .user .said { font-weight: 400 }
.user img { display: block; max-width: 100%; height: auto; margin: .25rem 0 }
.ended { color: var(--bad); white-space: pre-wrap }
pre, code { font: .875rem/1.5 ui-monospace, monospace }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .75rem; margin: .5rem 0;
  white-space: pre-wrap; tab-size: 8 }
:not(pre) > code { background: var(--soft); border-radius: 4px; padding: .1em .3em }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; padding: 0 .75rem }
summary { cursor: pointer; padding: .35rem 0; font: .875rem/1.5 ui-monospace, monospace }
summary b { font-weight: 700 } .ok > summary i { color: var(--good) } .failed > summary i, .denied > summary i {
  color: var(--bad) } summary i { font-style: normal }
table { border-collapse: collapse; margin: .5rem 0 } th, td { border: 1px solid var(--line); padding: .25rem .6rem;
  text-align: left; vertical-align: top }
.diff { width: 100%; font: .875rem/1.5 ui-monospace, monospace; border: 1px solid var(--line) }
.diff td { border: 0; padding: 0 .5rem; white-space: pre-wrap; tab-size: 8 }
.diff td:first-child { color: var(--dim); text-align: right; width: 1%; white-space: nowrap; user-select: none }
.diff td:nth-child(2) { width: 1%; padding: 0 } .diff .add { background: var(--added) } .diff .del {
  background: var(--gone) }
blockquote { border-left: 3px solid var(--line); margin: .5rem 0; padding-left: 1rem; color: var(--dim) }
a { color: var(--mark) }
@media print { body { max-width: none; font-size: 11pt } details { break-inside: auto }
  details::details-content { content-visibility: visible; display: block; height: auto } }
"""


def _highlighted(code: str, language: str, _: str) -> str:
    try:
        lexer = get_lexer_by_name(language or "text", stripnl=False)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, _CODE_LIGHT))


class _Renderer(RendererHTML):
    """A page must not fetch anything: a picture is shown as the link that it is."""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        address = html.escape(str(token.attrGet("src") or ""))
        return f'<a href="{address}" rel="noreferrer">{html.escape(token.content) or address}</a>'


_PARSER = parser(_Renderer, highlight=_highlighted)


def page(records: Sequence[Fact], images: Mapping[str, str] = MappingProxyType({})) -> str:
    """The whole chat. `images`: those that the page is to hold, as ``data:`` addresses, by their hashes."""
    title = html.escape(document.title(records))
    rows = [(name, f"<dd>{html.escape(value)}</dd>") for name, value in document.facts(document.meta_of(records))]
    facts = "".join(f"<dt>{name}</dt>{value}" for name, value in rows)
    body = "\n".join(part for block in document.blocks(records) if (part := _part(block, images)))
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="cass">
<title>{title}</title>
<style>
{_STYLE}{_code_styles()}</style>
</head>
<body>
<header><h1>{title}</h1><dl>{facts}</dl></header>
<main>
{body}
</main>
</body>
</html>
"""


def _part(block: Block, images: Mapping[str, str]) -> str:
    match block:
        case User():
            way = html.escape(sent(block.origin))
            said = f'<div class="said">{way}</div>' if way else ""
            shown = "".join(_image(one, images.get(one.sha256)) for one in block.attachments)
            return f'<article class="user">{_text(block.content.strip(chr(10)))}{shown}{said}</article>'
        case Assistant():
            return _answer(block)
        case Call():
            return _call(block)
        case Approval():
            return _said(document.decision(block))
        case Compaction(summary=""):
            return _said("What stands above was cleared from the model's context.")
        case Compaction():
            inside = _markdown(block.summary)
            return f"<details><summary>what stands above was replaced by a summary</summary>{inside}</details>"
        case TurnEnd():
            return _end(block)
        case Moved():
            return _said(f"The workspace is now {safe_line(block.cwd)}")
        case Notice():
            return _said(safe(block.text))
    return ""


def _image(image: Attachment, address: str | None) -> str:
    drawn = f'<img src="{html.escape(address)}" alt="">' if address else ""
    return f'<div class="said">{html.escape(pictured(image))}</div>{drawn}'


def _answer(message: Assistant) -> str:
    thought = f"<details><summary>reasoning</summary><pre>{_text(message.reasoning)}</pre></details>"
    text = f'<article class="assistant">{_markdown(message.content)}</article>'
    return (thought if message.reasoning else "") + (text if message.content.strip() else "")


def _call(call: Call) -> str:
    state = document.state(call)
    first, *more = headline(call.call).split("\n")
    head = f"<i>{_MARKS[state]}</i> <b>{_text(safe_line(call.call.name))}</b> {html.escape(first)}"
    parts = [f"<pre>{html.escape(chr(10).join([first, *more]))}</pre>"] if more else []
    if call.approval is not None:
        parts.append(_said(document.decision(call.approval)))
    if call.result is not None and call.result.diff:
        parts.append(_diff(call.result.diff))
    else:
        arguments = call.call.arguments if call.call.arguments_raw is None else call.call.arguments_raw
        inside = f"<pre>{_text(as_json(arguments, 2))}</pre>"
        parts.append(f"<details><summary>arguments</summary>{inside}</details>")
    if call.result is not None and call.result.content.strip():
        parts.append(f"<pre>{_text(call.result.content.strip(chr(10)))}</pre>")
    kind = state.replace(" ", "-")
    return f'<details class="call {kind}"><summary>{head} · {state}</summary>{"".join(parts)}</details>'


def _diff(diff: str) -> str:
    rows = []
    for mark, number, text in document.diff_lines(diff):
        kind = {"+": ' class="add"', "-": ' class="del"'}.get(mark, "")
        rows.append(f"<tr{kind}><td>{number}</td><td>{html.escape(mark)}</td><td>{html.escape(text)}</td></tr>")
    return f'<table class="diff">{"".join(rows)}</table>'


def _end(end: TurnEnd) -> str:
    said = f'<p class="ended">{html.escape(ended)}</p>' if (ended := document.ending(end)) else ""
    if end.usage is None:
        return said
    used = [f"{amounts.tokens(end.usage.input)} tokens in", f"{amounts.tokens(end.usage.output)} out"]
    used += [amounts.money(end.usage.cost)] if end.usage.cost is not None else []
    return said + _said(" · ".join(used))


def _said(text: str) -> str:
    return f'<p class="said">{html.escape(text)}</p>'


def _text(text: str | None) -> str:
    return html.escape(safe(text or ""))


def _markdown(text: str) -> str:
    return str(_PARSER.render(safe(text)))


def _code_styles() -> str:
    light, dark = (form.get_style_defs("pre code") for form in (_CODE_LIGHT, _CODE_DARK))
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
