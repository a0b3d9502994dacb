"""The styles that an HTML document carries in itself."""

import re
from functools import lru_cache
from typing import Final

from pygments.formatters.html import HtmlFormatter
from pygments.token import Literal, Name

from sidecar.export.colours.code_themes import style_of
from sidecar.export.colours.themes import CodeTheme, Colours, readable

# Names that systems have, from the one that reads best; the generic family is the last resort.
SANS: Final = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, '
    '"PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", '
    '"Source Han Sans SC", "WenQuanYi Micro Hei", "Hiragino Sans", "Yu Gothic", "Noto Sans CJK JP", '
    '"Apple SD Gothic Neo", "Malgun Gothic", "Noto Sans CJK KR", sans-serif'
)
MONOSPACE: Final = (
    'ui-monospace, "SF Mono", SFMono-Regular, "Cascadia Mono", Consolas, Menlo, "DejaVu Sans Mono", '
    '"Noto Sans Mono", "PingFang SC", "Microsoft YaHei", "Noto Sans Mono CJK SC", "Noto Sans CJK SC", '
    "monospace"
)

_STYLES: Final = """\
:root {{ color-scheme: {scheme}; --page: {page}; --surface: {surface}; --text: {text}; --muted: {muted};
  --code: {code}; --border: {border}; --accent: {accent}; }}
* {{ box-sizing: border-box; }}
html {{ background: var(--page); color: var(--text); font: 16px/1.7 {sans}; -webkit-text-size-adjust: 100%; }}
body {{ margin: 0; }}
main {{ max-width: 48rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; overflow-wrap: break-word; }}
h1, h2, h3, h4, h5, h6 {{ line-height: 1.3; margin: 1.8em 0 .6em; text-wrap: balance; }}
h1 {{ font-size: 2rem; }} h2 {{ font-size: 1.5rem; }} h3 {{ font-size: 1.25rem; }}
h4, h5, h6 {{ font-size: 1rem; }} h6 {{ color: var(--muted); }}
main > :first-child {{ margin-top: 0; }}
p, ul, ol, blockquote, pre, .table, .metadata {{ margin: 0 0 1em; }}
li > p {{ margin: 0 0 .5em; }} li > ul, li > ol {{ margin: .25em 0; }}
ul, ol {{ padding-left: 1.75em; }}
li.task {{ list-style: none; margin-left: -1.5em; }}
li.task > p:first-of-type {{ display: inline; }}
li.task > input {{ margin: 0 .5em 0 0; accent-color: var(--accent); }}
a {{ color: var(--accent); text-underline-offset: .15em; }}
img {{ max-width: 100%; height: auto; }}
hr {{ border: 0; border-top: 1px solid var(--border); margin: 2em 0; }}
blockquote {{ padding: .1em 1em; border-left: .25em solid var(--border); color: var(--muted); }}
blockquote > :last-child {{ margin-bottom: 0; }}
.callout {{ color: var(--text); background: var(--surface); border-left-color: var(--accent); border-radius: .25em;
  padding: .7em 1em; }} .callout > :first-child {{ color: var(--accent); margin-bottom: .4em; }}
code {{ font-family: {monospace}; font-size: .9em; color: var(--code); }}
:not(pre) > code {{ background: var(--surface); border-radius: .25em; padding: .1em .3em; }}
pre {{ background: var(--surface); border: 1px solid var(--border); border-radius: .4em; padding: .8em 1em;
  overflow-x: auto; line-height: 1.5; tab-size: 4; }}
pre > code {{ white-space: pre; }}
.source {{ margin: 0 0 1em; }} .source > pre {{ margin: 0; }}
.drawn {{ margin: 0 0 1em; overflow-x: auto; text-align: center; }} p img {{ vertical-align: middle; }}
.formula > code {{ white-space: pre-wrap; }} svg.plot {{ max-width: 100%; height: auto; }}
.table {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }}
th, td {{ border: 1px solid var(--border); padding: .4em .75em; min-width: 4.5em; text-align: left; vertical-align: top; }}
th {{ background: var(--surface); }} .wide td, .wider td, .widest td {{ min-width: 6em; }}
.center {{ text-align: center; }} .right {{ text-align: right; }}
.metadata {{ display: grid; grid-template-columns: max-content 1fr; gap: .1em 1em; color: var(--muted);
  font-size: .9em; }}
.metadata dd {{ margin: 0; }}
.no-picture {{ color: var(--muted); border: 1px dashed var(--border); border-radius: .25em; padding: 0 .3em; }}
.footnotes {{ margin-top: 2.5em; padding-top: 1em; border-top: 1px solid var(--border); font-size: .9em; }}
.footnote {{ font-size: .75em; vertical-align: super; line-height: 0; }}
.back {{ text-decoration: none; }}
@page {{ size: {page_size}; margin: 20mm 18mm; }}
@media print {{
  html {{ font-size: 11pt; -webkit-print-color-adjust: exact; print-color-adjust: exact; }}
  main {{ max-width: none; padding: 0; }}
  h1, h2, h3, h4, h5, h6 {{ break-after: avoid; }}
  p, li {{ orphans: 3; widows: 3; }}
  img, tr {{ break-inside: avoid; }}
  thead {{ display: table-header-group; }}
  pre {{ overflow: visible; }} pre > code {{ white-space: pre-wrap; }}
  .table {{ overflow: visible; }} th, .table td {{ min-width: 0; overflow-wrap: anywhere; }}
}}
"""


_COLOUR: Final = re.compile(r"(?<![\w-])(color: )(#[0-9a-fA-F]{6}|#[0-9a-fA-F]{3})\b")
_BACKGROUND: Final = re.compile(r"background-color: [^;}]+;?")


def document_styles(colours: Colours, page_size: str) -> str:
    """Return the rules for everything but highlighted code."""
    return _STYLES.format(
        scheme="dark" if colours.is_dark else "light",
        page=colours.page,
        surface=colours.surface,
        text=colours.text,
        muted=colours.muted,
        code=colours.code_text,
        border=colours.border,
        accent=colours.accent,
        sans=SANS,
        monospace=MONOSPACE,
        page_size=page_size,
    )


def page_code_styles(theme: CodeTheme, colours: Colours) -> str:
    """Return the rules for marked code in a document: the hues of *theme* on the colours of the document."""
    background = colours.code_background

    def fitting(match: re.Match[str]) -> str:
        colour = match[2] if len(match[2]) == 7 else "#" + "".join(c * 2 for c in match[2][1:])
        return f"{match[1]}{readable(colour, background, colours.text)}"

    rules = [
        _COLOUR.sub(fitting, _BACKGROUND.sub("", rule))
        for rule in code_styles(theme).split("\n")[1:]
    ]
    return "\n".join([f"pre.highlight {{ background: {background}; }}", *rules])


@lru_cache
def code_styles(theme: CodeTheme) -> str:
    """Return the rules for code that :func:`sidecar.export.colours.code_highlighting.highlighted` marked."""
    style = style_of(theme)
    formatter = HtmlFormatter(style=style)
    plain = style.style_for_token(Name)["color"] or style.style_for_token(Literal)["color"]
    default = f"#{plain}" if plain else "inherit"
    rules = formatter.get_token_style_defs("pre.highlight")  # type: ignore[no-untyped-call]
    return "\n".join(
        [
            f"pre.highlight {{ background: {style.background_color}; }}",
            f"pre.highlight > code {{ color: {default}; }}",
            *rules,
        ]
    )
