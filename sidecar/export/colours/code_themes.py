"""The colours of marked code."""

from pygments.style import Style
from pygments.styles import get_style_by_name
from pygments.token import (
    Comment,
    Error,
    Generic,
    Keyword,
    Literal,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
)

from sidecar.export.colours.themes import CodeTheme


class _GithubLight(Style):
    """Dark text on near white, in the colours that readers of code know from the web."""

    name = "github-light"
    background_color = "#f6f8fa"
    styles = {  # noqa: RUF012 - read by the metaclass of styles
        Comment: "italic #59636e",
        Comment.Preproc: "noitalic #cf222e",
        Keyword: "#cf222e",
        Keyword.Constant: "#0550ae",
        Operator: "#0550ae",
        Operator.Word: "#cf222e",
        Punctuation: "#1f2328",
        Name: "#1f2328",
        Name.Attribute: "#0550ae",
        Name.Builtin: "#953800",
        Name.Class: "#953800",
        Name.Constant: "#0550ae",
        Name.Decorator: "#6639ba",
        Name.Exception: "#953800",
        Name.Function: "#6639ba",
        Name.Namespace: "#953800",
        Name.Tag: "#116329",
        Name.Variable: "#953800",
        Literal: "#0550ae",
        Number: "#0550ae",
        String: "#0a3069",
        String.Escape: "#0550ae",
        String.Regex: "#116329",
        Generic.Deleted: "bg:#ffebe9 #82071e",
        Generic.Inserted: "bg:#dafbe1 #116329",
        Generic.Heading: "bold #0550ae",
        Generic.Subheading: "bold #0550ae",
        Generic.Emph: "italic",
        Generic.Strong: "bold",
        Error: "#82071e",
    }


def style_of(theme: CodeTheme) -> type[Style]:
    """Return how each kind of token looks."""
    return _GithubLight if theme == "github-light" else get_style_by_name(theme)
