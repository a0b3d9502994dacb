"""Texts about attachments that a model is to read: why one can't be, and what was left out of one.

A reason stands inside the sentence of ``CHAT_ATTACHMENT_FAILED``, and so has no full stop.
"""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import Text

ATTACHMENTS: Final[dict[str, Text]] = {
    "attachment.damaged": Text("the file is damaged", "文件已损坏"),
    "attachment.encrypted": Text(
        "it is protected with a password; save a copy without one",
        "文件有密码保护，请另存一份不带密码的",
    ),
    "attachment.missing": Text("the file is no longer there", "文件已不存在"),
    "attachment.wrong_type": Text("its content is not what its name says", "文件内容与扩展名不符"),
    "attachment.unsupported": Text(
        "files of this kind cannot be read as text", "这类文件无法读取文字"
    ),
    "attachment.no_text": Text(
        "no text was found in it; if it shows pictures of text, attach the pictures",
        "其中没有找到文字；如果文字在图片里，请直接添加图片",
    ),
    "attachment.too_large": Text(
        "it is larger than can be read once unpacked", "解压后的内容超过可读取的大小"
    ),
    "attachment.too_complex": Text(
        "it is built too intricately to be read safely", "文件结构过于复杂，无法安全读取"
    ),
    "attachment.too_many_pixels": Text(
        "the picture has more pixels than can be read; save it smaller",
        "图片像素过多，请缩小后保存",
    ),
    "attachment.took_too_long": Text("reading it took too long", "读取时间过长"),
    "attachment.converter_missing": Text(
        "old PowerPoint files (.ppt) can only be read with LibreOffice installed; save it as .pptx instead",
        "旧版 PowerPoint 文件（.ppt）需要安装 LibreOffice 才能读取，可改存为 .pptx",
    ),
    "attachment.conversion_failed": Text(
        "LibreOffice could not convert this old PowerPoint file (.ppt); save it as .pptx instead",
        "LibreOffice 无法转换这个旧版 PowerPoint 文件（.ppt），请改存为 .pptx",
    ),
    "attachment.pictures_left_out": Text(
        "The pictures in the attachment[ “{name}”] ({count}) were not read, only its text.",
        "只读取了附件[“{name}”]的文字，其中的图片（{count} 张）没有读取。",
    ),
    "attachment.objects_left_out": Text(
        "Embedded objects in the attachment[ “{name}”] ({count}) were not read.",
        "附件[“{name}”]中嵌入的对象（{count} 个）没有读取。",
    ),
}
