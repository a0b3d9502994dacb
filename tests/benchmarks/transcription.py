"""How long transcription takes through the sidecar, how right it is, and how much memory it needs.

    python -m tests.benchmarks.transcription [--runs 5] [--only speed errors terms batches memory]
                                             [--minutes 10]

Speed: the same recogniser with the same settings on the same recordings, in a script of one's own and
through the sidecar, with the model loaded. The two take turns, and each is compared with its neighbour,
since what else the machine does changes slowly. Prints the median of the ratios.
Errors: the share of words (English) or characters (Chinese) that each side hears wrongly.
Terms: the same, with and without notes on the topic in the vault.
Batches: windows side by side against one after the other.
Memory: what the worker needs for a recording of so many minutes, 50 of 60 of them speech.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from host_bridge.launcher import Sidecar, launch
from sidecar.media.transcription.profiles import SETTINGS_FILE, TranscriptionProfile
from sidecar.media.whisper.model import available_threads
from sidecar.media.whisper.recognition import SCRIPT_PROMPTS, timed_prompt
from tests.app_client import MODELS_DIR, ROOT
from tests.media.error_rate import character_error_rate, word_error_rate
from tests.media.samples import CALL, JFK, LECTURE, MEETING, RATE, encoded, samples_of, silence

MODEL = MODELS_DIR / "whisper-base"
TARGET = 1.05
PROFILES: dict[str, dict[str, Any]] = {
    "batches": {"batch_size": 4, "vault_terms": False},
    "no-terms": {"vault_terms": False},
}
NOTES = {
    "操作系统": "# 死锁的四个必要条件\n\n## 互斥\n\n## 占有并等待\n\n## 不可抢占\n\n## 循环等待\n\n# 银行家算法\n\n"
    "# 页面置换算法\n\n# 时间片轮转\n",
    "调度目标": "# 公平\n\n# 高效\n\n# 及时响应\n",
    "红烧肉": "# 五花肉\n\n# 冰糖\n",
    "线性代数": "# 特征值\n\n# 特征向量\n\n# 行列式\n",
    "巴黎旅行": "# 卢浮宫\n\n# 埃菲尔铁塔\n",
    "会计准则": "# 借贷平衡\n\n# 现金流量表\n",
    "Kubernetes": "# Ingress controller\n\n# Persistent volumes\n",
}


@dataclass(frozen=True, slots=True)
class Spoken:
    """A recording and what is said in it."""

    path: Path
    language: str
    text: str

    def errors(self, heard: str) -> float:
        """Return the share of words, or of Chinese characters, that were heard wrongly."""
        rate = character_error_rate if self.language == "zh" else word_error_rate
        return rate(self.text, heard)


def spoken() -> list[Spoken]:
    """Return the recordings whose words are known."""
    turns = (ROOT / "tests" / "recordings" / "en-two-speaker-call.stm").read_text("utf-8")
    call = " ".join(line.split(maxsplit=5)[-1] for line in turns.splitlines() if line.strip())
    return [
        Spoken(CALL, "en", call),
        Spoken(
            JFK,
            "en",
            "And so my fellow Americans, ask not what your country can do for you, ask what you can do "
            "for your country.",
        ),
        Spoken(
            LECTURE,
            "zh",
            "同学们好，今天我们讲操作系统里的进程调度和死锁。调度的目标有三个：公平，高效，还有及时响应。"
            "先来先服务最简单，但是长作业会让后面的短作业等很久。"
            "时间片轮转让每个进程都能得到处理器，时间片太短，切换的开销就会变大。"
            "死锁的四个必要条件是：互斥，占有并且等待，不可抢占，循环等待。只要破坏其中任何一个条件，死锁就不会发生。"
            "银行家算法在分配资源之前先检查系统是否处于安全状态。下一节课我们讲内存管理和页面置换算法。"
            "请大家在星期五之前完成第三章的习题。",
        ),
        Spoken(
            MEETING,
            "zh",
            "大家好，现在开始开会，第一个议题是下周的项目进度。前端页面已经完成了百分之八十，预计星期三可以测试。"
            "第二个议题是考试复习安排，我会整理一份复习提纲。会议记录会在今天晚上发给大家。",
        ),
    ]


class Direct:
    """A script of one's own with the same settings."""

    def __init__(self) -> None:
        from faster_whisper import WhisperModel

        self._model = WhisperModel(
            str(MODEL),
            device="cpu",
            compute_type="int8",
            cpu_threads=available_threads(),
            local_files_only=True,
        )

    def text(self, recording: Spoken) -> str:
        """Return what it hears."""
        prompt = None
        if recording.language == "zh":
            prompt = timed_prompt(self._model, "zh", SCRIPT_PROMPTS["simplified"])
        segments, _ = self._model.transcribe(
            str(recording.path),
            language=recording.language,
            beam_size=TranscriptionProfile().beam_size,
            vad_filter=True,
            initial_prompt=prompt,
        )
        return "".join(segment.text for segment in segments)


class Served:
    """The same through the sidecar."""

    def __init__(self, sidecar: Sidecar) -> None:
        self.sidecar = sidecar
        self._uploaded: dict[Path, str] = {}

    def attachment(self, path: Path) -> str:
        """Return the attachment of a recording, uploaded once."""
        if path not in self._uploaded:
            answer = self.sidecar.upload("/api/media/attachments", path).check(201)
            self._uploaded[path] = answer.json()["attachment_id"]
        return self._uploaded[path]

    def text(self, recording: Spoken, profile: str = "default") -> str:
        """Return what it hears."""
        job = self.job(self.attachment(recording.path), recording.language, profile)
        text: str = job["text"]
        return text

    def job(self, attachment_id: str, language: str, profile: str = "default") -> dict[str, Any]:
        """Transcribe an attachment and return the job at its end."""
        request = {"attachment_id": attachment_id, "language": language, "profile_id": profile}
        made = self.sidecar.post("/api/media/transcriptions", json=request).check(202).json()
        path = f"/api/media/transcriptions/{made['job_id']}"
        last = ""
        # Left at the end that is told: a reader of event streams comes back once more to be sure.
        with closing(self.sidecar.events(f"{path}/events")) as events:
            while last not in ("Completed", "Failed", "Cancelled"):
                last = next(events).event
        assert last == "Completed", last
        job: dict[str, Any] = self.sidecar.get(path).check(200).json()
        return job


def seconds_of(work: Callable[[], object]) -> float:
    """Return how long *work* takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def speed(direct: Direct, served: Served, runs: int) -> None:
    """Print how much longer the sidecar takes."""
    ratios: list[float] = []
    for recording in spoken()[:3]:
        direct.text(recording)
        served.text(recording)
        pairs = []
        for number in range(runs):
            # Whoever runs first may find the machine in another state.
            sides = [partial(direct.text, recording), partial(served.text, recording)]
            order = (1, 0) if number % 2 else (0, 1)
            took = {side: seconds_of(sides[side]) for side in order}
            pairs.append((took[0], took[1]))
        ratios += [through / alone for alone, through in pairs]
        fastest_alone, fastest_through = (min(side) for side in zip(*pairs, strict=True))
        print(
            f"speed   {recording.path.name:26} direct {fastest_alone:6.2f} s  sidecar {fastest_through:6.2f} s"
            f"  ratio {statistics.median(ratios[-runs:]):.3f}",
            flush=True,
        )
    print(
        f"speed   sidecar / direct: {statistics.median(ratios):.3f} (target: at most {TARGET:.2f})"
    )


def errors(direct: Direct, served: Served) -> None:
    """Print how right both sides are."""
    for recording in spoken():
        alone, through = direct.text(recording), served.text(recording)
        unit = "characters" if recording.language == "zh" else "words"
        print(
            f"errors  {recording.path.name:26} direct {recording.errors(alone):6.1%}"
            f"  sidecar {recording.errors(through):6.1%}  of {unit}",
            flush=True,
        )


def terms(served: Served) -> None:
    """Print what notes on the topic, and on others, change."""
    for recording in spoken():
        plain, heard = (
            recording.errors(served.text(recording, name)) for name in ("no-terms", "default")
        )
        print(
            f"terms   {recording.path.name:26} without notes {plain:6.1%}  with notes {heard:6.1%}",
            flush=True,
        )


def batches(served: Served, folder: Path, runs: int) -> None:
    """Print how long windows side by side take against one after the other."""
    import numpy as np

    path = folder / "long.flac"
    path.write_bytes(encoded(np.concatenate([samples_of(CALL)] * 4), "flac"))
    said = Spoken(path, "en", " ".join([spoken()[0].text] * 4))
    ratios, wrong = [], {}
    for profile in ("no-terms", "batches"):
        wrong[profile] = said.errors(served.text(said, profile))
    for _ in range(max(1, runs // 2)):
        one, many = (
            seconds_of(partial(served.text, said, name)) for name in ("no-terms", "batches")
        )
        ratios.append(many / one)
    print(
        f"batches of 4 / one by one: {statistics.median(ratios):.3f}"
        f"  errors {wrong['batches']:.1%} / {wrong['no-terms']:.1%} of words",
        flush=True,
    )


def memory(served: Served, folder: Path, minutes: int) -> None:
    """Print the most memory that the worker had while it transcribed a long recording."""
    import numpy as np

    path = folder / "longer.opus"
    piece = np.concatenate([samples_of(CALL), samples_of(JFK), samples_of(CALL)[:RATE], silence(8)])
    count = int(60 * minutes * RATE // len(piece)) + 1
    path.write_bytes(encoded(np.tile(piece, count)[: 60 * minutes * RATE], "opus"))
    attachment_id = served.attachment(path)
    over, peak = threading.Event(), {"worker": 0, "server": 0}

    def watch() -> None:
        while not over.wait(0.1):
            for process in [psutil.Process(served.sidecar.pid), *workers_of(served.sidecar)]:
                try:
                    name = "server" if process.pid == served.sidecar.pid else "worker"
                    peak[name] = max(peak[name], process.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    took = seconds_of(partial(served.job, attachment_id, "en", "no-terms"))
    over.set()
    watcher.join()
    print(
        f"memory  {minutes} minutes: worker {peak['worker'] / 2**20:.0f} MiB, server {peak['server'] / 2**20:.0f}"
        f" MiB at most; {took / (60 * minutes):.3f} of the recording's time",
        flush=True,
    )


def workers_of(sidecar: Sidecar) -> list[psutil.Process]:
    """Return the processes that the sidecar has started."""
    return psutil.Process(sidecar.pid).children(recursive=True)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=5, help="runs of each recording on each side")
    parser.add_argument(
        "--minutes", type=int, default=10, help="length of the recording for memory"
    )
    parts = ("speed", "errors", "terms", "batches", "memory")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        vaults = {name: folder / name for name in ("empty", "notes")}
        for vault in vaults.values():
            vault.mkdir()
        for title, body in NOTES.items():
            (vaults["notes"] / f"{title}.md").write_text(body, "utf-8")
        (folder / "data").mkdir()
        (folder / "data" / SETTINGS_FILE).write_text(json.dumps({"profiles": PROFILES}), "utf-8")
        sidecar = stack.enter_context(
            launch(
                data_dir=folder / "data",
                vault_path=vaults["empty"],
                extra_args=("--models-dir", str(MODELS_DIR)),
            )
        )
        served = Served(sidecar)
        direct = Direct() if {"speed", "errors"} & set(arguments.only) else None
        if direct is not None and "speed" in arguments.only:
            speed(direct, served, arguments.runs)
        if direct is not None and "errors" in arguments.only:
            errors(direct, served)
        if "batches" in arguments.only:
            batches(served, folder, arguments.runs)
        if "memory" in arguments.only:
            memory(served, folder, arguments.minutes)
        if "terms" in arguments.only:
            sidecar.host_post("/host/vault", json={"path": str(vaults["notes"])})
            wait_for_notes(sidecar)
            terms(Served(sidecar))


def wait_for_notes(sidecar: Sidecar) -> None:
    """Wait until the vault was looked through."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if sidecar.get("/api/notes").check(200).json()["page"]["total"] == len(NOTES):
            return
        time.sleep(0.1)
    raise TimeoutError


if __name__ == "__main__":
    main()
