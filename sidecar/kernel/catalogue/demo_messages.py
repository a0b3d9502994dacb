"""What ``sidecar demo`` says to whoever runs it."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import Text

DEMO: Final[dict[str, Text]] = {
    "demo.step.launch": Text("Start the sidecar", "启动引擎"),
    "demo.step.upload": Text("Upload the recording", "上传录音"),
    "demo.step.transcribe": Text("Transcribe", "转写"),
    "demo.step.note": Text("Write the note", "写入笔记"),
    "demo.step.search": Text("Search for “{phrase}”", "搜索“{phrase}”"),
    "demo.step.export": Text("Export as HTML", "导出为 HTML"),
    "demo.step.stop": Text("Stop the sidecar", "停止引擎"),
    "demo.heading.transcript": Text("Transcript ({language})", "转写文本（{language}）"),
    "demo.heading.note": Text("Note", "笔记"),
    "demo.heading.hit": Text("Search hit", "搜索结果"),
    "demo.heading.document": Text("Document", "文档"),
    "demo.heading.seconds": Text("Seconds", "用时（秒）"),
    "demo.recording_missing": Text(
        "There is no file {path}. Give the path of a recording, or none for the bundled one.",
        "找不到文件 {path}。请给出一段录音的路径，或不填以使用自带的录音。",
    ),
    "demo.folder_unusable": Text(
        "The folder {path} can't be written to. Choose another one with --data-dir.",
        "无法写入文件夹 {path}，请用 --data-dir 指定另一个文件夹。",
    ),
    "demo.model_missing": Text(
        "No speech model was found. Put a faster-whisper model (a folder with model.bin, config.json,"
        " tokenizer.json and vocabulary.txt) into {path}, or name its parent folder with --models-dir."
        " In a checkout of the source, `python3 dev.py demo` fetches a small one.",
        "没有找到语音模型。请把 faster-whisper 模型（包含 model.bin、config.json、tokenizer.json 和"
        " vocabulary.txt 的文件夹）放到 {path}，或用 --models-dir 指定它所在的文件夹。"
        "在源码目录中，运行 `python3 dev.py demo` 会自动获取一个小模型。",
    ),
    "demo.no_speech": Text(
        "No speech was found in this recording, so there is nothing to make a note of.",
        "这段录音里没有听到语音，因此没有可以写成笔记的内容。",
    ),
    "demo.no_hit": Text(
        "The search didn't find the note by “{phrase}”.", "用“{phrase}”没有搜到这条笔记。"
    ),
    "demo.step.read_notes": Text("Read the notes", "读取笔记"),
    "demo.heading.hits": Text("Found in the notes ({count})", "在笔记中找到（{count}）"),
    "demo.heading.answer": Text("Answer of {model} at {server}", "{model} 的回答（{server}）"),
    "demo.heading.sources": Text("Sources that the answer cites", "回答引用的来源"),
    "demo.searched": Text("The model searched for: {words}", "模型检索了：{words}"),
    "demo.found": Text("passages found in the notes", "在笔记中找到的段落"),
    "demo.without_tools": Text(
        "This model or server takes no tools, so it gets the passages above along with the question.",
        "该模型或服务不支持工具调用，因此把上面的段落随问题一起发给它。",
    ),
    "demo.no_model_server": Text(
        "No model server was given, so this is what the search finds by itself. To have it answered, name an"
        " OpenAI-compatible server, for example one of Ollama or llama.cpp on this computer:"
        " --base-url http://127.0.0.1:11434/v1 (or OPENAI_BASE_URL), and a model with --model.",
        "没有指定模型服务，以上是检索本身的结果。要得到回答，请指定一个兼容 OpenAI 的服务，例如本机的 Ollama 或"
        " llama.cpp：--base-url http://127.0.0.1:11434/v1（或环境变量 OPENAI_BASE_URL），并用 --model 选择模型。",
    ),
    "demo.no_chat_model": Text(
        "The server lists no chat model. Name one with --model.",
        "该服务没有列出对话模型，请用 --model 指定。",
    ),
    "demo.scan_too_long": Text(
        "Reading the notes takes too long. Choose a smaller folder with --vault.",
        "读取笔记用时过长，请用 --vault 指定较小的文件夹。",
    ),
    "demo.failed": Text("The demo stopped: {reason}", "演示中断：{reason}"),
}
