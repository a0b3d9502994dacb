"""How long a note takes to become a document, beside pandoc with the same source in the same run.

    python -m tests.benchmarks.export [--runs 5]

The note is in Chinese, about 20 pages, with 10 tables, 20 formulas, 10 function plots and 10 images. Each format is made
once with nothing loaded, then a few times more; the time runs from the request to the last byte of the file. Pandoc (Debian
package) has its start in each of its runs and leaves plots as text; its PDF is laid out by the same WeasyPrint. Also prints
the processor's time of both, which other work on the machine hardly changes, the memory of the process that made the
documents, and the time of a plot.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from host_bridge.launcher import Sidecar, launch
from tests.export.pictures.samples import png

TARGETS = {"html": 0.3, "docx": 1.0, "pdf": 3.0}
PLOT_TARGET = 0.03
TEXT = (
    "进程是资源分配的基本单位，线程是调度的基本单位。在现代操作系统中，调度器需要在**吞吐量**、*响应时间*与公平之间取得"
    "平衡；例如，Linux 的 CFS 使用红黑树维护可运行进程，并以虚拟运行时间决定下一个进程。"
)
FORMULAS = (
    r"\bar{T}=\frac{1}{n}\sum_{i=1}^{n}T_i",
    r"\int_0^\infty e^{-x^2}\,dx=\frac{\sqrt{\pi}}{2}",
)
PLOTS = (
    "sin(x)",
    "x^2",
    "tan(x)",
    "1/x",
    "exp(-x^2)",
    "floor(x)",
    "sqrt(x)",
    "x^3-4x",
    "cos(3x)",
    "log(x)",
)


def note() -> str:
    """Return the source of the note."""
    chapters = []
    for number, plot in enumerate(PLOTS, start=1):
        rows = "\n".join(f"| 算法{n} | 是 | {n * 3.7:.1f} | 备注 {n} |" for n in range(8))
        chapters.append(
            f"# 第{number}章 调度与死锁\n\n"
            + "\n\n".join(TEXT * 3 for _ in range(6))
            + f"\n\n行内公式 ${FORMULAS[0]}$。\n\n$$\n{FORMULAS[1]}\n$$\n\n"
            + f"| 算法 | 抢占 | 等待 | 备注 |\n|:--|:-:|--:|---|\n{rows}\n\n"
            + f"```python\ndef schedule_{number}(queue):\n    return max(queue)  # 选择\n```\n\n"
            + f"- 先来先服务\n- 短作业优先\n  1. 抢占\n  2. 非抢占\n\n```function-plot\n{plot}\n```\n\n"
            + f"![图 {number}](picture{number}.png)\n"
        )
    return "\n".join(chapters)


def export(sidecar: Sidecar, note_id: str, format_: str) -> tuple[float, int]:
    """Return the seconds from the request to the file, and its size."""
    started = time.perf_counter()
    body = {"source": {"type": "note", "note_id": note_id}, "format": format_}
    job_id = sidecar.post("/api/exports", json=body).check().json()["job_id"]
    while (job := sidecar.get(f"/api/exports/{job_id}").check().json())["status"] != "completed":
        assert job["status"] in ("queued", "running"), job
        time.sleep(0.005)
    size = len(sidecar.get(f"/api/exports/{job_id}/file").check().body)
    return time.perf_counter() - started, size


def pandoc(source: Path, format_: str) -> tuple[float, float]:
    """Return the seconds that pandoc takes, and those of the processor among them."""
    target = source.with_suffix(f".{format_}")
    command = ["pandoc", source.name, "-o", target.name, "--standalone"]
    if format_ == "html":
        command += ["--self-contained", "--mathml"]
    if format_ == "pdf":
        command += ["--mathml", f"--pdf-engine={Path(sys.executable).parent / 'weasyprint'}"]
    started, used = time.perf_counter(), children_seconds()
    subprocess.run(command, cwd=source.parent, check=True, capture_output=True, timeout=300)
    return time.perf_counter() - started, children_seconds() - used


def children_seconds() -> float:
    """Return the processor's time of all programs that this one ran to their end."""
    times = psutil.Process().cpu_times()
    return times.children_user + times.children_system


def worker_seconds(sidecar: Sidecar) -> float:
    """Return the processor's time of the processes that make documents."""
    children = psutil.Process(sidecar.pid).children(recursive=True)
    return sum(sum(child.cpu_times()[:2]) for child in children)


def repeat(runs: int, action: Callable[[], float]) -> float:
    """Return the median of a few runs."""
    return statistics.median(action() for _ in range(runs))


def middle(runs: int, action: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    """Return the medians of a few runs."""
    seconds, used = zip(*(action() for _ in range(runs)), strict=True)
    return statistics.median(seconds), statistics.median(used)


def worker_memory(sidecar: Sidecar) -> float:
    """Return the most resident MiB of a process that makes documents."""
    children = psutil.Process(sidecar.pid).children(recursive=True)
    return max((child.memory_info().rss for child in children), default=0) / 2**20


def measure(sidecar: Sidecar, vault: Path, runs: int) -> None:
    """Print a line for each format, and one for plots."""
    source = vault / "note.md"
    source.write_text(note(), encoding="utf-8")
    for number in range(1, 11):
        (vault / f"picture{number}.png").write_bytes(png(400, 200 + number))
    body = {"title": "操作系统", "content": note()}
    note_id = sidecar.post("/api/notes", json=body).check().json()["note_id"]
    has_pandoc = shutil.which("pandoc") is not None
    heads = (
        "first",
        "later",
        "target",
        "cpu",
        "size",
        "memory",
        "pandoc",
        "cpu",
        "ratio",
        "of cpu",
    )
    print(f"{'':6}" + "".join(f"{head:>{12 if head == 'size' else 8}}" for head in heads))
    for format_, target in TARGETS.items():
        first, size = export(sidecar, note_id, format_)

        def ours(kind: str = format_) -> tuple[float, float]:
            used = worker_seconds(sidecar)
            return export(sidecar, note_id, kind)[0], worker_seconds(sidecar) - used

        later, used = middle(runs, ours)
        other = ""
        if has_pandoc:
            theirs, theirs_used = middle(
                max(1, runs // 2),
                lambda kind=format_: pandoc(source, kind),  # type: ignore[misc]
            )
            other = f"{theirs:8.2f}{theirs_used:8.2f}{later / theirs:8.2f}{used / theirs_used:8.2f}"
        memory = worker_memory(sidecar)
        print(
            f"{format_:6}{first:8.2f}{later:8.2f}{target:8.2f}{used:8.2f}{size:12,}{memory:6.0f} M{other}"
        )

    def plots() -> float:
        started = time.perf_counter()
        # Another constant each time: nothing is remembered.
        for plot in PLOTS:
            body = {"source": f"{plot} + {started}"}
            assert sidecar.post("/api/plots/function", json=body).check().json()["result"]
        return (time.perf_counter() - started) / len(PLOTS)

    print(
        f"{'plot':6}{plots() * 1000:6.1f}ms{repeat(runs, plots) * 1000:6.1f}ms{PLOT_TARGET * 1000:6.0f}ms"
    )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Measure exports.")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="export-benchmark-") as folder:
        vault = Path(folder, "vault")
        vault.mkdir()
        with launch(data_dir=Path(folder, "data"), vault_path=vault) as sidecar:
            measure(sidecar, vault, options.runs)


if __name__ == "__main__":
    main()
