"""One HTML document out of sections, our own CSS and JavaScript, and data.

It loads nothing: its security policy allows no source but these very scripts, whose
hashes it names, so markup that came in with data could neither run nor fetch.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

# Read by HTML or JavaScript as more than a letter, or not allowed in UTF-8.
IN_SCRIPT = re.compile("[<>&\x7f-\x9f\u2028\u2029\ud800-\udfff]")
UNSEEN = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"},
    **dict.fromkeys([*range(0x7F, 0xA0), *range(0xD800, 0xE000)], 0xFFFD),
    # Marks that turn the direction of what follows, past the end of the data.
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)]),
}
STYLES = ("page.css",)
SCRIPTS = ("page.js",)


class Section(NamedTuple):
    """A part of a page; ``body`` is HTML, in which data is escaped already."""

    id: str
    heading: str
    body: str


def escape(text: object) -> str:
    """Data as HTML, fit for elements and quoted attributes.

    A control character becomes its picture (␛) or �: none may be in HTML.
    """
    return html.escape(str(text).translate(UNSEEN))


def isolated(text: object) -> str:
    """Data in the run of other text, which its direction must not reorder."""
    return f"<bdi>{escape(text)}</bdi>"


def document(
    title: str,
    sections: Sequence[Section],
    data: Mapping[str, Any] | None = None,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    lead: str = "",
) -> str:
    """The whole document, with links to its sections.

    Args:
      title: text, not HTML.
      data: JSON values by the id under which ``page.data(id)`` gives them to scripts.
      styles, scripts: more files of this package, in order behind the page's own.
      lead: HTML between the title and the links.
    """
    style = "\n".join(_read(name) for name in (*STYLES, *styles))
    codes = [_read(name) for name in (*SCRIPTS, *scripts)]
    links = "\n".join(
        f'<li><a href="#{escape(s.id)}">{escape(s.heading)}</a></li>' for s in sections
    )
    body = "\n".join(
        f'<section id="{escape(s.id)}" aria-labelledby="{escape(s.id)}-heading">\n'
        f'<h2 id="{escape(s.id)}-heading">{escape(s.heading)}</h2>\n{s.body}\n'
        "</section>"
        for s in sections
    )
    values = "\n".join(
        f'<script type="application/json" id="{escape(name)}">{script_json(value)}'
        "</script>"
        for name, value in (data or {}).items()
    )
    code = "\n".join(f"<script>{text}</script>" for text in codes)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(codes)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header>
<h1 dir="auto">{escape(title)}</h1>
{lead}
<nav aria-label="Sections"><ul>
{links}
</ul></nav>
<button type="button" id="theme" hidden></button>
</header>
<main id="main" tabindex="-1">
<noscript><p>Sorting and figures need JavaScript, of this file alone.</p></noscript>
{body}
</main>
{values}
{code}
</body>
</html>
"""


def script_json(value: Any) -> str:
    """A JSON text that stands in a script element as it is.

    Raises:
      ValueError: for a float that is not finite; unknown is None.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return IN_SCRIPT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _policy(codes: Sequence[str]) -> str:
    hashes = [
        "'sha256-"
        + base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        + "'"
        for code in codes
    ]
    return (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src {' '.join(hashes)}; base-uri 'none'; form-action 'none'"
    )
