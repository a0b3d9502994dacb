"""Codes of MCP servers and plugins."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import ErrorSpec

MCP: Final[dict[str, ErrorSpec]] = {
    "MCP_SERVER_NOT_FOUND": ErrorSpec(
        404,
        "This MCP server does not exist. Refresh the list of servers.",
        "找不到这个 MCP 服务，请刷新列表。",
    ),
    "MCP_SERVER_NAME_INVALID": ErrorSpec(
        422,
        "The server's name must have 1 to 80 ordinary characters.",
        "服务名称须为 1 到 80 个普通字符。",
    ),
    "MCP_SERVER_LIMIT_REACHED": ErrorSpec(
        409,
        "No more MCP servers can be added. Delete one that you do not need.",
        "MCP 服务数量已达上限，请先删除不需要的服务。",
    ),
    "MCP_SERVER_VERSION_CONFLICT": ErrorSpec(
        409,
        "This server's settings were changed elsewhere. Reload them, then make your change again.",
        "该服务的设置已在别处修改过，请重新加载后再改。",
    ),
    "MCP_SERVER_ALREADY_ENABLED": ErrorSpec(
        409,
        "This MCP server is already enabled. Disable it first.",
        "该 MCP 服务已经启用，请先停用。",
    ),
    "MCP_CONFIG_INVALID": ErrorSpec(
        422,
        "These settings do not fit the server's connection type. Please check them.",
        "这些设置与服务的连接方式不符，请检查。",
    ),
    "MCP_COMMAND_INVALID": ErrorSpec(
        422,
        "Enter one program as the command and put its arguments in the arguments list.",
        "命令只能填写一个程序，参数请写在参数列表里。",
    ),
    "MCP_URL_INVALID": ErrorSpec(
        422,
        "Enter a full http or https address, without a user name, password or “#” part.",
        "请填写完整的 http 或 https 地址，不要包含用户名、密码或“#”后的部分。",
    ),
    "MCP_HEADER_INVALID": ErrorSpec(
        422,
        "One of the headers cannot be used. Keep logins and keys in the secret headers.",
        "有的请求头不可用，登录信息和密钥请放在加密请求头中。",
    ),
    "MCP_ENVIRONMENT_INVALID": ErrorSpec(
        422,
        "One of the environment variables cannot be used. Keep keys and passwords in the secret variables.",
        "有的环境变量不可用，密钥和密码请放在加密变量中。",
    ),
    "MCP_PERMISSION_INVALID": ErrorSpec(
        422,
        "A permission is unknown or was not declared. Correct the declared permissions.",
        "有的权限不存在或没有声明，请修正权限声明。",
    ),
    "MCP_TRANSPORT_UNSUPPORTED": ErrorSpec(
        422,
        "This connection type is not supported. Choose another one.",
        "不支持这种连接方式，请换一种。",
    ),
    "MCP_TRUST_APPROVAL_REQUIRED": ErrorSpec(
        403,
        "You have not confirmed that you trust this program yet. Review its settings and confirm them first.",
        "你还没有确认信任这个程序，请先查看配置并确认。",
    ),
    "MCP_TRUST_DIGEST_STALE": ErrorSpec(
        409,
        "The settings have changed since you looked at them. Review them again, then confirm.",
        "配置在你查看之后有变动，请重新查看后再确认。",
    ),
    "MCP_SANDBOX_REQUIRED": ErrorSpec(
        403,
        "Local MCP programs cannot be started in this version. Use a server that is reached over HTTP.",
        "当前版本不能启动本地 MCP 程序，请改用 HTTP 方式的服务。",
    ),
    "MCP_CONNECTION_TEST_REQUIRED": ErrorSpec(
        409,
        "Test the connection with the current settings before enabling this server.",
        "启用之前，请先用当前设置测试连接。",
    ),
    "MCP_SECRET_REQUIRED": ErrorSpec(
        409,
        "A secret[ “{key}”] that this server needs has not been entered. Enter it, then try again.",
        "该服务所需的密钥[“{key}”]还没有填写，请填写后重试。",
    ),
    "MCP_SECRET_NOT_DECLARED": ErrorSpec(
        400,
        "This server's settings do not list such a secret. Add its name to the settings first.",
        "该服务的设置中没有声明这个密钥，请先把名称加到设置里。",
    ),
    "MCP_SECRET_KIND_INVALID": ErrorSpec(
        400,
        "This kind of secret does not fit the server's connection type.",
        "这种密钥类型与服务的连接方式不符，请检查后重新填写。",
    ),
    "MCP_SECRET_STORE_ERROR": ErrorSpec(
        503,
        "The secret could not be read or saved. Restart the app and try again.",
        "密钥无法读取或保存，请重启应用后重试。",
    ),
    "MCP_REGISTRY_INVALID": ErrorSpec(
        503,
        "The file with the MCP servers is damaged. Restore it from a backup, or remove it and add the servers again.",
        "MCP 服务配置文件已损坏，请从备份恢复，或删除后重新添加。",
    ),
    "MCP_REGISTRY_WRITE_FAILED": ErrorSpec(
        503,
        "The MCP servers' settings could not be saved. Check the free disk space and try again.",
        "MCP 服务的设置无法保存，请检查磁盘空间后重试。",
    ),
    "MCP_INITIALIZE_FAILED": ErrorSpec(
        502,
        "The MCP server could not be started or did not answer as expected. Check its settings.",
        "MCP 服务无法启动或没有正常响应，请检查其设置。",
    ),
    "MCP_CAPABILITY_UNSUPPORTED": ErrorSpec(
        502,
        "This MCP server offers no tools, so it cannot be used here.",
        "该 MCP 服务不提供工具，无法在这里使用。",
    ),
    "MCP_TOOL_SCHEMA_INVALID": ErrorSpec(
        502,
        "The server's tools[ (“{tool}”)] are not described correctly, so none was added. Update the server.",
        "该服务的工具[（“{tool}”）]描述有误，所有工具都没有添加，请更新该服务。",
    ),
    "MCP_TOOL_CALL_FAILED": ErrorSpec(
        502,
        "The MCP server reported an error while running the tool[: {reason}].",
        "MCP 服务在运行工具时报告了错误[：{reason}]。",
    ),
    "MCP_TOOL_RESULT_TOO_LARGE": ErrorSpec(
        413,
        "The tool returned too much data. Ask for less at once.",
        "工具返回的数据太多，请减少一次请求的内容。",
    ),
    "MCP_HTTP_REQUEST_FAILED": ErrorSpec(
        503,
        "The MCP server cannot be reached. Check its address and your network.",
        "无法连接 MCP 服务，请检查地址和网络。",
    ),
    "MCP_HTTP_RESPONSE_INVALID": ErrorSpec(
        502,
        "The address did not answer like an MCP server. Check the address and connection type.",
        "该地址的响应不像是 MCP 服务，请检查地址和连接方式。",
    ),
}

PLUGINS: Final[dict[str, ErrorSpec]] = {
    "PLUGIN_MANIFEST_INVALID": ErrorSpec(
        422,
        "The plugin's description file is missing or not valid. Ask the plugin's author for a correct package.",
        "插件的描述文件缺失或有误，请向插件作者获取正确的安装包。",
    ),
    "PLUGIN_PACKAGE_INVALID": ErrorSpec(
        422,
        "The plugin package contains files that are not allowed, so it was not installed.",
        "插件包中含有不允许的文件，没有安装。",
    ),
    "PLUGIN_PACKAGE_TOO_LARGE": ErrorSpec(
        413,
        "The plugin package is too large to be installed.",
        "插件包太大，无法安装。",
    ),
    "PLUGIN_PACKAGE_PATH_FORBIDDEN": ErrorSpec(
        403,
        "Plugins can only be installed by choosing the package in the app's file dialog.",
        "请通过应用的文件选择窗口选取插件包来安装。",
    ),
    "PLUGIN_ALREADY_INSTALLED": ErrorSpec(
        409,
        "This plugin is already installed. Remove it first to install another version.",
        "该插件已经安装，如需换版本请先卸载。",
    ),
    "PLUGIN_NOT_ENABLED": ErrorSpec(
        409,
        "This plugin is not enabled. Enable it first.",
        "该插件还没有启用，请先启用。",
    ),
    "PLUGIN_PERMISSION_REQUIRED": ErrorSpec(
        403,
        "The plugin needs permissions that you have not granted. Review them, then enable it again.",
        "插件需要的权限还没有授予，请查看并授权后再启用。",
    ),
    "PLUGIN_HOST_UNAVAILABLE": ErrorSpec(
        503,
        "The plugin is not running. Enable or restart it, then try again.",
        "插件没有运行，请启用或重启它后重试。",
    ),
    "PLUGIN_HOST_START_FAILED": ErrorSpec(
        503,
        "The plugin could not be started. Check that the programs it needs are installed.",
        "插件无法启动，请确认它所需的程序已经安装。",
    ),
    "PLUGIN_HOST_UNHEALTHY": ErrorSpec(
        503,
        "The plugin has stopped working properly. Restart it, then try again.",
        "插件运行异常，请重启它后重试。",
    ),
    "PLUGIN_COMMAND_NOT_FOUND": ErrorSpec(
        404,
        "This command is not available. Check that its plugin is enabled.",
        "该命令不可用，请确认对应的插件已经启用。",
    ),
    "PLUGIN_COMMAND_CONFLICT": ErrorSpec(
        409,
        "Another command already has this name, so the plugin was not added.",
        "已有同名命令，插件没有添加。",
    ),
    "PLUGIN_COMMAND_INVALID": ErrorSpec(
        422,
        "A command of this plugin is not described correctly. Ask the plugin's author for a correct package.",
        "插件的命令描述有误，请向插件作者获取正确的安装包。",
    ),
    "PLUGIN_COMMAND_ARGUMENT_INVALID": ErrorSpec(
        422,
        "The command does not accept these values. Correct them and try again.",
        "命令不接受这些参数，请修改后重试。",
    ),
    "PLUGIN_COMMAND_CONTEXT_INVALID": ErrorSpec(
        400,
        "The command cannot be used here. It may need an open vault or selected text.",
        "当前无法使用该命令，可能需要先打开笔记库或选中文字。",
    ),
    "PLUGIN_COMMAND_TIMEOUT": ErrorSpec(
        504,
        "The command took too long and was stopped. Please try again.",
        "命令运行时间过长，已被停止，请重试。",
    ),
    "PLUGIN_COMMAND_EXECUTION_FAILED": ErrorSpec(
        502,
        "The plugin reported an error while running the command.",
        "插件在执行命令时出错，请重试或联系插件作者。",
    ),
    "PLUGIN_COMMAND_RESULT_INVALID": ErrorSpec(
        502,
        "The plugin returned something the app cannot use. Please update the plugin.",
        "插件返回了应用无法使用的结果，请更新插件。",
    ),
    "PLUGIN_COMMAND_RESULT_TOO_LARGE": ErrorSpec(
        413,
        "The plugin returned too much data. Use it on a smaller selection.",
        "插件返回的数据太多，请缩小选取的范围。",
    ),
    "PLUGIN_COMMAND_TARGET_SCHEMA_MISMATCH": ErrorSpec(
        409,
        "The plugin's command and its tool do not fit together. Please update the plugin.",
        "插件的命令与工具不匹配，请更新插件。",
    ),
    "PLUGIN_SETTINGS_SCHEMA_INVALID": ErrorSpec(
        422,
        "The plugin's settings are not described correctly. Ask the plugin's author for a correct package.",
        "插件的设置描述有误，请向插件作者获取正确的安装包。",
    ),
    "PLUGIN_SETTINGS_VERSION_CONFLICT": ErrorSpec(
        409,
        "The plugin's settings have a newer form now. Reload the page, then save again.",
        "插件的设置项已更新，请重新加载页面后再保存。",
    ),
    "PLUGIN_SETTINGS_FIELD_INVALID": ErrorSpec(
        422,
        "The value of a setting[ “{key}”] is not valid. Correct it and save again.",
        "设置项[“{key}”]的内容无效，请修改后再保存。",
    ),
    "PLUGIN_SETTINGS_REQUIRED": ErrorSpec(
        409,
        "The plugin still needs some settings. Fill them in, then try again.",
        "插件还有必填的设置没有填写，请填写后重试。",
    ),
    "PLUGIN_SECRET_FIELD_NOT_FOUND": ErrorSpec(
        404,
        "The plugin has no such secret setting.",
        "该插件没有这个加密设置项。",
    ),
    "PLUGIN_SECRET_ACCESS_DENIED": ErrorSpec(
        403,
        "The plugin asked for a secret that it may not use.",
        "插件请求了它无权使用的密钥，已被拒绝。",
    ),
    "PLUGIN_SECRET_REQUIRED": ErrorSpec(
        409,
        "A secret[ “{key}”] that the plugin needs has not been entered. Enter it, then try again.",
        "插件所需的密钥[“{key}”]还没有填写，请填写后重试。",
    ),
    "PLUGIN_SECRET_VALUE_INVALID": ErrorSpec(
        422,
        "This secret cannot be saved. It must not be empty or longer than 8192 characters.",
        "该密钥无法保存，内容不能为空，也不能超过 8192 个字符。",
    ),
    "PLUGIN_SECRET_STORE_ERROR": ErrorSpec(
        503,
        "The secret could not be read or saved. Restart the app and try again.",
        "密钥无法读取或保存，请重启应用后重试。",
    ),
    "PLUGIN_STORAGE_ERROR": ErrorSpec(
        503,
        "The plugins' settings cannot be read or saved. Check the free disk space and restart the app.",
        "插件设置无法读取或保存，请检查磁盘空间后重启应用。",
    ),
}
