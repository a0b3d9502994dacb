"""What the command line says, in English and Chinese."""

import os
from typing import Final

from cuda_installer.errors import EXPLANATIONS

CHINESE: Final = "zh"
_TEXTS: Final[dict[str, tuple[str, str]]] = {
    "platform": ("Platform", "平台"),
    "driver": ("NVIDIA driver", "NVIDIA 驱动"),
    "none": ("none", "无"),
    "supported": ("Runtime available", "可安装运行环境"),
    "yes": ("yes", "是"),
    "no": ("no", "否"),
    "flavour": ("Flavour", "类型"),
    "passed_over": (
        "The driver could run {names}, but this build has no lock file for it.",
        "驱动可运行 {names}，但此版本没有相应的锁定文件。",
    ),
    "source": ("Packages from", "软件包来源"),
    "source.index": ("the package index", "软件包索引"),
    "source.mirror": ("a mirror", "镜像"),
    "source.wheelhouse": ("a folder", "文件夹"),
    "uv": ("uv", "uv"),
    "python": ("Python", "Python"),
    "python_by_uv": ("installed by uv", "由 uv 安装"),
    "download": ("Download", "下载"),
    "needed_bytes": ("Disk space needed", "所需磁盘空间"),
    "free_bytes": ("Disk space free", "可用磁盘空间"),
    "status": ("Status", "状态"),
    "interpreter": ("Your own Python, used in its place", "使用你自己的 Python"),
    "torch": ("torch", "torch"),
    "cuda": ("CUDA device usable", "CUDA 设备可用"),
    "installed": ("The runtime is installed and was verified.", "运行环境已安装并通过验证。"),
    "verified": ("The runtime works.", "运行环境工作正常。"),
    "broken": ("The runtime does not work ({step}).", "运行环境无法工作（{step}）。"),
    "removed": ("The runtime was removed; {size} were freed.", "运行环境已移除，释放 {size}。"),
    "saved": ("The settings were saved.", "设置已保存。"),
    "failed": ("Failed", "失败"),
    "kept": (
        "The runtime that was installed before is unchanged.",
        "之前安装的运行环境保持不变。",
    ),
    "stage.preparing": ("preparing", "准备"),
    "stage.creating_environment": ("creating the environment", "创建环境"),
    "stage.resolving": ("reading the lock", "读取锁定文件"),
    "stage.downloading": ("fetching packages", "获取软件包"),
    "stage.installing": ("installing packages", "安装软件包"),
    "stage.verifying": ("running code in it", "运行验证"),
    "stage.finishing": ("switching over", "切换"),
}
_REASONS_ZH: Final = {
    "platform_unsupported": "这台电脑没有可用的运行环境。",
    "flavour_unknown": "没有这种类型。",
    "flavour_not_locked": "此版本没有该类型的锁定文件。",
    "uv_missing": "找不到可用的 uv。请安装 uv，或用 --uv 指定。",
    "interpreter_missing": (
        "找不到合适的 Python，也无法安装。请安装 Python 3.11（使用显卡时为 3.13），"
        "或用 --python-archive 指定压缩包。"
    ),
    "interpreter_unusable": "该 Python 解释器无法使用。",
    "archive_invalid": "压缩包中没有能在此运行的 Python。",
    "wheelhouse_missing": "软件包文件夹不存在。",
    "disk_full": "磁盘空间不足。",
    "packages_unavailable": "无法获取软件包，或与锁定的软件包不一致。",
    "environment_failed": "无法创建环境。",
    "verification_failed": "环境已创建，但其中的代码无法运行。",
    "wrong_flavour": "环境中的 torch 与所选硬件类型不符。",
    "busy": "另一个安装正在进行。",
    "cancelled": "安装被中断。",
    "custom_interpreter": "已配置你自己的解释器，不会向其中安装任何内容。",
    "not_installed": "尚未安装运行环境。",
}


class Texts:
    """The texts in one language."""

    def __init__(self, locale: str | None = None) -> None:
        """*locale* is such as ``zh-CN``; without one the environment's language is taken."""
        chosen = locale or os.environ.get("LC_ALL") or os.environ.get("LANG") or "en"
        self._chinese = chosen.lower().startswith(CHINESE)

    def __call__(self, key: str, **values: object) -> str:
        """Return a text with its values filled in."""
        return _TEXTS[key][self._chinese].format(**values)

    def reason(self, reason: str) -> str:
        """Return the sentence about a failure."""
        return _REASONS_ZH[reason] if self._chinese else EXPLANATIONS[reason]


def size(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
