"""Texts for readers that are not errors: progress, answers to operations, and warnings."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.attachment_messages import ATTACHMENTS
from sidecar.kernel.catalogue.demo_messages import DEMO
from sidecar.kernel.catalogue.doctor_messages import DOCTOR
from sidecar.kernel.catalogue.entries import Text
from sidecar.kernel.catalogue.local_model_messages import LOCAL_MODELS
from sidecar.kernel.catalogue.plot_messages import PLOTS
from sidecar.kernel.catalogue.provider_messages import PROVIDERS
from sidecar.kernel.catalogue.runtime_messages import RUNTIME

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
    "phase.starting_over": Text("Starting over after a restart", "重启后重新开始"),
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
    "phase.resolving": Text("Working out what is needed", "正在确认所需组件"),
    "phase.downloading": Text("Downloading", "正在下载"),
    "phase.importing": Text("Importing", "正在导入"),
    "phase.verifying": Text("Checking the files", "正在校验文件"),
    "phase.unpacking": Text("Unpacking", "正在解压"),
    "phase.checking": Text("Checking this computer", "正在检查电脑环境"),
    "phase.creating_environment": Text("Setting up the runtime", "正在创建运行环境"),
    "phase.installing": Text("Installing", "正在安装"),
    "phase.evaluating": Text(
        "Evaluating the cases[ ({current} of {total})]", "正在评测样本[（{current}/{total}）]"
    ),
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
    "operation.shutdown_requested": Text(
        "The app's service is shutting down.", "后台服务正在退出。"
    ),
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
    "warning.RUNTIME_OUTDATED": Text(
        "The runtime component does not fit this version of the app. Install it again to tell speakers apart.",
        "运行组件与当前应用版本不匹配，请重新安装后再区分说话人。",
    ),
    "warning.NO_SPEECH_DETECTED": Text(
        "No speech was heard in the recording. Check that the right file was chosen.",
        "录音中没有听到人声，请确认选对了文件。",
    ),
    "warning.AUDIO_TRUNCATED": Text(
        "The end of the recording is damaged; everything before it was transcribed.",
        "录音末尾已损坏，之前的部分均已转写。",
    ),
    "warning.REPEATED_TEXT_REMOVED": Text(
        "The recogniser repeated itself; what was not said so often was taken out.",
        "识别结果中有重复的内容，已去除多余的部分。",
    ),
    "warning.UNCERTAIN_TEXT_REMOVED": Text(
        "Text that was most likely never spoken was taken out.",
        "已去除很可能并非人声的内容。",
    ),
    "warning.export_node_unsupported": Text(
        "A passage[ ({element})][ in line {line}] cannot be shown in this format; its text was kept.",
        "[第 {line} 行]有内容[（{element}）]无法用该格式呈现，已保留原文。",
    ),
    "warning.export_source_kept": Text(
        "A passage[ in line {line}] is nested too deeply to be laid out; its text was kept.",
        "[第 {line} 行]有内容嵌套过深，无法排版，已保留原文。",
    ),
    "warning.export_html_kept": Text(
        "HTML[ in line {line}] is not carried out in exports; its source was kept.",
        "导出时不执行[第 {line} 行的] HTML，已保留源码。",
    ),
    "warning.export_comment_left_out": Text(
        "A comment[ in line {line}] was left out.",
        "[第 {line} 行]有一处注释没有导出。",
    ),
    "warning.export_footnote_unused": Text(
        "A footnote that nothing refers to was left out.",
        "有一条脚注没有被引用，没有导出。",
    ),
    "warning.export_link_removed": Text(
        "A link[ in line {line}] leads to a place that the document cannot point to; its words were kept.",
        "[第 {line} 行]有链接的目标无法从文档中打开，已保留文字。",
    ),
    "warning.export_more": Text(
        "There are more parts that could not be shown as they are.",
        "还有其他内容未能按原样呈现。",
    ),
    "warning.export_image_remote": Text(
        "The online picture[ “{name}”][ in line {line}] was not fetched; its description takes its place."
        " Save it in the vault first.",
        "没有下载[第 {line} 行的]网络图片[“{name}”]，已用说明文字代替；可先把图片保存到笔记库。",
    ),
    "warning.export_image_outside_vault": Text(
        "The picture[ “{name}”][ in line {line}] lies outside the vault; its description takes its place.",
        "[第 {line} 行的]图片[“{name}”]不在笔记库内，已用说明文字代替。",
    ),
    "warning.export_image_missing": Text(
        "The picture[ “{name}”][ in line {line}] was not found; its description takes its place.",
        "找不到[第 {line} 行的]图片[“{name}”]，已用说明文字代替。",
    ),
    "warning.export_image_unreadable": Text(
        "The picture[ “{name}”][ in line {line}] is damaged or of an unsupported kind;"
        " its description takes its place.",
        "[第 {line} 行的]图片[“{name}”]已损坏或格式不受支持，已用说明文字代替。",
    ),
    "warning.export_image_too_large": Text(
        "The picture[ “{name}”][ in line {line}] is too large for this format;"
        " its description takes its place. PDF has no such limit.",
        "[第 {line} 行的]图片[“{name}”]对该格式来说太大，已用说明文字代替；导出 PDF 没有此限制。",
    ),
    "warning.export_formula_unsupported": Text(
        "The formula[ “{source}”][ in line {line}] cannot be drawn; its source was kept.",
        "[第 {line} 行的]公式[“{source}”]无法绘制，已保留源码。",
    ),
    "warning.export_formula_too_complex": Text(
        "The formula[ “{source}”][ in line {line}] is too long or too deep for this format;"
        " its source was kept.",
        "[第 {line} 行的]公式[“{source}”]过长或嵌套过深，已保留源码。",
    ),
    "warning.export_resource_limit": Text(
        "There are more pictures and formulas than this format takes[ ({limit})]; the rest kept their source.",
        "图片和公式的数量超过了该格式的上限[（{limit}）]，其余的保留源码。",
    ),
    "warning.export_plot_limit": Text(
        "There are more function plots than this format takes[ ({limit})]; the rest kept their source.",
        "函数图超过了该格式的上限[（{limit}）]，其余的保留源码。",
    ),
    "warning.export_theme_unknown": Text(
        "The theme[ “{theme}”] is not known here; the light colours were used.",
        "没有找到主题[“{theme}”]，已使用浅色配色。",
    ),
    "warning.MERMAID_PARSE_FAILED": Text(
        "The text of a diagram[ in line {line}] contains a mistake; its source was kept.",
        "[第 {line} 行]有图表代码出错，已保留源码。",
    ),
    "warning.MERMAID_RENDER_FAILED": Text(
        "A diagram[ in line {line}] came without a picture; its source was kept. Open the preview before exporting.",
        "[第 {line} 行]有图表缺少图片，已保留源码；请先打开预览再导出。",
    ),
    "warning.MERMAID_SVG_UNSAFE": Text(
        "A diagram[ in line {line}] contained active content; its source was kept instead.",
        "[第 {line} 行]有图表含有可执行内容，已改为保留源码。",
    ),
    "warning.FUNCTION_PLOT_PARSE_FAILED": Text(
        "A function plot[ in line {line}][, column {column}] could not be understood; its source was kept.[ {reason}]",
        "[第 {line} 行][第 {column} 列]有函数图无法识别，已保留源码。[{reason}]",
    ),
    "warning.FUNCTION_PLOT_EXPRESSION_UNSAFE": Text(
        "A function plot[ in line {line}][, column {column}] uses something that is not allowed;"
        " its source was kept.[ {reason}]",
        "[第 {line} 行][第 {column} 列]有函数图使用了不允许的写法，已保留源码。[{reason}]",
    ),
    "warning.FUNCTION_PLOT_RENDER_FAILED": Text(
        "A function plot[ in line {line}] could not be drawn; its source was kept.",
        "[第 {line} 行]有函数图无法绘制，已保留源码。",
    ),
    "warning.export_plot_note": Text(
        "A function plot[ in line {line}] was drawn, but not as written: {reason}",
        "[第 {line} 行的]函数图已绘制，但有需要注意之处：{reason}",
    ),
    "warning.export_glyph_missing": Text(
        "Some characters[ ({characters})] are in none of the fonts here; boxes stand in their place.",
        "部分字符[（{characters}）]在现有字体中不存在，已用方框代替。",
    ),
    "warning.export_table_too_wide": Text(
        "A table[ in line {line}] has more columns than a page can show[ ({limit})]; its rows were kept as text.",
        "[第 {line} 行]有表格的列数超过页面所能容纳[（{limit}）]，已按文字保留各行。",
    ),
}

EXPORTS: Final[dict[str, Text]] = {
    "export.untitled": Text("Document", "文档"),
    "export.tags": Text("Tags", "标签"),
    "export.created": Text("Created", "创建时间"),
    "export.updated": Text("Updated", "更新时间"),
    "export.task_done": Text("Done", "已完成"),
    "export.task_open": Text("Not done", "未完成"),
    "export.footnote_back": Text("Back to the text", "返回正文"),
}

CHAT: Final[dict[str, Text]] = {
    "chat.untitled": Text("New chat", "新对话"),
}

CONTEXT: Final[dict[str, Text]] = {
    "context.retrieval_unavailable": Text(
        "Your notes could not be searched, so this answer does without them.",
        "暂时无法检索笔记，本次回答没有参考笔记内容。",
    ),
    "context.retrieval_degraded": Text(
        "Search by meaning is not available; your notes were searched by keywords.",
        "语义搜索暂不可用，已改用关键词搜索笔记。",
    ),
    "context.tool_limit": Text(
        "The limit of searches for one answer was reached.",
        "本次回答的检索次数已达上限。",
    ),
    "context.history_truncated": Text(
        "The conversation is long, so its oldest messages were left out of this request.",
        "对话较长，本次没有把最早的消息发给模型。",
    ),
    "context.attachment_reading": Text(
        "Reading the attachment[ “{name}”]", "正在读取附件[“{name}”]"
    ),
    "context.attachment_transcribing": Text(
        "Transcribing the attachment[ “{name}”]", "正在转写附件[“{name}”]"
    ),
    "context.attachment_ready": Text(
        "The attachment[ “{name}”] has been read.", "附件[“{name}”]已读取。"
    ),
    "context.attachment_truncated": Text(
        "The attachment[ “{name}”] is long; only its first part was used.",
        "附件[“{name}”]较长，只使用了前面的部分。",
    ),
    "context.workspace_truncated": Text(
        "The open file is long; only a part of it was used.",
        "当前文件较长，只使用了其中一部分。",
    ),
}

SUGGESTIONS: Final[dict[str, Text]] = {
    "suggestion.hermes_not_configured": Text(
        "Enter the address of a running Hermes gateway in the Hermes settings.",
        "请在 Hermes 设置中填写正在运行的网关地址。",
    ),
    "suggestion.hermes_unreachable": Text(
        "The Hermes gateway cannot be reached. Check that it is running and that its address is right.",
        "无法连接 Hermes 网关，请确认它正在运行且地址正确。",
    ),
    "suggestion.hermes_timeout": Text(
        "The Hermes gateway did not answer in time. Try again, or restart the gateway.",
        "Hermes 网关没有及时响应，请重试或重启网关。",
    ),
    "suggestion.hermes_bad_response": Text(
        "The address does not answer like a Hermes gateway. Check the address and update Hermes.",
        "该地址的响应不像 Hermes 网关，请检查地址并更新 Hermes。",
    ),
    "suggestion.hermes_model_default_missing": Text(
        "The profile[ “{profile}”] has no model.default. Choose a default model in the Hermes settings.",
        "配置[“{profile}”]缺少 model.default，请在 Hermes 设置中选择默认模型。",
    ),
    "suggestion.hermes_api_key_missing": Text(
        "The profile[ “{profile}”] has no API key. Enter one in the Hermes settings.",
        "配置[“{profile}”]缺少 API 密钥，请在 Hermes 设置中填写。",
    ),
    "suggestion.hermes_not_installed": Text(
        "Hermes was not found on this computer. Install it to use its profiles and skills.",
        "这台电脑上没有找到 Hermes，安装后才能使用它的配置和技能。",
    ),
}

MESSAGES: Final[dict[str, Text]] = {
    **DEMO,
    **PHASES,
    **OPERATIONS,
    **WARNINGS,
    **EXPORTS,
    **PLOTS,
    **CHAT,
    **CONTEXT,
    **ATTACHMENTS,
    **SUGGESTIONS,
    **DOCTOR,
    **RUNTIME,
    **LOCAL_MODELS,
    **PROVIDERS,
}
