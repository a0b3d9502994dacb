"""The rules. Each takes the source and returns the imports that break it."""

import sys
from collections.abc import Iterator

from tests.structure.imports import Import, Source, lies_in

HTTP_FRAMEWORKS = ("fastapi", "starlette")
HTTP_PARTS = ("sidecar.app", "sidecar.kernel.http")
# Parts of the server that are no domain: they may know every domain, or none.
NO_DOMAINS = ("kernel", "demo")
OPEN_TO_OTHER_DOMAINS = ("service", "schemas")
# All that is loaded before the server is ready; any more is felt at every start.
LOADED_BEFORE_READY = (
    "fastapi",
    "starlette",
    "uvicorn",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
)
ENTRY_POINTS = ("sidecar.__main__", "sidecar.cli", "sidecar.app")
OURS = ("sidecar", "host_bridge", "cuda_installer", "build_specs", "smoke", "tests")


def http_outside_the_routers(source: Source) -> Iterator[Import]:
    """The HTTP framework belongs to routers, the application, and the kernel's room for it."""
    for found in source.imports:
        is_router = found.importer.startswith("sidecar.") and found.importer.endswith(".router")
        if (
            found.within(*HTTP_FRAMEWORKS)
            and not is_router
            and not lies_in(found.importer, *HTTP_PARTS)
        ):
            yield found


def domains_in_the_kernel(source: Source) -> Iterator[Import]:
    """The kernel knows itself, the version, and the messages that it exchanges with the host."""
    for found in source.imports:
        if not found.importer.startswith("sidecar.kernel.") or not found.within(*OURS):
            continue
        if not found.within("sidecar.kernel", "sidecar.version", "host_bridge.protocol"):
            yield found


def inner_parts_of_other_domains(source: Source) -> Iterator[Import]:
    """A domain is used through its service and its wire models: never its store, router or adapters."""
    for found in source.imports:
        importer, target = _domain(source, found.importer), _domain(source, found.target)
        if importer is None or target is None or importer == target:
            continue
        if found.target.split(".")[2:3] not in [[part] for part in OPEN_TO_OTHER_DOMAINS]:
            yield found


def foreign_parts_in_host_and_installer(source: Source) -> Iterator[Import]:
    """The host's side and the installer need the standard library and themselves: any program can take them in."""
    for found in source.imports:
        package = found.importer.split(".")[0]
        if package in ("host_bridge", "cuda_installer") and not found.within(
            package, *sys.stdlib_module_names
        ):
            yield found


def host_side_in_the_server(source: Source) -> Iterator[Import]:
    """The server shares the protocol with the host; only the demo plays the host."""
    for found in source.imports:
        in_server = found.importer.startswith("sidecar.") and not found.importer.startswith(
            "sidecar.demo"
        )
        if in_server and found.within("host_bridge") and not found.within("host_bridge.protocol"):
            yield found


def heavy_packages_at_start(source: Source) -> Iterator[Import]:
    """What the entry points load, directly or through others, loads nothing that would delay the ready line."""
    allowed = (*LOADED_BEFORE_READY, *OURS, *sys.stdlib_module_names)
    early = source.loaded_by(*ENTRY_POINTS)
    for found in source.imports:
        if found.at_start and found.importer in early and not found.within(*allowed):
            yield found


RULES = (
    http_outside_the_routers,
    domains_in_the_kernel,
    inner_parts_of_other_domains,
    foreign_parts_in_host_and_installer,
    host_side_in_the_server,
    heavy_packages_at_start,
)


def _domain(source: Source, module: str) -> str | None:
    parts = module.split(".")
    if parts[0] != "sidecar" or len(parts) < 2 or parts[1] in NO_DOMAINS:
        return None
    # A module that lies beside the domains, such as sidecar.app, has nothing below it.
    is_package = any(name.startswith(f"sidecar.{parts[1]}.") for name in source.modules)
    return parts[1] if is_package else None
