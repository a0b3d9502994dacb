"""The one table of error codes: code, HTTP status and default message in both languages.

Codes are stable names that clients branch on, so a code is never reused for another situation. Those of the
gateway keep the lower-case spelling of the service they stand for.
"""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.codes import agents, extensions, media, models, output, platform
from sidecar.kernel.catalogue.entries import ErrorSpec

ERROR_GROUPS: Final[dict[str, dict[str, ErrorSpec]]] = {
    "protocol": platform.PROTOCOL,
    "host": platform.HOST,
    "jobs": platform.JOBS,
    "subsystems": platform.SUBSYSTEMS,
    "vault": platform.VAULT,
    "retrieval": platform.RETRIEVAL,
    "attachments": media.ATTACHMENTS,
    "transcription": media.TRANSCRIPTION,
    "local_models": media.LOCAL_MODELS,
    "providers": models.PROVIDERS,
    "models": models.MODELS,
    "chat": models.CHAT,
    "agent": agents.AGENT,
    "tools": agents.TOOLS,
    "assistant": agents.ASSISTANT,
    "resources": agents.RESOURCES,
    "gateway": agents.GATEWAY,
    "mcp": extensions.MCP,
    "plugins": extensions.PLUGINS,
    "export": output.EXPORT,
    "plots": output.PLOTS,
    "benchmarks": output.BENCHMARKS,
    "themes": output.THEMES,
}

ERRORS: Final[dict[str, ErrorSpec]] = {
    code: spec for group in ERROR_GROUPS.values() for code, spec in group.items()
}
