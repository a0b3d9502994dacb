"""Texts of model providers: what the vendors on the list offer, and what a check of one says."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import Text

PROVIDERS: Final[dict[str, Text]] = {
    "provider.preset.deepseek": Text(
        "DeepSeek's own models, with thinking and tools", "深度求索的模型，支持思考与工具调用"
    ),
    "provider.preset.dashscope": Text(
        "Alibaba Cloud Model Studio: Qwen and others, embeddings too",
        "阿里云百炼：通义千问等模型，也提供向量模型",
    ),
    "provider.preset.moonshot": Text(
        "Moonshot AI: the Kimi models, for long texts", "月之暗面的 Kimi 模型，擅长长文本"
    ),
    "provider.preset.zhipu": Text("Zhipu AI: the GLM models", "智谱 AI 的 GLM 系列模型"),
    "provider.preset.siliconflow": Text(
        "SiliconFlow: many open models, embeddings and speech recognition too",
        "硅基流动：众多开源模型，也提供向量与语音识别",
    ),
    "provider.preset.volcengine": Text("Volcengine Ark: Doubao and others", "火山方舟：豆包等模型"),
    "provider.preset.minimax": Text("MiniMax: the M models", "MiniMax 的 M 系列模型"),
    "provider.preset.stepfun": Text("StepFun: the Step models", "阶跃星辰的 Step 系列模型"),
    "provider.preset.openai": Text(
        "OpenAI's models over the Responses protocol", "OpenAI 的模型，使用 Responses 协议"
    ),
    "provider.preset.openai-chat": Text(
        "OpenAI's models over Chat Completions; embeddings and speech recognition too",
        "OpenAI 的模型，使用 Chat Completions 协议，也提供向量与语音识别",
    ),
    "provider.preset.anthropic": Text("Anthropic's Claude models", "Anthropic 的 Claude 模型"),
    "provider.preset.google": Text(
        "Google's Gemini models over the compatible endpoint",
        "Google 的 Gemini 模型，使用兼容接口",
    ),
    "provider.preset.openrouter": Text(
        "OpenRouter: the models of many vendors with one key",
        "OpenRouter：一个密钥使用多家厂商的模型",
    ),
    "provider.preset.groq": Text(
        "Groq: open models, very fast; speech recognition too",
        "Groq：速度很快的开源模型，也提供语音识别",
    ),
    "provider.preset.mistral": Text(
        "Mistral AI's models, embeddings too", "Mistral AI 的模型，也提供向量模型"
    ),
    "provider.preset.xai": Text("xAI's Grok models", "xAI 的 Grok 模型"),
    "provider.preset.ollama": Text(
        "Models on this machine, run by Ollama", "由 Ollama 在本机运行的模型"
    ),
    "provider.preset.lmstudio": Text(
        "Models on this machine, run by LM Studio", "由 LM Studio 在本机运行的模型"
    ),
    "provider.preset.llamacpp": Text(
        "A model on this machine, run by llama.cpp's server", "由 llama.cpp 服务在本机运行的模型"
    ),
    "provider.preset.vllm": Text(
        "A model on this machine or in your network, run by vLLM",
        "由 vLLM 在本机或局域网运行的模型",
    ),
    "provider.preset.custom": Text(
        "Any other server that speaks Chat Completions: enter its address",
        "其他兼容 Chat Completions 的服务：请填写它的地址",
    ),
    "provider.key_hint": Text("Make a key at {address}", "请在 {address} 创建密钥"),
    "provider.key_hint.none": Text("No key is needed", "不需要密钥"),
    "provider.key_hint.custom": Text(
        "If the server wants a key, enter it", "如果服务需要密钥，请填写"
    ),
}
