"""The import rule: every part imports only from the layers below it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = [
    {"types", "files"},
    {"functional", "distributed", "schedules", "specs", "figures", "layers", "noise", "storage"},
    {"networks", "latents"},
    {"mixture"},
    {"regularizers"},
    {"autoencoder"},
    {"base"},
    {"models"},
    {"checkpoints", "errors", "failures", "resuming", "tracking"},
    {"evaluation"},
    {"callbacks"},
    {"dashboard", "report", "study", "traversal"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
# Sideways parts, with all that they may import.
ALLOWED = {
    "metrics": {"metrics", "types", "functional"},
    "evaluation": {"evaluation", "types", "files", "base", "latents", "checkpoints", "metrics"},
    "callbacks": {
        "callbacks",
        "types",
        "files",
        "functional",
        "distributed",
        "base",
        "latents",
        "models",
        "regularizers",
        "metrics",
        "figures",
        "evaluation",
        "storage",
    },
    "report": {"report", "types", "files", "latents", "base", "checkpoints"},
    "__init__": set(LEVEL) | {"metrics"},
    "__main__": {"cli"},
}


def imports(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        assert not (isinstance(node, ast.ImportFrom) and node.level), f"{file} has a relative import"
    return names


def part(module: str) -> str | None:
    pieces = module.split(".")
    return pieces[1] if pieces[0] == "vaezoo" and len(pieces) > 1 and pieces[1] in {*LEVEL, *ALLOWED} else None


FILES = sorted((ROOT / "vaezoo").rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_vaezoo_imports_only_from_lower_layers(file: Path) -> None:
    own = file.relative_to(ROOT / "vaezoo").parts[0].removesuffix(".py")
    assert own in {*LEVEL, *ALLOWED}, f"{own} has no layer: add it to LAYERS"
    used = {name for name in map(part, imports(file)) if name} - {own}
    allowed = ALLOWED.get(own, {name for name, level in LEVEL.items() if level < LEVEL.get(own, 0)})
    assert used <= allowed, f"{own} must not import {used - allowed}"


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_only_the_cli_knows_datamodules(file: Path) -> None:
    if file.name != "cli.py":
        assert not any(name.split(".")[0] == "datamodules" for name in imports(file))


def test_functional_is_free_of_lightning() -> None:
    for name in ("types", "functional", "distributed", "schedules", "networks", "latents", "mixture", "specs"):
        assert not any(used.startswith("lightning") for used in imports(ROOT / "vaezoo" / f"{name}.py"))


def test_datamodules_import_types_and_files_alone() -> None:
    for file in (ROOT / "datamodules").rglob("*.py"):
        used = {name for name in imports(file) if name.split(".")[0] == "vaezoo"}
        assert all(name.startswith(("vaezoo.types", "vaezoo.files")) for name in used), f"{file} imports {used}"
