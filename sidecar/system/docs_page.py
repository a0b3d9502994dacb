"""The API as one HTML page: no script, nothing from the network."""

from html import escape
from typing import Any

_STYLE = """
body { font: 15px/1.5 system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif;
  margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1f2328; background: #fff; }
code, pre { font-family: ui-monospace, Consolas, monospace; font-size: 13px; }
details { border: 1px solid #d0d7de; border-radius: 6px; margin: .4rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; } .verb { display: inline-block; width: 4.5rem; font-weight: 600; }
pre { white-space: pre-wrap; background: #f6f8fa; padding: .6rem; border-radius: 6px; }
@media (prefers-color-scheme: dark) { body { background: #0d1117; color: #e6edf3; }
  pre { background: #161b22; } details { border-color: #30363d; } a { color: #58a6ff; } }
"""


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>"
    )


def home_page() -> str:
    """Return the page at the server's root."""
    return _page(
        "NotesAgent Sidecar",
        "<h1>NotesAgent Sidecar</h1><p>The server is running. "
        '<a href="/docs">The API</a> · <a href="/openapi.json">OpenAPI document</a></p>',
    )


def docs_page(document: dict[str, Any]) -> str:
    """Return every operation of an OpenAPI document, with its bodies and responses."""
    parts = [f"<h1>{escape(document['info']['title'])} {escape(document['info']['version'])}</h1>"]
    for path, item in document["paths"].items():
        for method, operation in item.items():
            parts.append(_operation(path, method, operation))
    parts.append("<h2>Models</h2>")
    parts += [_schema(name, schema) for name, schema in document["components"]["schemas"].items()]
    return _page("NotesAgent Sidecar API", "".join(parts))


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    heading = (
        f"<span class=verb>{method.upper()}</span><code>{escape(path)}</code> "
        f"{escape(operation.get('summary', ''))}"
    )
    lines = [
        f"<details><summary>{heading}</summary>",
        f"<p>{escape(operation.get('description', ''))}</p>",
    ]
    for parameter in operation.get("parameters", []):
        where = escape(f"{parameter['name']} ({parameter['in']})")
        lines.append(f"<p><code>{where}</code> {escape(parameter.get('description', ''))}</p>")
    if "requestBody" in operation:
        lines.append(f"<p>Body: {_content(operation['requestBody'])}</p>")
    for status, response in operation["responses"].items():
        description = escape(response.get("description", "")).replace("\n", "<br>")
        lines.append(f"<p><strong>{status}</strong> {_content(response)} {description}</p>")
    lines.append("</details>")
    return "".join(lines)


def _content(holder: dict[str, Any]) -> str:
    shown = []
    for media_type, content in holder.get("content", {}).items():
        name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        link = f' <a href="#{escape(name)}">{escape(name)}</a>' if name else ""
        shown.append(f"<code>{escape(media_type)}</code>{link}")
    return ", ".join(shown)


def _schema(name: str, schema: dict[str, Any]) -> str:
    rows = []
    for field, shape in schema.get("properties", {}).items():
        kind = shape.get("type") or shape.get("$ref", "").rpartition("/")[2] or "any of several"
        rows.append(f"{field}: {kind}  {shape.get('description', '')}")
    listed = escape("\n".join(rows))
    return (
        f'<details id="{escape(name)}"><summary><code>{escape(name)}</code> '
        f"{escape(schema.get('description', ''))}</summary><pre>{listed}</pre></details>"
    )
