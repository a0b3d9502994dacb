"""Codes of exports, plots and diagrams, benchmarks and themes."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import ErrorSpec

EXPORT: Final[dict[str, ErrorSpec]] = {
    "EXPORT_SOURCE_NOT_FOUND": ErrorSpec(
        404,
        "The note to export does not exist any more. Choose another one.",
        "要导出的笔记已不存在，请选择其他笔记。",
    ),
    "EXPORT_OPTIONS_INVALID": ErrorSpec(
        422,
        "One of the export options is not valid. Check the options and try again.",
        "有的导出选项无效，请检查后重试。",
    ),
    "EXPORT_ASSET_INVALID": ErrorSpec(
        422,
        "A picture for the export is damaged, repeated or too large. Reload the preview and export again.",
        "导出用的图片已损坏、重复或过大，请刷新预览后重新导出。",
    ),
    "EXPORT_UNSUPPORTED_CONTENT": ErrorSpec(
        422,
        "Nothing in this document can be shown in the chosen format. Try another format.",
        "文档内容都无法用所选格式呈现，请换一种格式。",
    ),
    "EXPORT_RENDER_FAILED": ErrorSpec(
        500,
        "The document could not be exported. Try again or choose another format.",
        "文档导出失败，请重试或换一种格式。",
    ),
    "EXPORT_CANCELLED": ErrorSpec(
        409,
        "The export was cancelled. Start it again if you still need it.",
        "导出已取消，如有需要请重新开始。",
    ),
    "EXPORT_JOB_NOT_FOUND": ErrorSpec(
        404,
        "There is no finished export here. Check the export list or export again.",
        "没有找到已完成的导出，请查看导出列表或重新导出。",
    ),
    "EXPORT_FILE_EXPIRED": ErrorSpec(
        410,
        "The exported file is no longer kept. Please export again.",
        "导出的文件已过期，请重新导出。",
    ),
    "EXPORT_OUTPUT_TOO_LARGE": ErrorSpec(
        413,
        "The exported file would be too large. Shorten the document, or export it as PDF.",
        "导出的文件过大，请精简文档或改为导出 PDF。",
    ),
}

PLOTS: Final[dict[str, ErrorSpec]] = {
    "MERMAID_PARSE_FAILED": ErrorSpec(
        422,
        "The diagram's text contains a mistake. Correct it and try again.",
        "图表代码有误，请修改后重试。",
    ),
    "MERMAID_RENDER_FAILED": ErrorSpec(
        422,
        "The diagram could not be drawn, so its text is shown instead. Open the preview, then try again.",
        "图表无法绘制，已改为显示源码，请打开预览后重试。",
    ),
    "MERMAID_SVG_UNSAFE": ErrorSpec(
        422,
        "The diagram contains active content and is not shown. Remove links and scripts from it.",
        "图表含有可执行内容，不予显示，请去掉其中的链接和脚本。",
    ),
    "FUNCTION_PLOT_PARSE_FAILED": ErrorSpec(
        422,
        "The function plot cannot be understood[: {reason}]. Please correct it.",
        "无法识别这段函数图代码[：{reason}]，请修改。",
    ),
    "FUNCTION_PLOT_EXPRESSION_UNSAFE": ErrorSpec(
        422,
        "The expression uses something that is not allowed. Use numbers, x and the usual functions only.",
        "表达式中有不允许的写法，请只使用数字、x 和常用函数。",
    ),
    "FUNCTION_PLOT_RENDER_FAILED": ErrorSpec(
        422,
        "The function could not be drawn. Change its range and try again.",
        "函数图无法绘制，请调整范围后重试。",
    ),
}

BENCHMARKS: Final[dict[str, ErrorSpec]] = {
    "BENCHMARK_DATASET_NOT_FOUND": ErrorSpec(
        404,
        "This dataset does not exist. Choose another one from the list.",
        "该数据集不存在，请从列表中另选一个。",
    ),
    "BENCHMARK_DATASET_INVALID": ErrorSpec(
        422,
        "The dataset contains a mistake. Correct the case named in the details.",
        "数据集有误，请按详情修正对应的样本。",
    ),
    "BENCHMARK_CONFIG_INVALID": ErrorSpec(
        422,
        "These benchmark settings do not fit together. Check them and try again.",
        "评测设置互相矛盾，请检查后重试。",
    ),
    "BENCHMARK_INDEX_INCOMPATIBLE": ErrorSpec(
        409,
        "The search index does not fit the current model. Rebuild it, or test keyword search only.",
        "搜索索引与当前模型不匹配，请重建索引，或只评测关键词搜索。",
    ),
    "BENCHMARK_CAPACITY_EXCEEDED": ErrorSpec(
        429,
        "Too many benchmarks are waiting. Try again when one has ended.",
        "等待中的评测太多，请等其中一个结束后再试。",
    ),
    "BENCHMARK_RUN_NOT_FOUND": ErrorSpec(
        404,
        "This benchmark run does not exist. Refresh the list of runs.",
        "找不到这次评测，请刷新列表。",
    ),
    "BENCHMARK_RUN_FAILED": ErrorSpec(
        502,
        "The benchmark could not be completed. The results so far are kept; start it again if needed.",
        "评测未能完成，已有结果会保留，如有需要请重新开始。",
    ),
    "BENCHMARK_RUN_CANCELLED": ErrorSpec(
        409,
        "The benchmark was cancelled. The results so far are kept.",
        "评测已取消，已有结果会保留。",
    ),
    "BENCHMARK_CASE_EVALUATION_FAILED": ErrorSpec(
        502,
        "This case could not be evaluated. The other cases are not affected.",
        "这个样本无法评测，其他样本不受影响。",
    ),
}

THEMES: Final[dict[str, ErrorSpec]] = {
    "THEME_PACKAGE_NOT_FOUND": ErrorSpec(
        404,
        "The theme package is no longer available. Please choose it again.",
        "主题包已不可用，请重新选择。",
    ),
    "THEME_PACKAGE_TOO_LARGE": ErrorSpec(
        413,
        "The theme package is too large to be installed.",
        "主题包太大，无法安装。",
    ),
    "THEME_MANIFEST_INVALID": ErrorSpec(
        422,
        "The theme's description file is missing or not valid. Ask the theme's author for a correct package.",
        "主题的描述文件缺失或有误，请向主题作者获取正确的安装包。",
    ),
    "THEME_PACKAGE_INCOMPATIBLE": ErrorSpec(
        409,
        "This theme needs a newer version of the app. Please update the app.",
        "该主题需要更新版本的应用，请先更新应用。",
    ),
    "THEME_RESOURCE_OUTSIDE_PACKAGE": ErrorSpec(
        400,
        "The theme refers to files outside its package, so it was not installed.",
        "主题引用了安装包以外的文件，没有安装。",
    ),
    "THEME_CSS_UNSAFE": ErrorSpec(
        400,
        "The theme's styles contain something that is not allowed, so it was not installed.",
        "主题样式中含有不允许的内容，没有安装。",
    ),
    "THEME_ALREADY_INSTALLED": ErrorSpec(
        409,
        "This theme is already installed. Remove it first to install another version.",
        "该主题已经安装，如需换版本请先卸载。",
    ),
    "THEME_NOT_FOUND": ErrorSpec(
        404,
        "This theme does not exist. Refresh the list of themes.",
        "找不到这个主题，请刷新列表。",
    ),
    "THEME_BUILTIN_PROTECTED": ErrorSpec(
        403,
        "Built-in themes cannot be removed or replaced.",
        "内置主题不能卸载或替换。",
    ),
}
