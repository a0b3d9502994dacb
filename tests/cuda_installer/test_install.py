"""The transaction: what is installed works, and what fails changes nothing. Real uv, real environments."""

import random
import shutil
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from cuda_installer import installing, planning, state
from cuda_installer.children import Children
from cuda_installer.errors import InstallerError
from cuda_installer.probe import TENSOR, probe
from cuda_installer.settings import RuntimeSettings
from cuda_installer.state import STAGES, Environment, LastInstall
from tests.cuda_installer.packages import PYANNOTE, Wheelhouse, torch_files

Install = Callable[[], Environment]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runtime"


@pytest.fixture
def install(root: Path, settings: RuntimeSettings, children: Children) -> Install:
    return lambda: installing.install(root, settings, children, lambda *_: None)


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder, with its size and time of change."""
    found = [(path, path.lstat()) for path in folder.rglob("*")]
    return {
        str(path.relative_to(folder)): (status.st_size, status.st_mtime_ns)
        for path, status in found
    }


def test_installing_from_a_folder(
    root: Path, settings: RuntimeSettings, children: Children
) -> None:
    told: list[str] = []
    made = installing.install(root, settings, children, lambda stage, _: told.append(stage))
    begun = list(dict.fromkeys(told))
    assert begun == [stage for stage in STAGES if stage in begun]
    assert begun[0] == "preparing" and begun[-1] == "finishing" and "verifying" in begun
    assert (made.flavour, made.torch, made.cuda_available) == ("cpu", "2.13.0+cpu", False)
    assert state.read_current(root) == made
    last = state.read_last(root)
    assert last is not None and last.status == "done"
    assert installing.verify(root, settings, children).works


def test_a_second_installation_takes_the_place_of_the_first(
    root: Path, install: Install, house: Wheelhouse
) -> None:
    first = install()
    house.add("torch", "2.14.0+cpu", torch_files("2.14.0+cpu"))
    second = install()
    assert second.torch == "2.14.0+cpu" and second.lock != first.lock
    assert [entry.name for entry in (root / state.ENVIRONMENTS).iterdir()] == [second.name]


@pytest.mark.proves("local-models.runtime.transaction")
@pytest.mark.parametrize(
    ("reason", "files"),
    [
        ("verification_failed", {"torch/__init__.py": "raise ImportError('no library')"}),
        ("verification_failed", {"torch/__init__.py": "import os; os._exit(3)"}),
        ("wrong_flavour", torch_files(cuda="12.8")),
    ],
)
def test_a_failure_leaves_the_earlier_one_working(
    root: Path,
    install: Install,
    house: Wheelhouse,
    settings: RuntimeSettings,
    children: Children,
    reason: str,
    files: dict[str, str],
) -> None:
    first = install()
    house.add("torch", "2.14.0+cpu", files)
    with pytest.raises(InstallerError) as failure:
        install()
    assert failure.value.reason == reason
    assert state.read_current(root) == first
    assert installing.verify(root, settings, children).torch == "2.13.0+cpu"
    last = state.read_last(root)
    assert last is not None and (last.status, last.reason) == ("failed", reason)
    assert [entry.name for entry in (root / state.ENVIRONMENTS).iterdir()] == [first.name]


def test_packages_that_are_not_the_locked_ones_are_refused(
    root: Path, install: Install, house: Wheelhouse
) -> None:
    lock = house.locks / "cpu.txt"
    text = lock.read_text(encoding="utf-8")
    at = text.index("sha256:") + len("sha256:")
    lock.write_text(text[:at] + "0" * 64 + text[at + 64 :], encoding="utf-8")
    with pytest.raises(InstallerError) as failure:
        install()
    assert failure.value.reason == "packages_unavailable"
    assert state.read_current(root) is None
    assert list((root / state.ENVIRONMENTS).iterdir()) == []


def test_too_little_disk_space_is_noticed_first(
    root: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "free_bytes", lambda _: 1_000_000)
    with pytest.raises(InstallerError) as failure:
        install()
    assert failure.value.reason == "disk_full"
    assert not (root / state.ENVIRONMENTS).exists()
    last = state.read_last(root)
    assert last is not None and last.figures["free_bytes"] == 1_000_000
    assert last.figures["needed_bytes"] > 1_000_000_000


def test_a_disk_that_fills_up_on_the_way(
    root: Path, tmp_path: Path, settings: RuntimeSettings, children: Children
) -> None:
    # What uv says on a file system that is full; it ends with 2 as for most failures.
    uv = tmp_path / "uv"
    said = "error: Failed to write to the distribution cache\\n  Caused by: No space left on device"
    uv.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "uv 0" && exit\n'
        f'[ "$3" = venv ] && exit 0\nprintf "{said} (os error 28)\\n"\nexit 2\n',
        encoding="utf-8",
    )
    uv.chmod(0o755)
    named = settings.with_values({"uv": str(uv)})
    with pytest.raises(InstallerError) as failure:
        installing.install(root, named, children, lambda *_: None)
    assert failure.value.reason == "disk_full"


def test_what_killed_installations_left_goes(root: Path, install: Install) -> None:
    left = [root / "locks-1/special.txt", root / "pythons/archive-0.part/python"]
    for path in left:
        path.parent.mkdir(parents=True)
        path.touch()
    install()
    assert not any(path.parent.exists() for path in left)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("uv", "/nowhere/uv", "uv_missing"),
        ("uv", sys.executable, "uv_missing"),
        ("python", "/bin/true", "interpreter_unusable"),
        ("python_archive", __file__, "archive_invalid"),
        ("python_archive", "/nowhere/python.tar.gz", "archive_invalid"),
        ("wheelhouse", "/nowhere/wheels", "wheelhouse_missing"),
    ],
)
def test_what_is_named_and_cannot_be_used(
    root: Path, settings: RuntimeSettings, children: Children, name: str, value: str, reason: str
) -> None:
    with pytest.raises(InstallerError) as failure:
        installing.install(root, settings.with_values({name: value}), children, lambda *_: None)
    assert failure.value.reason == reason


def test_without_an_interpreter_and_offline(
    root: Path, settings: RuntimeSettings, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(root))
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    shipped = settings.with_values({"uv": str(Path(sys.executable).with_name("uv"))})
    with pytest.raises(InstallerError) as failure:
        installing.install(root, shipped, children, lambda *_: None)
    assert failure.value.reason == "interpreter_missing"


def test_an_interpreter_from_an_archive(
    root: Path, tmp_path: Path, settings: RuntimeSettings, children: Children
) -> None:
    program = tmp_path / "python3.11"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    archive = tmp_path / "python.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(program, "python/bin/python3.11")
    named = settings.with_values({"python_archive": str(archive)})
    installing.install(root, named, children, lambda *_: None)
    assert installing.verify(root, named, children).works
    assert len(list((root / "pythons").glob("archive-*/python/bin/python3.11"))) == 1


@pytest.mark.parametrize("kind", ["tar.gz", "tar.xz", "zip"])
@pytest.mark.parametrize("harm", ["cut", "changed"])
def test_a_damaged_archive_of_an_interpreter(
    root: Path,
    tmp_path: Path,
    settings: RuntimeSettings,
    children: Children,
    kind: str,
    harm: str,
) -> None:
    program = tmp_path / "python3.11"
    program.write_bytes(random.Random(1).randbytes(300_000))
    archive = tmp_path / f"python.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_LZMA) as zipped:
            zipped.write(program, "python/bin/python3.11")
    else:
        mode: Literal["w:gz", "w:xz"] = "w:gz" if kind == "tar.gz" else "w:xz"
        with tarfile.open(archive, mode) as packed:
            packed.add(program, "python/bin/python3.11")
    content = bytearray(archive.read_bytes())
    if harm == "cut":
        content = content[: len(content) // 2]
    else:
        content[1000:2000] = b"\xff" * 1000
    archive.write_bytes(content)
    named = settings.with_values({"python_archive": str(archive)})
    with pytest.raises(InstallerError) as failure:
        installing.install(root, named, children, lambda *_: None)
    assert failure.value.reason == "archive_invalid"
    assert not [path for path in (root / "pythons").rglob("*") if path.is_file()]


def test_files_that_are_gone_are_noticed(
    root: Path, install: Install, settings: RuntimeSettings, children: Children
) -> None:
    made = install()
    packages = next(made.folder(root).glob("lib/python*/site-packages"))
    shutil.rmtree(packages / "torch")
    assert (packages / "torch-2.13.0+cpu.dist-info").is_dir()
    result = installing.verify(root, settings, children)
    assert (result.works, result.failed_step, result.torch) == (False, "tensor", None)
    shutil.rmtree(made.folder(root))
    assert installing.verify(root, settings, children).failed_step == "start"


def test_an_interpreter_of_the_users_own_is_never_written_to(
    root: Path, tmp_path: Path, settings: RuntimeSettings, children: Children
) -> None:
    folder = tmp_path / "own"
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    for name, text in {**torch_files(), **PYANNOTE}.items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text, encoding="utf-8")
    own = settings.with_values({"interpreter": str(folder / "bin" / "python")})
    before = files_of(folder)
    assert installing.verify(root, own, children).works
    with pytest.raises(InstallerError) as failure:
        installing.install(root, own, children, lambda *_: None)
    assert failure.value.reason == "custom_interpreter"
    assert files_of(folder) == before


@pytest.mark.proves("local-models.runtime.cuda-available-true-only-real")
@pytest.mark.parametrize(
    ("on_cuda", "available"), [("1.0", True), ("1 / 0", False), ("2.0", False)]
)
def test_a_device_counts_only_if_it_computes(
    tmp_path: Path, children: Children, on_cuda: str, *, available: bool
) -> None:
    venv.create(tmp_path / "own", symlinks=True)
    packages = next((tmp_path / "own").glob("lib/python*/site-packages"))
    (packages / "torch").mkdir()
    for name, text in torch_files("2.13.0", "13.0", on_cuda).items():
        (packages / name).write_text(text, encoding="utf-8")
    result = probe(tmp_path / "own" / "bin" / "python", (TENSOR,), children)
    assert result.works, result
    assert (result.cuda, result.cuda_available) == ("13.0", available)


def test_only_an_answer_of_the_program_counts(tmp_path: Path, children: Children) -> None:
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexec sleep 600\n", encoding="utf-8")
    silent.chmod(0o755)
    result = probe(silent, (TENSOR,), children, timeout=0.2)
    assert (result.works, result.failed_step) == (False, "start")
    assert probe(Path("/bin/true"), (TENSOR,), children).failed_step == "start"


def test_removing_frees_the_disk_and_keeps_the_settings(
    root: Path, install: Install, settings: RuntimeSettings
) -> None:
    settings.save(root)
    install()
    assert installing.remove(root) > 0
    assert state.read_current(root) is None and state.read_last(root) is None
    assert sorted(entry.name for entry in root.iterdir()) == ["install.lock", "settings.json"]
    assert RuntimeSettings.stored(root) == settings
    assert installing.remove(root.with_name("never-made")) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="no shared locks there")
def test_readers_do_not_take_one_another_for_an_installation(root: Path) -> None:
    import fcntl

    with state.installation_lock(root):
        assert state.is_installing(root)
    state.write_last(root, LastInstall("installing", "downloading"))
    with (root / state.LOCK).open("r+") as another:
        fcntl.flock(another, fcntl.LOCK_SH)
        last = state.read_last(root)
    assert last is not None and last.status == "interrupted"


def test_one_installation_at_a_time(root: Path, install: Install) -> None:
    with state.installation_lock(root), pytest.raises(InstallerError) as failure:
        install()
    assert failure.value.reason == "busy"
