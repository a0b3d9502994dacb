"""The product's operations, as its OpenAPI document tells of them, and its kinds of job."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from host_bridge.protocol import SessionSettings
from sidecar.app import build_api
from sidecar.kernel.settings import resolve_settings
from sidecar.services import build_services

JSON_TYPE: Final = "application/json"
STREAM_TYPE: Final = "text/event-stream"
METHODS: Final = ("get", "post", "put", "patch", "delete")

Place = tuple[str | int, ...]

_services = build_services(resolve_settings(SessionSettings(), data_dir=Path("unused")))
_api = build_api(_services, lambda: None)
DOCUMENT: Final[dict[str, Any]] = _api.openapi()
KINDS: Final = _services.jobs.kinds
ROUTE_METHODS: Final[dict[str, set[str]]] = {
    **{
        path: {method.upper() for method in METHODS if method in item}
        for path, item in DOCUMENT["paths"].items()
    },
    **{page: {"GET"} for page in ("/", "/docs", "/openapi.json")},
}
"""Path → its methods, pages that the document leaves out included."""


def resolve(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Follow references until there is none."""
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return dict(schema)


def variants(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The schemas that a value may have to fit: one, or each member of a union."""
    schema = resolve(schema)
    members = [*schema.get("anyOf", []), *schema.get("oneOf", [])]
    if not members:
        yield schema
    for member in members:
        yield from variants(member)


def allows_null(schema: Mapping[str, Any]) -> bool:
    """Whether null fits."""
    return any(variant.get("type") == "null" for variant in variants(schema))


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    spec: dict[str, Any] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def host_only(self) -> bool:
        """Whether it needs the host token."""
        return self.spec.get("security") == [{"host": []}]

    @property
    def is_open(self) -> bool:
        """Whether it needs no token."""
        return "security" not in self.spec

    def parameters(self, place: str) -> list[dict[str, Any]]:
        """Its parameters in `path`, `query` or `header`."""
        return [entry for entry in self.spec.get("parameters", []) if entry["in"] == place]

    @property
    def id_parameters(self) -> list[str]:
        """The path parameters that name something by its id."""
        return [p["name"] for p in self.parameters("path") if p["name"].endswith("_id")]

    @property
    def queries(self) -> list[str]:
        """The names of its query parameters."""
        return [entry["name"] for entry in self.parameters("query")]

    @property
    def body_types(self) -> list[str]:
        """The media types of its request body."""
        return list(self.spec.get("requestBody", {}).get("content", {}))

    @property
    def json_schema(self) -> dict[str, Any] | None:
        """The schema of its JSON request body."""
        content = self.spec.get("requestBody", {}).get("content", {})
        return resolve(content[JSON_TYPE]["schema"]) if JSON_TYPE in content else None

    def codes(self, status: int) -> set[str]:
        """The error codes that the document names for a status."""
        text = self.spec["responses"].get(str(status), {}).get("description", "")
        return {line.split("`")[1] for line in text.split("\n") if line.startswith("`")}

    def answer_schema(self, status: str) -> dict[str, Any]:
        """The schema of its JSON answer, {} if it has none."""
        content = self.spec["responses"].get(status, {}).get("content", {})
        return resolve(content.get(JSON_TYPE, {}).get("schema", {}))

    @property
    def is_list(self) -> bool:
        """Whether it answers with a page of an ordinary list."""
        return self.method == "GET" and {"items", "page"} <= set(
            self.answer_schema("200").get("properties", {})
        )

    @property
    def is_stream(self) -> bool:
        """Whether it answers with the events of a resource."""
        answer = self.spec["responses"].get("200", {})
        return self.method == "GET" and STREAM_TYPE in answer.get("content", {})

    def address(self, values: Mapping[str, str] | None = None) -> str:
        """Its path with the parameters filled in; those that *values* lacks get a name that nothing has."""
        path = self.path
        for parameter in self.parameters("path"):
            name = parameter["name"]
            value = (values or {}).get(name, "1" if _is_integer(parameter) else "unknown_1")
            path = path.replace("{" + name + "}", quote(value, safe=""))
        return path


def _is_integer(parameter: Mapping[str, Any]) -> bool:
    return bool(resolve(parameter["schema"]).get("type") == "integer")


OPERATIONS: Final[list[Operation]] = [
    Operation(method.upper(), path, item[method])
    for path, item in DOCUMENT["paths"].items()
    for method in METHODS
    if method in item
]
BY_NAME: Final = {str(operation): operation for operation in OPERATIONS}
LISTS: Final = [operation for operation in OPERATIONS if operation.is_list]
STREAMS: Final = [operation for operation in OPERATIONS if operation.is_stream]
WITH_JSON: Final = [operation for operation in OPERATIONS if operation.json_schema is not None]


def schemas_of_properties() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every property of every model: the model's name, the property's, and its schema."""
    for model, schema in DOCUMENT["components"]["schemas"].items():
        for name, property_schema in schema.get("properties", {}).items():
            yield model, name, property_schema


def text_fields(schema: Mapping[str, Any], value: Any, place: Place = ()) -> Iterator[Place]:
    """Where *value* has, or could have, a text: every such property of the schemas that it fits."""
    for variant in variants(schema):
        if variant.get("type") == "string" and "const" not in variant and "enum" not in variant:
            yield place
        elif isinstance(value, dict) and _fits(variant, value):
            for name, property_schema in variant.get("properties", {}).items():
                yield from text_fields(property_schema, value.get(name), (*place, name))
        elif isinstance(value, list) and "items" in variant:
            for index, item in enumerate(value):
                yield from text_fields(variant["items"], item, (*place, index))


def _fits(schema: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Whether a schema's constants are those of *value*; enough to tell the members of a union apart."""
    return all(
        value.get(name) == found["const"]
        for name, found in schema.get("properties", {}).items()
        if "const" in found
    )
