"""Reads every import of the product's source, without running it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def lies_in(module: str, *packages: str) -> bool:
    """Whether a module is one of *packages* or lies in one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module. `at_start` tells that importing the importer runs it: not in a function, not for types."""

    importer: str
    target: str
    line: int
    at_start: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"

    def within(self, *packages: str) -> bool:
        """Whether the target is one of `packages` or lies in one."""
        return lies_in(self.target, *packages)


class Source:
    """The modules of some packages in the folder `root`, and what they import; a package may be missing."""

    def __init__(self, *packages: str, root: Path = ROOT) -> None:
        files = {
            module_name(file, root): file
            for name in packages
            for file in (root / name).rglob("*.py")
        }
        self.modules = frozenset(files)
        self.imports = tuple(
            found for name, file in sorted(files.items()) for found in self._read(name, file)
        )

    def _read(self, importer: str, file: Path) -> Iterator[Import]:
        tree = ast.parse(file.read_text(encoding="utf-8"), filename=str(file))
        for node, at_start in _import_statements(tree, at_start=True):
            for target in self._targets(node):
                yield Import(importer, target, node.lineno, at_start)

    def _targets(self, node: ast.Import | ast.ImportFrom) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        assert node.level == 0, "relative imports are banned by lint"
        module = node.module or ""
        # `from sidecar.media import store` imports a module, `from sidecar.media.store import Store` a name of one.
        full = [f"{module}.{alias.name}" for alias in node.names]
        return sorted({name if name in self.modules else module for name in full})

    def loaded_by(self, *modules: str) -> set[str]:
        """Return the modules that importing `modules` loads, parent packages among them."""
        wanted = {name for module in modules for name in _with_parents(module)}
        loaded: set[str] = set()
        while wanted - loaded:
            loaded |= wanted
            targets = (
                found.target
                for found in self.imports
                if found.at_start and found.importer in loaded
            )
            wanted = {name for target in targets for name in _with_parents(target)} & self.modules
        return loaded & self.modules


def module_name(file: Path, root: Path) -> str:
    """Return the dotted name of `file`; a package's `__init__` has the package's."""
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _with_parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))]


def _import_statements(
    node: ast.AST, *, at_start: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, at_start
        elif isinstance(child, ast.If) and _asks_for_type_checking(child.test):
            yield from _import_statements(ast.Module(child.body, []), at_start=False)
            yield from _import_statements(ast.Module(child.orelse, []), at_start=at_start)
        else:
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _import_statements(child, at_start=at_start and not function)


def _asks_for_type_checking(test: ast.expr) -> bool:
    name = (
        test.attr
        if isinstance(test, ast.Attribute)
        else test.id
        if isinstance(test, ast.Name)
        else ""
    )
    return name == "TYPE_CHECKING"
