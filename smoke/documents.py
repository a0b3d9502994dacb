"""Documents of every format from a Chinese text with a formula and a plot: what a frozen program may lack shows here."""

from host_bridge.launcher import Sidecar
from smoke.recording_to_document import wait_for_job
from smoke.report import require

TEXT = (
    "# 操作系统\n\n**进程**是资源分配的单位，*线程*是调度的单位：$v=\\frac{\\text{路程}}{\\text{时间}}$。\n\n"
    "```python\nprint('代码')\n```\n\n```function-plot\nsin(x)\n```\n"
)
BEGINNINGS = {"html": b"<!DOCTYPE html>", "pdf": b"%PDF-", "docx": b"PK\x03\x04"}


def make_documents(sidecar: Sidecar) -> str:
    """Make one document of each format and return their sizes."""
    sizes = []
    for format_, beginning in BEGINNINGS.items():
        source = {"type": "markdown", "markdown": TEXT}
        answer = sidecar.post("/api/exports", json={"source": source, "format": format_})
        path = f"/api/exports/{answer.check(202).json()['job_id']}"
        job = wait_for_job(sidecar, path)
        require(job["status"] == "completed", f"{format_}: {job['status']}: {job['error_code']}")
        require(not job["warnings"], f"{format_}: {job['warnings']}")
        body = sidecar.get(f"{path}/file").check(200).body
        require(body.startswith(beginning), f"{format_}: begins with {body[:20]!r}")
        # Characters without a font would have given a warning; the fonts that are embedded take their room.
        require(format_ != "pdf" or len(body) > 20_000, f"pdf: only {len(body)} bytes")
        sizes.append(f"{format_} {len(body):,}")
    return ", ".join(sizes)
