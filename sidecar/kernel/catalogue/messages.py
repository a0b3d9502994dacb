"""Texts for readers that are not errors: progress, answers to operations, and warnings."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import Text

PHASES: Final[dict[str, Text]] = {
    "phase.queued": Text("Waiting for its turn", "正在排队"),
    "phase.starting": Text("Starting", "正在启动"),
    "phase.preparing": Text("Preparing", "正在准备"),
    "phase.running": Text("Working", "正在处理"),
    "phase.cancelling": Text("Cancelling", "正在取消"),
    "phase.finishing": Text("Finishing", "正在收尾"),
    "phase.completed": Text("Done", "已完成"),
    "phase.failed": Text("Failed", "失败"),
    "phase.cancelled": Text("Cancelled", "已取消"),
    "phase.loading_model": Text("Loading the model", "正在加载模型"),
    "phase.decoding": Text("Reading the recording", "正在读取录音"),
    "phase.uploading": Text("Uploading the recording", "正在上传录音"),
    "phase.diarizing": Text("Telling the speakers apart", "正在区分说话人"),
    "phase.transcribing": Text("Transcribing the recording", "正在转写录音"),
    "phase.aligning": Text("Matching words with speakers", "正在对应文字和说话人"),
    "phase.matching": Text("Comparing the voices", "正在比对声音"),
    "phase.reading": Text("Reading the document", "正在读取文档"),
    "phase.parsing": Text("Reading the Markdown", "正在解析 Markdown"),
    "phase.rendering": Text("Laying out the document", "正在排版文档"),
    "phase.exporting": Text("Exporting", "正在导出"),
    "phase.writing": Text("Writing the file", "正在写入文件"),
    "phase.scanning": Text("Looking through the notes", "正在扫描笔记"),
    "phase.indexing": Text("Building the search index", "正在建立搜索索引"),
    "phase.embedding": Text("Preparing search by meaning", "正在准备语义搜索"),
    "phase.downloading": Text("Downloading", "正在下载"),
    "phase.importing": Text("Importing", "正在导入"),
    "phase.verifying": Text("Checking the files", "正在校验文件"),
    "phase.unpacking": Text("Unpacking", "正在解压"),
    "phase.checking": Text("Checking this computer", "正在检查电脑环境"),
    "phase.creating_environment": Text("Setting up the runtime", "正在创建运行环境"),
    "phase.installing": Text("Installing", "正在安装"),
    "phase.evaluating": Text("Evaluating the cases[ ({current} of {total})]", "正在评测样本[（{current}/{total}）]"),
    "phase.reporting": Text("Writing the report", "正在生成报告"),
    "phase.calling_model": Text("Waiting for the model", "正在等待模型回答"),
    "phase.calling_tool": Text("Using a tool", "正在使用工具"),
    "phase.waiting_permission": Text("Waiting for your permission", "等待你的授权"),
}

OPERATIONS: Final[dict[str, Text]] = {
    "operation.accepted": Text("The request was accepted.", "请求已受理。"),
    "operation.cancel_requested": Text(
        "Cancelling has been requested. The task's state shows when it has stopped.",
        "已请求取消，任务停止后会显示最终状态。",
    ),
    "operation.shutdown_requested": Text("The app's service is shutting down.", "后台服务正在退出。"),
    "operation.restart_requested": Text("The restart has been requested.", "已请求重启。"),
    "operation.rebuild_requested": Text("The index is being rebuilt.", "正在重建索引。"),
    "operation.install_requested": Text("The installation has been started.", "已开始安装。"),
    "operation.download_requested": Text("The download has been started.", "已开始下载。"),
    "operation.import_requested": Text("The import has been started.", "已开始导入。"),
    "operation.completed": Text("Done.", "操作已完成。"),
}

WARNINGS: Final[dict[str, Text]] = {
    "warning.DIARIZATION_UNAVAILABLE": Text(
        "The speakers could not be told apart. Install the speaker component to get names for them.",
        "没有区分说话人，安装说话人组件后即可使用。",
    ),
    "warning.DIARIZATION_MODEL_UNAVAILABLE": Text(
        "The model that tells speakers apart is missing or damaged. Reinstall it in the model settings.",
        "区分说话人的模型缺失或已损坏，请在模型设置中重新安装。",
    ),
    "warning.NO_SPEECH_DETECTED": Text(
        "No speech was heard in the recording. Check that the right file was chosen.",
        "录音中没有听到人声，请确认选对了文件。",
    ),
    "warning.AUDIO_TRUNCATED": Text(
        "The end of the recording is damaged; everything before it was transcribed.",
        "录音末尾已损坏，之前的部分均已转写。",
    ),
    "warning.MERMAID_PARSE_FAILED": Text(
        "A diagram's text contains a mistake; its source was kept.",
        "有图表代码出错，已保留源码。",
    ),
    "warning.MERMAID_RENDER_FAILED": Text(
        "A diagram came without a picture; its source was kept. Open the preview before exporting.",
        "有图表缺少图片，已保留源码；请先打开预览再导出。",
    ),
    "warning.MERMAID_SVG_UNSAFE": Text(
        "A diagram contained active content; its source was kept instead.",
        "有图表含有可执行内容，已改为保留源码。",
    ),
    "warning.FUNCTION_PLOT_PARSE_FAILED": Text(
        "A function plot could not be understood[: {reason}]; its source was kept.",
        "有函数图无法识别[：{reason}]，已保留源码。",
    ),
    "warning.FUNCTION_PLOT_EXPRESSION_UNSAFE": Text(
        "A function plot used something that is not allowed; its source was kept.",
        "有函数图使用了不允许的写法，已保留源码。",
    ),
    "warning.FUNCTION_PLOT_RENDER_FAILED": Text(
        "A function plot could not be drawn; its source was kept.",
        "有函数图无法绘制，已保留源码。",
    ),
}

MESSAGES: Final[dict[str, Text]] = {**PHASES, **OPERATIONS, **WARNINGS}
