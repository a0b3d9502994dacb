"""The styles of pages."""

from typing import Final

from sidecar.export.colours.themes import Colours

SANS: Final = (
    '"Noto Sans SC", "Noto Sans CJK SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei", '
    '"Hiragino Sans GB", "WenQuanYi Micro Hei", "Noto Sans", "DejaVu Sans", sans-serif'
)
MONOSPACE: Final = (
    '"DejaVu Sans Mono", "Noto Sans Mono", Menlo, Consolas, "Liberation Mono", "Noto Sans Mono CJK SC", '
    '"Noto Sans SC", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "WenQuanYi Micro Hei", monospace'
)

_STYLES: Final = """\
@page {{ size: {page_size}; margin: 20mm 18mm 22mm; background: {page};
  @top-right {{ content: string(title); font: 8pt {sans}; color: {muted}; white-space: nowrap;
    overflow: hidden; text-overflow: ellipsis; max-width: 100%; }}
  @bottom-center {{ content: counter(page) " / " counter(pages); font: 8pt {sans}; color: {muted}; }} }}
@page :first {{ @top-right {{ content: none; }} }}
html {{ color: {text}; font: 10.5pt/1.65 {sans}; }}
body {{ margin: 0; overflow-wrap: anywhere; }}
h1, h2, h3, h4, h5, h6 {{ line-height: 1.35; margin: 1.5em 0 .5em; break-after: avoid; }}
h1 {{ font-size: 20pt; string-set: title content(); }} h2 {{ font-size: 15.5pt; }} h3 {{ font-size: 13pt; }}
h4, h5, h6 {{ font-size: 10.5pt; }} h6 {{ color: {muted}; }}
main > :first-child {{ margin-top: 0; }}
p, ul, ol, blockquote, pre, .table, .metadata, .drawn {{ margin: 0 0 .8em; }}
p, li {{ orphans: 2; widows: 2; }}
li > p {{ margin: 0 0 .4em; }} li > ul, li > ol {{ margin: .2em 0; }}
ul, ol {{ padding-left: 1.8em; }}
li.task > p:first-of-type {{ display: inline; }}
li.task {{ list-style: none; margin-left: -1.4em; }} .box {{ font-family: "DejaVu Sans", {sans}; margin-right: .35em; }}
a {{ color: {accent}; text-decoration: underline; }}
img, svg {{ max-width: 100%; }} img {{ max-height: 220mm; }}
hr {{ border: 0; border-top: .5pt solid {border}; margin: 1.5em 0; }}
blockquote {{ padding: .1em .9em; border-left: 2.5pt solid {border}; color: {muted}; }}
blockquote > :last-child {{ margin-bottom: 0; }}
blockquote blockquote blockquote blockquote blockquote blockquote {{ padding-left: 3pt; border-left-width: .5pt; }}
li li li li li li li li > ul, li li li li li li li li > ol {{ padding-left: 8pt; }}
.callout {{ color: {text}; background: {surface}; border-left-color: {accent}; padding: .6em .9em; }}
.callout > :first-child {{ color: {accent}; margin-bottom: .3em; }}
code {{ font-family: {monospace}; font-size: .88em; color: {code}; }}
:not(pre) > code {{ background: {ground}; border-radius: 2pt; padding: 0 .25em; }}
pre {{ background: {ground}; border: .5pt solid {border}; border-radius: 3pt; padding: .6em .8em; line-height: 1.45;
  tab-size: 4; box-decoration-break: clone; }}
pre > code {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
.drawn {{ text-align: center; break-inside: avoid; }}
table {{ border-collapse: collapse; max-width: 100%; }}
thead {{ display: table-header-group; }}
th, td {{ border: .5pt solid {border}; padding: .3em .55em; text-align: left; vertical-align: top;
  overflow-wrap: anywhere; }}
.narrow th, .narrow td {{ min-width: 3.2em; }}
th {{ background: {surface}; }}
.wide {{ font-size: 8.5pt; }} .wider {{ font-size: 6.5pt; }} .widest {{ font-size: 4.5pt; }}
.wider th, .wider td, .widest th, .widest td {{ padding: .15em .2em; }}
.center {{ text-align: center; }} .right {{ text-align: right; }}
.metadata {{ color: {muted}; font-size: .9em; }} .metadata dt {{ float: left; clear: left; margin-right: .8em; }}
.metadata dd {{ margin: 0 0 0 6em; }}
.no-picture {{ color: {muted}; border: .5pt dashed {border}; border-radius: 2pt; padding: 0 .3em; }}
.footnotes {{ margin-top: 2em; padding-top: .8em; border-top: .5pt solid {border}; font-size: .88em; }}
.footnote {{ font-size: .72em; vertical-align: super; line-height: 0; text-decoration: none; }}
.back {{ text-decoration: none; font-family: "DejaVu Sans", {sans}; }}
"""


def page_styles(colours: Colours, page_size: str) -> str:
    """Return the rules for everything but highlighted code."""
    return _STYLES.format(
        page=colours.page,
        surface=colours.surface,
        text=colours.text,
        muted=colours.muted,
        code=colours.code_text,
        ground=colours.code_background,
        border=colours.border,
        accent=colours.accent,
        sans=SANS,
        monospace=MONOSPACE,
        page_size=page_size,
    )
