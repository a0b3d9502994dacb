"""Texts of ``sidecar doctor``. Commands and paths are parameters, the same in every language."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import Text

TITLES: Final[dict[str, Text]] = {
    "doctor.title.program": Text("Program", "程序"),
    "doctor.title.data_directory": Text("Data folder", "数据文件夹"),
    "doctor.title.instance": Text("Running sidecar", "运行中的服务"),
    "doctor.title.database": Text("Database", "数据库"),
    "doctor.title.speech_packages": Text("Speech recognition", "语音识别组件"),
    "doctor.title.speech_models": Text("Speech models", "语音模型"),
    "doctor.title.transcription_profiles": Text("Transcription profiles", "转写配置"),
    "doctor.title.managed_runtime": Text("Managed runtime", "托管运行环境"),
    "doctor.title.gpu": Text("Graphics card", "显卡"),
    "doctor.title.credentials": Text("Secret store", "密钥存储"),
    "doctor.title.cjk_fonts": Text("Chinese fonts", "中文字体"),
    "doctor.title.pango": Text("PDF layout (Pango)", "PDF 排版（Pango）"),
    "doctor.title.libreoffice": Text(
        "Old presentations (LibreOffice)", "旧版演示文稿（LibreOffice）"
    ),
    "doctor.title.uv": Text("Installer (uv)", "安装工具（uv）"),
    "doctor.title.chat_servers": Text("Local chat models", "本机对话模型"),
    "doctor.status.ok": Text("ok", "正常"),
    "doctor.status.warning": Text("warning", "注意"),
    "doctor.status.missing": Text("missing", "缺少"),
    "doctor.status.error": Text("error", "错误"),
    "doctor.verdict.fine": Text("Everything essential works.", "必需的部分都可以正常使用。"),
    "doctor.verdict.broken": Text(
        "Something essential does not work; see the hints above.",
        "有必需的部分无法使用，请查看上面的提示。",
    ),
    "doctor.check_failed": Text("The check itself failed: {reason}", "检查本身出错：{reason}"),
    "doctor.check_unanswered": Text("No answer within {seconds} s", "{seconds} 秒内没有得到结果"),
    "doctor.check_failed.hint": Text(
        "Try again. If it stays like this, report it together with this output.",
        "请重试；如果仍然如此，请连同这份输出一起反馈。",
    ),
}

DATA: Final[dict[str, Text]] = {
    "doctor.program.source": Text(
        "{version} on {platform}, Python {python}", "{version}，{platform}，使用 Python {python}"
    ),
    "doctor.program.frozen": Text(
        "{version} on {platform}, with its own Python {python}",
        "{version}，{platform}，自带 Python {python}",
    ),
    "doctor.data_directory.ready": Text("{path}, {free} free", "{path}，剩余 {free}"),
    "doctor.data_directory.not_yet": Text(
        "{path} will be made by the first start; {free} free",
        "{path} 会在首次启动时创建，剩余 {free}",
    ),
    "doctor.data_directory.impossible": Text("{path} cannot be made", "无法创建 {path}"),
    "doctor.data_directory.read_only": Text(
        "{path} cannot be written to: {reason}", "无法写入 {path}：{reason}"
    ),
    "doctor.data_directory.hint": Text(
        "Check the permissions and the disk, or choose another folder with {variable}.",
        "请检查权限和磁盘，或用 {variable} 指定其他文件夹。",
    ),
    "doctor.data_directory.space_hint": Text(
        "Little space is left; free some before you add models or recordings.",
        "剩余空间不多，添加模型或录音前请先清理磁盘。",
    ),
    "doctor.instance.none": Text("None serves this folder now", "当前没有服务在使用这个文件夹"),
    "doctor.instance.stale": Text(
        "None serves this folder now; an earlier one left its lock file, which does no harm",
        "当前没有服务在使用这个文件夹；上次遗留的锁文件没有影响",
    ),
    "doctor.instance.starting": Text("Process {pid} is starting", "进程 {pid} 正在启动"),
    "doctor.instance.running": Text(
        "Process {pid} answers on port {port}", "进程 {pid} 正在端口 {port} 上提供服务"
    ),
    "doctor.instance.silent": Text(
        "Process {pid} does not answer on port {port}", "进程 {pid} 在端口 {port} 上没有响应"
    ),
    "doctor.instance.silent.hint": Text(
        "Close the app. If process {pid} stays and is a sidecar, end it.",
        "请关闭应用；如果进程 {pid} 仍在且确实是本服务，请结束它。",
    ),
    "doctor.database.not_yet": Text("Will be made by the first start", "会在首次启动时创建"),
    "doctor.database.current": Text(
        "Revision {revision}, current; {size}", "版本 {revision}，已是最新；{size}"
    ),
    "doctor.database.older": Text(
        "Revision {revision}, this program uses {expected}",
        "版本 {revision}，本程序使用 {expected}",
    ),
    "doctor.database.older.hint": Text(
        "Nothing to do: the next start makes a backup copy and updates it.",
        "无需处理：下次启动会先备份再更新。",
    ),
    "doctor.database.newer": Text(
        "Revision {revision} is newer than this program's {expected}",
        "版本 {revision} 比本程序的 {expected} 更新",
    ),
    "doctor.database.newer.hint": Text(
        "Update the app; it leaves a newer database untouched.",
        "请更新应用；应用不会改动更新版本的数据库。",
    ),
    "doctor.database.unreadable": Text("Cannot be read: {reason}", "无法读取：{reason}"),
    "doctor.database.unreadable.hint": Text(
        "Restore it from a backup. Your notes lie in the vault and are not affected.",
        "请从备份恢复；笔记保存在笔记库中，不受影响。",
    ),
    "doctor.managed_runtime.present": Text("Present in {path}", "已存在：{path}"),
    "doctor.managed_runtime.absent": Text("Not installed", "未安装"),
    "doctor.managed_runtime.hint": Text(
        "Only graphics card acceleration and telling speakers apart need it; transcribing does not.",
        "只有显卡加速和区分说话人需要它，转写不需要。",
    ),
}

SPEECH: Final[dict[str, Text]] = {
    "doctor.speech_packages.ready": Text("{packages}", "已安装：{packages}"),
    "doctor.speech_packages.unusable": Text("Cannot be loaded: {packages}", "无法加载：{packages}"),
    "doctor.speech_packages.hint": Text(
        "From source, run: {command}. Otherwise reinstall the app.",
        "源码运行请执行：{command}；否则请重新安装应用。",
    ),
    "doctor.speech_models.none": Text("No model was found", "没有找到模型"),
    "doctor.speech_models.hint": Text(
        "Put a faster-whisper model into a folder of its own in {folder}, or name a folder with {option}.",
        "请把 faster-whisper 模型放进 {folder} 下的单独文件夹，或用 {option} 指定文件夹。",
    ),
    "doctor.speech_models.found": Text(
        "{whole}[; damaged: {damaged}]", "可用：{whole}[；已损坏：{damaged}]"
    ),
    "doctor.speech_models.all_damaged": Text("Damaged: {damaged}", "已损坏：{damaged}"),
    "doctor.speech_models.damaged.hint": Text(
        "Files of {damaged} are missing or cut off; download the model again.",
        "{damaged} 的文件缺失或不完整，请重新下载该模型。",
    ),
    "doctor.transcription_profiles.found": Text("{names}", "可用：{names}"),
    "doctor.transcription_profiles.wrong": Text(
        "The settings file cannot be used[: look at {place}]", "设置文件无法使用[：请检查 {place}]"
    ),
    "doctor.transcription_profiles.hint": Text(
        "Until it is mended, only the default profile is there: {file}",
        "修正之前只有默认配置可用：{file}",
    ),
}

SYSTEM: Final[dict[str, Text]] = {
    "doctor.gpu.present": Text("{cards}, driver {driver}", "{cards}，驱动 {driver}"),
    "doctor.gpu.driver_only": Text(
        "Driver {driver} is loaded, but no card answers", "已加载驱动 {driver}，但没有显卡响应"
    ),
    "doctor.gpu.driver_only.hint": Text(
        "Restart the computer or reinstall the driver; until then the processor is used.",
        "请重启电脑或重新安装驱动；在此之前使用处理器运行。",
    ),
    "doctor.gpu.absent": Text(
        "No NVIDIA card with a driver was found", "没有找到装有驱动的 NVIDIA 显卡"
    ),
    "doctor.gpu.absent.hint": Text(
        "Everything works on the processor; a card only makes it faster.",
        "没有显卡也能使用，只是速度较慢。",
    ),
    "doctor.credentials.keyring": Text("The system's keyring ({name})", "系统钥匙串（{name}）"),
    "doctor.credentials.file": Text(
        "An encrypted file in {folder}; no keyring can be used",
        "使用 {folder} 中的加密文件，没有可用的系统钥匙串",
    ),
    "doctor.credentials.unanswered": Text(
        "The keyring does not answer; an encrypted file will be used",
        "系统钥匙串没有响应，将改用加密文件",
    ),
    "doctor.credentials.hint": Text(
        "Unlock or install a keyring (on Linux a Secret Service such as GNOME Keyring) for better protection.",
        "如需更好的保护，请解锁或安装系统钥匙串（Linux 上可使用 GNOME Keyring 等 Secret Service）。",
    ),
    "doctor.uv.present": Text("{version}, {path}", "版本 {version}，{path}"),
    "doctor.uv.absent": Text("Not found", "没有找到"),
    "doctor.uv.unusable": Text("{path} does not run", "{path} 无法运行"),
    "doctor.uv.hint": Text(
        "Needed to install the managed runtime only. Install it with: {command}",
        "只有安装托管运行环境时需要，安装命令：{command}",
    ),
}

DOCUMENTS: Final[dict[str, Text]] = {
    "doctor.cjk_fonts.present": Text("{fonts}", "已安装：{fonts}"),
    "doctor.cjk_fonts.absent": Text(
        "None was found; Chinese text in a PDF would show as boxes",
        "没有找到，PDF 中的中文会显示为方框",
    ),
    "doctor.cjk_fonts.hint": Text(
        "Install a font such as Noto Sans CJK[: {command}].",
        "请安装 Noto Sans CJK 等中文字体[：{command}]。",
    ),
    "doctor.pango.present": Text("All its libraries are there", "所需的库都已具备"),
    "doctor.pango.absent": Text("Not found: {libraries}", "没有找到：{libraries}"),
    "doctor.pango.hint": Text(
        "Needed for PDF only; other formats work without it[. Install it with: {command}].",
        "只有导出 PDF 需要，其他格式不受影响[；安装命令：{command}]。",
    ),
    "doctor.chat_servers.present": Text(
        "{servers}, {count} model(s)", "{servers}，共 {count} 个模型"
    ),
    "doctor.chat_servers.empty": Text("{servers}, without any model", "{servers}，但没有任何模型"),
    "doctor.chat_servers.empty.hint": Text(
        "Download or load a model there, then add the server as a provider.",
        "请先在其中下载或加载模型，再把它添加为模型服务。",
    ),
    "doctor.chat_servers.absent": Text(
        "No server answers on the usual ports ({ports})", "常用端口上没有服务响应（{ports}）"
    ),
    "doctor.chat_servers.hint": Text(
        "Chats can run on this machine with Ollama, LM Studio, llama.cpp or vLLM; a remote provider works too.",
        "可用 Ollama、LM Studio、llama.cpp 或 vLLM 在本机对话，也可以使用远程模型服务。",
    ),
    "doctor.libreoffice.present": Text("Installed", "已安装"),
    "doctor.libreoffice.absent": Text("Not installed", "未安装"),
    "doctor.libreoffice.hint": Text(
        "Needed only to read attached .ppt files; .pptx works without it[. Install it with: {command}].",
        "只有读取附件中的 .ppt 文件时需要，.pptx 不受影响[；安装命令：{command}]。",
    ),
}

DOCTOR: Final[dict[str, Text]] = {**TITLES, **DATA, **SPEECH, **SYSTEM, **DOCUMENTS}
