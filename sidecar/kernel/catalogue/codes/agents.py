"""Codes of agent runs, tools, the assistant, resource files and the gateway."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import ErrorSpec

AGENT: Final[dict[str, ErrorSpec]] = {
    "AGENT_RUN_NOT_FOUND": ErrorSpec(
        404,
        "This agent run does not exist. Refresh the list of runs.",
        "找不到这次智能体运行，请刷新列表。",
    ),
    "AGENT_CAPACITY_EXCEEDED": ErrorSpec(
        429,
        "Too many agent runs are active. Wait for one to end, or stop one.",
        "正在运行的智能体任务太多，请等待或停止其中一个。",
    ),
    "AGENT_RUN_TIMEOUT": ErrorSpec(
        504,
        "The agent run took longer than allowed. Give it a smaller task or more time.",
        "智能体运行超时，请缩小任务范围或延长时间限制。",
    ),
    "AGENT_STEP_LIMIT_REACHED": ErrorSpec(
        409,
        "The agent used all its steps without finishing. Allow more steps or give it a smaller task.",
        "智能体用完了允许的步数仍未完成，请增加步数或缩小任务范围。",
    ),
    "AGENT_TOKEN_BUDGET_EXCEEDED": ErrorSpec(
        409,
        "The agent used up its token budget without finishing. Raise the budget or give it a smaller task.",
        "智能体用完了 Token 预算仍未完成，请提高预算或缩小任务范围。",
    ),
    "AGENT_RUN_INTERRUPTED": ErrorSpec(
        503,
        "The app was closed while the agent was working. Please start the run again.",
        "智能体运行期间应用被关闭，请重新开始。",
    ),
    "AGENT_RUN_FAILED": ErrorSpec(
        500,
        "The agent run failed. Please start it again.",
        "智能体运行失败，请重新开始。",
    ),
    "AGENT_RUN_CANCELLED": ErrorSpec(
        409,
        "The agent run was cancelled. Start it again if you still need it.",
        "智能体运行已取消，如有需要请重新开始。",
    ),
    "PERMISSION_ALREADY_RESOLVED": ErrorSpec(
        409,
        "This permission request has already been answered.",
        "这个权限请求已经处理过了。",
    ),
    "PERMISSION_DENIED": ErrorSpec(
        403,
        "You did not allow this action, so it was not carried out.",
        "你没有允许这项操作，因此没有执行。",
    ),
}

TOOLS: Final[dict[str, ErrorSpec]] = {
    "TOOL_NOT_FOUND": ErrorSpec(
        400,
        "This tool does not exist. Check which plugins and MCP servers are enabled.",
        "该工具不存在，请检查插件和 MCP 服务是否已启用。",
    ),
    "TOOL_NOT_ALLOWED": ErrorSpec(
        403,
        "This tool is not allowed in this run. Add it to the allowed tools if you want it used.",
        "本次运行不允许使用该工具，如有需要请把它加入允许的工具。",
    ),
    "TOOL_ARGUMENT_INVALID": ErrorSpec(
        422,
        "The tool was called with values it does not accept[: {reason}].",
        "调用工具时填写的内容不符合要求[：{reason}]。",
    ),
    "TOOL_TIMEOUT": ErrorSpec(
        504,
        "The tool took too long and was stopped. Please try again with less to do.",
        "工具运行时间过长，已被停止，请减少处理内容后重试。",
    ),
    "TOOL_FAILED": ErrorSpec(
        500,
        "The tool could not do its work. Please try again.",
        "工具执行失败，请重试。",
    ),
}

ASSISTANT: Final[dict[str, ErrorSpec]] = {
    "QUOTA_EXCEEDED": ErrorSpec(
        429,
        "Today's token quota is used up. It is reset tomorrow, or raise the limit in the settings.",
        "今天的 Token 额度已用完，明天会重置，也可以在设置中提高上限。",
    ),
    "CONCURRENCY_LIMIT_REACHED": ErrorSpec(
        429,
        "Too many conversations are being answered at once. Please try again shortly.",
        "同时回答的会话太多了，请稍后再试。",
    ),
    "SESSION_BUSY": ErrorSpec(
        409,
        "This conversation is still working or waiting for your decision. Finish that first.",
        "这个会话仍在处理中或在等你确认，请先完成它。",
    ),
    "SCHEDULE_BUSY": ErrorSpec(
        409,
        "This schedule is running right now. Wait until it has ended.",
        "该定时任务正在运行，请等它结束。",
    ),
    "SCHEDULE_CRON_INVALID": ErrorSpec(
        400,
        "The time rule is not valid. Use five fields, for example “0 8 * * 1” for Mondays at 8:00.",
        "时间规则无效，请使用五段写法，例如“0 8 * * 1”表示每周一 8:00。",
    ),
    "REQUEST_ID_DUPLICATE": ErrorSpec(
        409,
        "This message was already sent. Open the conversation to see the answer.",
        "这条消息已经发送过，请打开会话查看回答。",
    ),
    "INTERRUPT_NOT_PENDING": ErrorSpec(
        409,
        "Nothing is waiting for your decision in this conversation. Please refresh it.",
        "这个会话没有等待你确认的操作，请刷新。",
    ),
    "INTERRUPT_TOKEN_INVALID": ErrorSpec(
        409,
        "This request has been replaced or already answered. Refresh and decide again.",
        "这个确认请求已被更新或处理过，请刷新后再确认。",
    ),
    "MODEL_NOT_PRICED": ErrorSpec(
        409,
        "No price is set for this model. Set one, allow models without a price, or choose another model.",
        "该模型没有设置价格，请设置价格、允许使用未定价模型或换一个模型。",
    ),
    "THINKING_NOT_SUPPORTED": ErrorSpec(
        409,
        "This model has no thinking levels. Choose a model that supports thinking.",
        "该模型不支持调整思考强度，请换用支持思考的模型。",
    ),
    "UPLOAD_INVALID": ErrorSpec(
        400,
        "The uploaded file is empty or has no usable name. Please choose another file.",
        "上传的文件为空或文件名不可用，请换一个文件。",
    ),
    "UPLOAD_TOO_LARGE": ErrorSpec(
        413,
        "The uploaded file is too large. Please compress or split it.",
        "上传的文件太大，请压缩或拆分后再试。",
    ),
}

RESOURCES: Final[dict[str, ErrorSpec]] = {
    "RESOURCE_ACCESS_DENIED": ErrorSpec(
        403,
        "This file is outside what the tool may use. Add it to the scope if you want it included.",
        "该文件不在工具的可用范围内，如有需要请把它加入范围。",
    ),
    "RESOURCE_REVISION_CONFLICT": ErrorSpec(
        409,
        "The file was changed in the meantime. Reload it, then make the change again.",
        "文件在此期间被改动过，请重新加载后再修改。",
    ),
    "RESOURCE_OPS_INVALID": ErrorSpec(
        400,
        "One of the changes cannot be made to this file[: {reason}]. Nothing was changed.",
        "其中一项修改无法应用到该文件[：{reason}]，文件没有变动。",
    ),
}

GATEWAY: Final[dict[str, ErrorSpec]] = {
    "hermes_client_upstream_error": ErrorSpec(
        502,
        "Hermes did not answer properly.[ {suggestion}] Check the Hermes settings and whether its gateway is running.",
        "Hermes 没有正常响应。[{suggestion}]请检查 Hermes 设置，并确认网关正在运行。",
    ),
    "hermes_gateway_not_configured": ErrorSpec(
        503,
        "No Hermes gateway is set up. Enter its address in the Hermes settings.",
        "还没有配置 Hermes 网关，请在 Hermes 设置中填写地址。",
    ),
    "permission_denied": ErrorSpec(
        403,
        "The tool was not permitted to do this. Allow it in Hermes if you want to go on.",
        "该工具没有执行此操作的权限，如需继续请在 Hermes 中允许。",
    ),
    "GATEWAY_QUEUE_FULL": ErrorSpec(
        429,
        "Too many messages are waiting in this conversation. Wait for some to be answered.",
        "这个会话中排队的消息太多，请等部分消息得到回答后再发送。",
    ),
}
