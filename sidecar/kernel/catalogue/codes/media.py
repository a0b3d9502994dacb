"""Codes of attachments, transcription, and local models with their runtime."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import ErrorSpec

ATTACHMENTS: Final[dict[str, ErrorSpec]] = {
    "ATTACHMENT_NOT_FOUND": ErrorSpec(
        404,
        "This attachment does not exist in the open vault. Please upload it again.",
        "当前笔记库中没有这个附件，请重新上传。",
    ),
    "ATTACHMENT_EMPTY": ErrorSpec(
        400,
        "The file is empty. Please choose another file.",
        "文件是空的，请换一个文件。",
    ),
    "ATTACHMENT_TOO_LARGE": ErrorSpec(
        413,
        "The file is larger than is allowed. Please compress or split it.",
        "文件超过了允许的大小，请压缩或拆分后再上传。",
    ),
    "ATTACHMENT_IN_USE": ErrorSpec(
        409,
        "This attachment is still being used. Wait for the task to end, or remove what refers to it first.",
        "附件仍在使用中，请等任务结束，或先移除引用它的内容。",
    ),
    "UNSUPPORTED_ATTACHMENT_TYPE": ErrorSpec(
        400,
        "Files of this kind cannot be attached. Please use a supported audio, document or image file.",
        "不支持添加这类文件，请使用支持的音频、文档或图片。",
    ),
    "UNSUPPORTED_AUDIO_FORMAT": ErrorSpec(
        400,
        "The recording cannot be read. Convert it, for example to MP3 or WAV, and try again.",
        "无法读取这段录音，请转换成 MP3、WAV 等格式后重试。",
    ),
}

TRANSCRIPTION: Final[dict[str, ErrorSpec]] = {
    "AUDIO_TOO_SHORT": ErrorSpec(
        400,
        "The recording holds too little speech to compare. Please use a longer one.",
        "录音中的说话内容太少，无法比对，请换一段更长的录音。",
    ),
    "TRANSCRIPTION_PROFILE_NOT_FOUND": ErrorSpec(
        404,
        "This transcription profile does not exist. Choose another one in the settings.",
        "该转写配置不存在，请在设置中另选一个。",
    ),
    "TRANSCRIPTION_MODEL_UNAVAILABLE": ErrorSpec(
        503,
        "The speech model cannot be loaded. Reinstall it, or choose a smaller model if memory is short.",
        "语音模型无法加载，请重新安装；如果内存不足，请换用更小的模型。",
    ),
    "DIARIZATION_MODEL_UNAVAILABLE": ErrorSpec(
        503,
        "The model that tells speakers apart is missing or damaged. Reinstall it in the model settings.",
        "区分说话人的模型缺失或已损坏，请在模型设置中重新安装。",
    ),
    "TRANSCRIPTION_FAILED": ErrorSpec(
        502,
        "The recording could not be transcribed. Please try again.",
        "录音转写失败，请重试。",
    ),
    "TRANSCRIPTION_CANCELLED": ErrorSpec(
        409,
        "The transcription was cancelled. Start it again if you still need it.",
        "转写已取消，如有需要请重新开始。",
    ),
    "TRANSCRIPTION_QUEUE_FULL": ErrorSpec(
        429,
        "Too many recordings are waiting. Try again when some of them are done.",
        "排队等待转写的录音太多了，请等部分任务完成后再试。",
    ),
    "TRANSCRIPT_NOT_READY": ErrorSpec(
        409,
        "The transcript is not ready. Wait until the transcription has completed.",
        "转写稿还没有准备好，请等转写完成。",
    ),
    "TRANSCRIPT_REVISION_CONFLICT": ErrorSpec(
        409,
        "The transcript was edited in the meantime. Reload it, then make your change again.",
        "转写稿在此期间被编辑过，请重新加载后再修改。",
    ),
}

LOCAL_MODELS: Final[dict[str, ErrorSpec]] = {
    "LOCAL_MODEL_NOT_INSTALLED": ErrorSpec(
        409,
        "The local model is not installed. Install it in the model settings, then try again.",
        "本地模型尚未安装，请在模型设置中安装后重试。",
    ),
    "MODEL_IN_USE": ErrorSpec(
        409,
        "The model is being used right now. Wait until the running tasks have ended.",
        "模型正在使用中，请等正在进行的任务结束。",
    ),
    "MODEL_DOWNLOAD_FAILED": ErrorSpec(
        502,
        "The model could not be downloaded. Check your network and try again.",
        "模型下载失败，请检查网络后重试。",
    ),
    "MODEL_DOWNLOAD_CANCELLED": ErrorSpec(
        409,
        "The download or import was cancelled. Start it again to install the model.",
        "下载或导入已取消，如需安装模型请重新开始。",
    ),
    "MODEL_HASH_MISMATCH": ErrorSpec(
        502,
        "A downloaded file is damaged and was discarded. Please download the model again.",
        "下载的文件已损坏并被丢弃，请重新下载模型。",
    ),
    "MODEL_INVALID": ErrorSpec(
        422,
        "The chosen files are not this model, or some are missing. Check the download and import it again.",
        "所选文件不是这个模型，或缺少部分文件，请检查后重新导入。",
    ),
    "DOWNLOAD_NOT_ACTIVE": ErrorSpec(
        409,
        "Nothing is being downloaded or imported for this model.",
        "该模型没有正在进行的下载或导入。",
    ),
    "UV_NOT_INSTALLED": ErrorSpec(
        422,
        "The tool “uv” needed for this installation was not found. Install uv or reinstall the app.",
        "找不到安装所需的 uv 工具，请安装 uv 或重新安装应用。",
    ),
    "PLATFORM_UNSUPPORTED": ErrorSpec(
        422,
        "GPU acceleration cannot be installed on this computer. The app keeps using the processor.",
        "这台电脑无法安装 GPU 加速组件，应用会继续使用处理器运行。",
    ),
    "RUNTIME_INSTALL_FAILED": ErrorSpec(
        502,
        "The GPU component could not be installed. Check your network and disk space, then try again.",
        "GPU 组件安装失败，请检查网络和磁盘空间后重试。",
    ),
    "RUNTIME_OUTDATED": ErrorSpec(
        503,
        "The installed runtime component does not fit this version of the app. Install it again.",
        "已安装的运行组件与当前应用版本不匹配，请重新安装。",
    ),
    "RUNTIME_INSTALL_INTERRUPTED": ErrorSpec(
        503,
        "The installation of the GPU component was interrupted. Please start it again.",
        "GPU 组件的安装被中断，请重新开始安装。",
    ),
}
