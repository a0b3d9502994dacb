"""Texts about the managed runtime: why it could not be installed, or does not work."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import Text

RUNTIME: Final[dict[str, Text]] = {
    "runtime.platform_unsupported": Text(
        "There is no runtime for this kind of computer.", "没有适用于这类电脑的运行环境。"
    ),
    "runtime.flavour_unknown": Text(
        "The settings ask for a kind of runtime that does not exist.",
        "设置中指定的运行环境类型不存在。",
    ),
    "runtime.flavour_not_locked": Text(
        "This version of the app does not bring the chosen kind of runtime.",
        "此版本的应用不提供所选类型的运行环境。",
    ),
    "runtime.uv_missing": Text("The tool uv was not found.", "找不到 uv 工具。"),
    "runtime.interpreter_missing": Text(
        "No suitable Python was found, and none could be downloaded. Install Python 3.11, or 3.13 for a "
        "graphics card, and try again.",
        "找不到合适的 Python，也无法下载。请安装 Python 3.11（使用显卡时为 3.13）后重试。",
    ),
    "runtime.interpreter_unusable": Text(
        "The Python that was chosen for the installation cannot be used.",
        "为安装选择的 Python 无法使用。",
    ),
    "runtime.archive_invalid": Text(
        "The offline package holds no Python that runs on this computer.",
        "离线包中没有能在这台电脑上运行的 Python。",
    ),
    "runtime.wheelhouse_missing": Text(
        "The folder with the offline packages is not there.", "离线软件包文件夹不存在。"
    ),
    "runtime.disk_full": Text("There is not enough free disk space.", "磁盘空间不足。"),
    "runtime.packages_unavailable": Text(
        "The packages could not be fetched, or are not the ones that were checked for this version.",
        "无法获取软件包，或与此版本核验过的软件包不一致。",
    ),
    "runtime.environment_failed": Text(
        "The runtime's folder could not be set up.", "无法建立运行环境文件夹。"
    ),
    "runtime.verification_failed": Text(
        "The runtime was set up, but does not work on this computer.",
        "运行环境已建立，但无法在这台电脑上运行。",
    ),
    "runtime.wrong_flavour": Text(
        "The packages are for another kind of graphics card than the chosen one.",
        "软件包与所选显卡类型不符。",
    ),
    "runtime.busy": Text("Another installation is running.", "另一个安装正在进行。"),
    "runtime.cancelled": Text("The installation was cut off.", "安装被中断。"),
    "runtime.custom_interpreter": Text(
        "A Python of your own is set up; nothing is installed into it.",
        "已设置自己的 Python，不会向其中安装任何内容。",
    ),
    "runtime.not_installed": Text("The runtime is not installed.", "尚未安装运行环境。"),
    "runtime.environment_broken": Text(
        "The installed runtime does not work any more. Install it again.",
        "已安装的运行环境无法工作，请重新安装。",
    ),
    "runtime.interpreter_unsuitable": Text(
        "Your own Python lacks what is needed, or does not start. Check it, or remove it from the settings.",
        "你的 Python 缺少所需组件或无法启动，请检查或从设置中移除。",
    ),
}
