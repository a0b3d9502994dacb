"""Failures of the start: what the fatal line says and the status the process exits with."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import FatalSpec

FATAL: Final[dict[str, FatalSpec]] = {
    "HANDSHAKE_INVALID": FatalSpec(
        10,
        "The app and its background service did not understand each other. Update or reinstall the app.",
        "应用与后台服务未能完成握手，请更新或重新安装应用。",
    ),
    "HANDSHAKE_TIMEOUT": FatalSpec(
        11,
        "The background service got no settings from the app in time. Please start the app again.",
        "后台服务没有及时收到应用的设置，请重新启动应用。",
    ),
    "PORT_IN_USE": FatalSpec(
        12,
        "The chosen port[ {port}] is used by another program. Close that program, or start without a fixed port.",
        "所选端口[ {port} ]已被其他程序占用，请关闭该程序，或不要指定固定端口。",
    ),
    "DATA_DIR_IN_USE": FatalSpec(
        13,
        "The app is already running with this data. Switch to the open window, or close it first.",
        "应用已经在使用这份数据运行，请切换到已打开的窗口，或先将其关闭。",
    ),
    "DATA_DIR_UNUSABLE": FatalSpec(
        14,
        "The app's data folder cannot be created or written. Check its permissions and the free disk space.",
        "无法创建或写入应用的数据文件夹，请检查权限和磁盘剩余空间。",
    ),
    "DATABASE_VERSION_UNSUPPORTED": FatalSpec(
        15,
        "Your data was saved by a newer version of the app. Please update the app; nothing was changed.",
        "你的数据由更新版本的应用保存，请更新应用；数据没有被改动。",
    ),
    "DATABASE_CORRUPT": FatalSpec(
        16,
        "The app's database is damaged. Restore it from a backup; your note files are not affected.",
        "应用数据库已损坏，请从备份恢复；你的笔记文件不受影响。",
    ),
    "START_FAILED": FatalSpec(
        17,
        "The background service could not start. Try again; if it still fails, look at the log file.",
        "后台服务无法启动，请重试；如果仍然失败，请查看日志文件。",
    ),
    "SETTING_INVALID": FatalSpec(
        18,
        "A setting[ “{setting}”] has a value that cannot be used. Correct it and start again.",
        "设置项[“{setting}”]的值不可用，请修改后重新启动。",
    ),
    "DATABASE_DIALECT_UNSUPPORTED": FatalSpec(
        19,
        "This app keeps its data in SQLite only. Remove the setting that asks for another database.",
        "本应用只支持 SQLite 数据库，请去掉指定其他数据库的设置。",
    ),
}
