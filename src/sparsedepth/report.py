"""A report as one HTML file that opens from disk: pictures inside, nothing fetched, every text escaped."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from sparsedepth.atomic_files import write_atomically
from sparsedepth.extras import needed_for
from sparsedepth.vocabulary import InputError

with needed_for("a report", "plot"):
    from markdown_it import MarkdownIt

PNG = b"\x89PNG\r\n\x1a\n"
WEBP = b"RIFF", b"WEBP"
"""First bytes of a file, and those after its size."""


@dataclass(frozen=True)
class Html:
    """Text that is HTML already, so that it is escaped exactly once."""

    text: str


def heading(words: str) -> Html:
    return Html(f"<h2>{escape(words)}</h2>")


def paragraph(words: str) -> Html:
    return Html(f"<p>{escape(words)}</p>")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, ours: Collection[int] = ()) -> Html:
    """Format a table; numbers after the first column are right-aligned, the rows in ``ours`` highlighted."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join(
        f"<tr{' class=ours' if index in ours else ''}>"
        + "".join(
            f'<th scope="row">{escape(cell)}</th>' if column == 0 else f"<td>{escape(cell)}</td>"
            for column, cell in enumerate(row)
        )
        + "</tr>"
        for index, row in enumerate(rows)
    )
    return Html(f"<div class=wide><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>")


def pictures(*files: tuple[Path, str]) -> Html:
    """Show PNG and WebP files side by side where there is room, each with its caption."""
    figures = "".join(
        f'<figure><img alt="{escape(caption)}" src="{_as_data(path)}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for path, caption in files
    )
    return Html(f"<div class=pictures>{figures}</div>")


def markdown_page(path: Path) -> Html:
    """Render a page in Markdown with its pictures, its title one level down; links become plain text."""
    parser = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False}).enable("table")
    tokens = parser.parse(re.sub(r"<!--.*?-->", "", path.read_text(), flags=re.DOTALL))
    for token in (each for block in tokens for each in (block, *(block.children or ()))):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"
        elif token.type == "image":
            token.attrs["src"] = _as_data(path.parent / str(token.attrs["src"]))
        elif token.type == "link_open" and not str(token.attrs.get("href", "")).startswith("https://"):
            token.attrs.pop("href", None)
    options: Any = parser.options
    text = parser.renderer.render(tokens, options, {})
    return Html(text.replace("<table>", "<div class=wide><table>").replace("</table>", "</table></div>"))


def write_report(path: str | Path, title: str, *parts: Html) -> None:
    """Write the parts as one page; it appears whole or not at all."""
    given = {"title": escape(title), "body": "\n".join(part.text for part in parts)}
    page = re.sub(r"\{(title|body)\}", lambda found: given[found[1]], _PAGE)
    write_atomically(path, page.encode(errors="replace"))


def _as_data(path: Path) -> str:
    content = path.read_bytes()
    kind = "png" if content.startswith(PNG) else "webp" if (content[:4], content[8:12]) == WEBP else None
    if kind is None:
        raise InputError(f"{path} is neither a PNG nor a WebP file; a report holds no other pictures")
    return f"data:image/{kind};base64," + base64.b64encode(content).decode()


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; }
p { max-width: 46rem; }
.wide { overflow-x: auto; }
code { font-size: 0.9em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.9rem 0.3rem 0; border-bottom: 1px solid #8886; text-align: right; }
th, td { font-weight: normal; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { font-weight: 600; white-space: normal; vertical-align: bottom; }
.ours th, .ours td { font-weight: 600; background: #c81e5a22; }
.pictures { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; }
figure { margin: 0; flex: 1 1 30rem; max-width: 100%; }
figure:first-child:nth-last-child(3), figure:first-child:nth-last-child(3) ~ figure { flex-basis: 20rem; }
img { max-width: 100%; height: auto; background: #fff; }
figcaption { font-size: 0.9rem; opacity: 0.8; }
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""
