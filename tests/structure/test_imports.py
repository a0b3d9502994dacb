"""The product's imports keep to the rules, and each rule notices what breaks it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.structure import rules
from tests.structure.imports import Import, Source

Rule = Callable[[Source], Iterator[Import]]


@pytest.fixture(scope="module")
def product() -> Source:
    return Source("sidecar", "host_bridge", "cuda_installer")


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_the_product_keeps_the_rule(product: Source, rule: Rule) -> None:
    assert [str(found) for found in rule(product)] == []


def test_the_product_was_read(product: Source) -> None:
    assert {"sidecar.kernel.errors", "host_bridge.protocol"} <= product.modules
    assert any(found.target == "host_bridge.protocol" for found in product.imports)


BROKEN: list[tuple[Rule, str, str]] = [
    (
        rules.http_outside_the_routers,
        "sidecar/media/service.py",
        "from fastapi import HTTPException",
    ),
    (
        rules.http_outside_the_routers,
        "sidecar/media/service.py",
        "def f():\n    import starlette.responses",
    ),
    (rules.http_outside_the_routers, "host_bridge/launcher.py", "import fastapi"),
    (
        rules.domains_in_the_kernel,
        "sidecar/kernel/jobs/engine.py",
        "from sidecar.media import service",
    ),
    (rules.domains_in_the_kernel, "sidecar/kernel/jobs/engine.py", "import sidecar.app"),
    (
        rules.domains_in_the_kernel,
        "sidecar/kernel/jobs/engine.py",
        "from host_bridge.launcher import launch",
    ),
    (
        rules.inner_parts_of_other_domains,
        "sidecar/chat/service.py",
        "from sidecar.media import store",
    ),
    (
        rules.inner_parts_of_other_domains,
        "sidecar/chat/store.py",
        "from sidecar.media.store import Store",
    ),
    (rules.inner_parts_of_other_domains, "sidecar/chat/service.py", "import sidecar.media.router"),
    (
        rules.inner_parts_of_other_domains,
        "sidecar/chat/service.py",
        "from sidecar.media import Media",
    ),
    (rules.foreign_parts_in_host_and_installer, "host_bridge/launcher.py", "import httpx"),
    (rules.foreign_parts_in_host_and_installer, "cuda_installer/plan.py", "import sidecar.version"),
    (
        rules.host_side_in_the_server,
        "sidecar/media/service.py",
        "from host_bridge.launcher import launch",
    ),
    (rules.heavy_packages_at_start, "sidecar/app.py", "import numpy"),
    (
        rules.heavy_packages_at_start,
        "sidecar/media/__init__.py",
        "try:\n    import av\nexcept ImportError:\n    pass",
    ),
    (rules.heavy_packages_at_start, "sidecar/media/service.py", "class A:\n    import yaml"),
]
KEPT: list[tuple[str, str]] = [
    ("sidecar/media/router.py", "from fastapi import APIRouter"),
    ("sidecar/kernel/http/sse.py", "from starlette.responses import Response"),
    (
        "sidecar/kernel/jobs/engine.py",
        "import json\nfrom sidecar.kernel import errors\nfrom host_bridge import protocol",
    ),
    (
        "sidecar/chat/service.py",
        "from sidecar.media.service import Media\nfrom sidecar.media import schemas",
    ),
    ("sidecar/media/service.py", "from sidecar.media import store\ndef f():\n    import numpy"),
    (
        "sidecar/media/service.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy",
    ),
    ("sidecar/media/whisper.py", "import numpy"),
    ("sidecar/demo/walk.py", "from host_bridge.launcher import launch\nimport sidecar.media.store"),
    ("host_bridge/launcher.py", "import subprocess\nfrom host_bridge.protocol import new_token"),
]
SKELETON = {
    "sidecar/app.py": "from sidecar.media.service import Media\nfrom sidecar.chat import service",
    "sidecar/media/__init__.py": "",
    "sidecar/media/service.py": "class Media: ...",
    "sidecar/media/schemas.py": "",
    "sidecar/media/store.py": "class Store: ...",
    "sidecar/media/router.py": "",
    "sidecar/chat/service.py": "",
    "sidecar/kernel/errors.py": "",
    "host_bridge/protocol.py": "",
    "host_bridge/launcher.py": "",
}


def tree(root: Path, changed: str, text: str) -> Source:
    for name, content in {**SKELETON, changed: text}.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    return Source("sidecar", "host_bridge", "cuda_installer", root=root)


@pytest.mark.parametrize(("rule", "file", "text"), BROKEN)
def test_a_rule_notices_what_breaks_it(tmp_path: Path, rule: Rule, file: str, text: str) -> None:
    found = list(rule(tree(tmp_path, file, text)))
    assert [Path(file).with_suffix("").as_posix().removesuffix("/__init__")] == [
        entry.importer.replace(".", "/") for entry in found
    ]


@pytest.mark.parametrize(("file", "text"), KEPT)
def test_no_rule_minds_what_is_allowed(tmp_path: Path, file: str, text: str) -> None:
    source = tree(tmp_path, file, text)
    assert [str(found) for rule in rules.RULES for found in rule(source)] == []
