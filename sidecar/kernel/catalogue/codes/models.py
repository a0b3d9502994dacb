"""Codes of model providers, model routing, and the notes chat."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import ErrorSpec

PROVIDERS: Final[dict[str, ErrorSpec]] = {
    "PROVIDER_AUTH_FAILED": ErrorSpec(
        502,
        "The provider did not accept the API key. Check the key in the provider settings.",
        "模型服务没有接受 API 密钥，请在服务设置中检查密钥。",
    ),
    "PROVIDER_RATE_LIMITED": ErrorSpec(
        429,
        "The provider is receiving too many requests, or your balance is used up. Wait a little or check your plan.",
        "模型服务请求过于频繁或额度已用完，请稍后再试或检查账户额度。",
    ),
    "PROVIDER_TIMEOUT": ErrorSpec(
        504,
        "The provider did not answer in time. Please try again later.",
        "模型服务没有及时响应，请稍后重试。",
    ),
    "PROVIDER_UNAVAILABLE": ErrorSpec(
        503,
        "The provider cannot be reached. Check your network and the provider's address.",
        "无法连接模型服务，请检查网络和服务地址。",
    ),
    "PROVIDER_PROTOCOL_ERROR": ErrorSpec(
        502,
        "The provider's answer was not understood. Check its address and protocol type.",
        "无法识别模型服务的回应，请检查服务地址和协议类型。",
    ),
    "PROVIDER_INVALID_RESPONSE": ErrorSpec(
        502,
        "The provider sent an incomplete or malformed answer. Try again, or use another model.",
        "模型服务返回的内容不完整或格式有误，请重试或更换模型。",
    ),
    "PROVIDER_EMPTY_RESPONSE": ErrorSpec(
        422,
        "The provider answered, but without any content. Check the model name and the extra request fields.",
        "模型服务有回应但没有内容，请检查模型名称和附加的请求字段。",
    ),
    "PROVIDER_STREAM_TRUNCATED": ErrorSpec(
        502,
        "The connection to the provider broke off in the middle of the answer. Please try again.",
        "回答还没结束，与模型服务的连接就中断了，请重试。",
    ),
    "PROVIDER_STREAM_INTERRUPTED": ErrorSpec(
        502,
        "The answer was cut short because the app was closed. Please ask again.",
        "应用关闭导致回答中断，请重新提问。",
    ),
    "PROVIDER_DISABLED": ErrorSpec(
        409,
        "This provider is switched off. Switch it on in the provider settings.",
        "该模型服务已停用，请在服务设置中启用。",
    ),
    "PROVIDER_IN_USE": ErrorSpec(
        409,
        "This provider is still selected in the model routing. Choose another one there first.",
        "模型分配中仍在使用该服务，请先在那里换成其他服务。",
    ),
}

MODELS: Final[dict[str, ErrorSpec]] = {
    "MODEL_NOT_FOUND": ErrorSpec(
        404,
        "This model does not exist. Choose another one from the list.",
        "该模型不存在，请从列表中另选一个。",
    ),
    "MODEL_CAPABILITY_MISMATCH": ErrorSpec(
        400,
        "This model or provider cannot do that. Choose one that supports it.",
        "该模型或服务不支持这项功能，请换一个支持的。",
    ),
    "MODEL_CONTEXT_LENGTH_EXCEEDED": ErrorSpec(
        400,
        "The message with its attachments is too long for this model. Shorten it or choose a model that takes more.",
        "消息连同附件超出了模型的长度上限，请精简内容或换用上下文更长的模型。",
    ),
    "MODEL_ROUTING_VERSION_CONFLICT": ErrorSpec(
        409,
        "The model routing was changed elsewhere. Reload it, then make your change again.",
        "模型分配已在别处修改过，请重新加载后再改。",
    ),
}

CHAT: Final[dict[str, ErrorSpec]] = {
    "CHAT_ATTACHMENT_FAILED": ErrorSpec(
        422,
        "The attachment[ “{name}”] could not be read[: {reason}]. Remove it, or attach it in another format.",
        "附件[“{name}”]无法读取[（{reason}）]，请移除它或换一种格式。",
    ),
}
