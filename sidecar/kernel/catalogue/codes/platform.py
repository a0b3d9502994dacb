"""Codes of the protocol itself, the host, jobs, the vault and retrieval."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import ErrorSpec

PROTOCOL: Final[dict[str, ErrorSpec]] = {
    "BAD_REQUEST": ErrorSpec(
        400,
        "This request cannot be carried out. Please check what you entered.",
        "这个请求无法执行，请检查输入的内容。",
    ),
    "VALIDATION_ERROR": ErrorSpec(
        422,
        "Some of the values are missing or not valid. Please correct them and try again.",
        "有些内容缺失或不符合要求，请修改后重试。",
    ),
    "RESOURCE_NOT_FOUND": ErrorSpec(
        404,
        "This item does not exist. It may have been deleted or moved; refresh and try again.",
        "找不到这项内容，可能已被删除或移走，请刷新后重试。",
    ),
    "METHOD_NOT_ALLOWED": ErrorSpec(
        405,
        "This action is not available here. Please update the app.",
        "这里不支持该操作，请更新应用。",
    ),
    "UNSUPPORTED_MEDIA_TYPE": ErrorSpec(
        415,
        "The content was sent in a format that cannot be read here. Please update the app.",
        "发送的内容格式无法识别，请更新应用。",
    ),
    "PAYLOAD_TOO_LARGE": ErrorSpec(
        413,
        "The content is too large. Please shorten it or split it up.",
        "内容太大了，请精简或拆成几份再试。",
    ),
    "RANGE_NOT_SATISFIABLE": ErrorSpec(
        416,
        "The requested part lies beyond the end of the file. Please reload the file.",
        "请求的位置超出了文件末尾，请重新加载文件。",
    ),
    "STATE_CONFLICT": ErrorSpec(
        409,
        "This cannot be done in the current state. Refresh and try again.",
        "当前状态下不能这样做，请刷新后重试。",
    ),
    "TOO_MANY_REQUESTS": ErrorSpec(
        429,
        "Too much is going on at once. Please wait a moment and try again.",
        "同时进行的操作太多了，请稍等片刻再试。",
    ),
    "CAPABILITY_NOT_AVAILABLE": ErrorSpec(
        501,
        "This feature is not available on this computer.",
        "这台电脑上无法使用此功能。",
    ),
    "INTERNAL_ERROR": ErrorSpec(
        500,
        "Something went wrong inside the app. Please try again; if it happens again, restart the app.",
        "应用内部出了问题，请重试；如果反复出现，请重启应用。",
    ),
    "IDEMPOTENCY_CONFLICT": ErrorSpec(
        409,
        "This upload key was already used for another file. Please upload the file again.",
        "这个上传标识已经用于另一个文件，请重新上传。",
    ),
    "IDEMPOTENCY_EXPIRED": ErrorSpec(
        409,
        "The file of the earlier upload is gone. Please upload it again.",
        "之前上传的文件已被清理，请重新上传。",
    ),
}

HOST: Final[dict[str, ErrorSpec]] = {
    "SESSION_INVALID": ErrorSpec(
        401,
        "Your session is not valid any more. Please reopen the app.",
        "会话已失效，请重新打开应用。",
    ),
    "HOST_TOKEN_REQUIRED": ErrorSpec(
        403,
        "Only the desktop app itself may do this.",
        "只有桌面应用本身才能执行这个操作。",
    ),
    "HOST_NOT_ALLOWED": ErrorSpec(
        403,
        "This address may not be used to reach the app. Please open it from the desktop app.",
        "不能通过这个地址访问，请从桌面应用中打开。",
    ),
    "ORIGIN_NOT_ALLOWED": ErrorSpec(
        403,
        "This page is not allowed to use the app.",
        "该页面无权使用本应用。",
    ),
    "SHUTTING_DOWN": ErrorSpec(
        503,
        "The app is closing. Please try again after it has restarted.",
        "应用正在退出，请在重新启动后再试。",
    ),
    "VAULT_PATH_INVALID": ErrorSpec(
        400,
        "This folder cannot be used as a vault. Choose an existing folder that you can open.",
        "这个文件夹不能用作笔记库，请选择一个已存在且能打开的文件夹。",
    ),
    "PACKAGE_PATH_INVALID": ErrorSpec(
        400,
        "This file or folder cannot be opened. Please choose it again.",
        "无法打开所选的文件或文件夹，请重新选择。",
    ),
}

JOBS: Final[dict[str, ErrorSpec]] = {
    "JOB_ALREADY_FINISHED": ErrorSpec(
        409,
        "This task has already finished, so it cannot be changed any more.",
        "任务已经结束，不能再更改。",
    ),
    "JOB_INTERRUPTED": ErrorSpec(
        500,
        "The app was closed twice while this task was running. Please start the task again.",
        "任务运行期间应用两次被关闭，请重新开始该任务。",
    ),
    "JOB_CANCELLED": ErrorSpec(
        409,
        "This task was cancelled. Start it again if you still need it.",
        "任务已取消，如有需要请重新开始。",
    ),
    "WORKER_CRASHED": ErrorSpec(
        500,
        "The background program stopped unexpectedly. Please try again.",
        "后台程序意外停止，请重试。",
    ),
    "WORKER_TIMEOUT": ErrorSpec(
        504,
        "The background program took too long. Close other heavy programs and try again.",
        "后台程序耗时过长，请关闭其他占用资源的程序后重试。",
    ),
    "TRACE_NOT_AVAILABLE": ErrorSpec(
        404,
        "The step-by-step record of this run is no longer kept. The result can still be read.",
        "这次运行的过程记录已不再保留，但结果仍可查看。",
    ),
    "TRACE_CURSOR_EXPIRED": ErrorSpec(
        409,
        "Some earlier steps are no longer kept. Please reload the page.",
        "部分较早的记录已不再保留，请重新加载页面。",
    ),
    "TRACE_CURSOR_INVALID": ErrorSpec(
        400,
        "The reading position is not valid. Please reload the page.",
        "读取位置无效，请重新加载页面。",
    ),
}

SUBSYSTEMS: Final[dict[str, ErrorSpec]] = {
    "DATABASE_UNAVAILABLE": ErrorSpec(
        503,
        "The app's data cannot be read or saved. Check the free disk space and restart the app.",
        "应用数据无法读取或保存，请检查磁盘剩余空间后重启应用。",
    ),
    "DISK_SPACE_INSUFFICIENT": ErrorSpec(
        409,
        "There is not enough free disk space. Free some space and try again.",
        "磁盘空间不足，请清理出一些空间后重试。",
    ),
    "CREDENTIAL_STORE_ERROR": ErrorSpec(
        503,
        "The store for keys and passwords cannot be used. Restart the app and try again.",
        "无法使用密钥存储，请重启应用后重试。",
    ),
    "CREDENTIAL_NAMESPACE_RESERVED": ErrorSpec(
        403,
        "This key belongs to a plugin or an MCP server. Change it in that plugin's or server's settings.",
        "该密钥属于插件或 MCP 服务，请到对应的设置中修改。",
    ),
}

VAULT: Final[dict[str, ErrorSpec]] = {
    "VAULT_NOT_OPEN": ErrorSpec(
        409,
        "No vault is open. Choose a folder for your notes first.",
        "还没有打开笔记库，请先选择存放笔记的文件夹。",
    ),
    "VAULT_UNAVAILABLE": ErrorSpec(
        503,
        "The vault's folder cannot be reached. Reconnect the drive or choose the folder again.",
        "无法访问笔记库文件夹，请重新连接磁盘或重新选择文件夹。",
    ),
    "NOTE_CONTENT_CONFLICT": ErrorSpec(
        409,
        "The note was changed in the meantime. Reload it, then make your change again.",
        "笔记在此期间被改动过，请重新加载后再修改。",
    ),
    "NOTE_ALREADY_EXISTS": ErrorSpec(
        409,
        "A note with this name is already in that folder. Choose another name.",
        "该文件夹里已有同名笔记，请换一个名称。",
    ),
    "NOTE_PATCH_MATCH_INVALID": ErrorSpec(
        409,
        "The text to replace must occur exactly once in the note. Select a longer, unique passage.",
        "要替换的文字必须在笔记中恰好出现一次，请选取更长、不会重复的一段。",
    ),
    "NOTE_UPDATE_BASELINE_MISSING": ErrorSpec(
        409,
        "There is no earlier note to update. Create a new note from the transcript instead.",
        "没有可以更新的旧笔记，请改为从转写稿新建一篇笔记。",
    ),
}

RETRIEVAL: Final[dict[str, ErrorSpec]] = {
    "EMBEDDING_MODEL_UNAVAILABLE": ErrorSpec(
        503,
        "No model for searching by meaning is ready. Install one in the model settings, or use keyword search.",
        "语义搜索所需的模型尚未就绪，请在模型设置中安装，或改用关键词搜索。",
    ),
    "EMBEDDING_DIMENSION_MISMATCH": ErrorSpec(
        502,
        "The embedding model returned vectors of an unexpected length. Check its dimension setting.",
        "向量模型返回的维度与设置不一致，请检查模型的维度设置。",
    ),
    "INDEX_MODEL_MISMATCH": ErrorSpec(
        409,
        "The search index was built with another model. Rebuild the index to search by meaning.",
        "搜索索引是用另一个模型建立的，请重建索引后再使用语义搜索。",
    ),
    "VECTOR_INDEX_REBUILD_REQUIRED": ErrorSpec(
        409,
        "The index for searching by meaning is incomplete. Rebuild it in the index settings.",
        "语义搜索的索引不完整，请在索引设置中重建。",
    ),
}
