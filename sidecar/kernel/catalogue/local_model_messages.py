"""Texts about local models: why one could not be imported or downloaded."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import Text

LOCAL_MODELS: Final[dict[str, Text]] = {
    "model_import.missing_files": Text(
        "These files of the model were not found: {files}.", "未找到该模型的以下文件：{files}。"
    ),
    "model_import.wrong_files": Text(
        "These files are damaged, cut off, or belong to another model: {files}.",
        "以下文件已损坏、不完整或属于其他模型：{files}。",
    ),
    "model_import.damaged_archive": Text(
        "The archive is damaged, or was not copied or downloaded completely.",
        "压缩包已损坏，或没有完整复制或下载。",
    ),
    "model_import.not_a_folder_or_archive": Text(
        "This is no folder and no zip or tar archive, or only a part of one.",
        "这不是文件夹、zip 或 tar 压缩包，或者文件不完整。",
    ),
    "model_import.unsafe_archive": Text(
        "The archive holds links, or names that lead out of it, or is packed suspiciously well. Unpack it yourself "
        "and import the folder.",
        "压缩包中含有链接、指向外部的文件名或可疑的压缩内容，请自行解压后导入文件夹。",
    ),
    "model_import.encrypted_archive": Text(
        "The archive is protected by a password. Unpack it yourself and import the folder.",
        "压缩包有密码保护，请自行解压后导入文件夹。",
    ),
    "model_import.archive_too_large": Text(
        "The archive holds more than any model does. Choose the model's own archive.",
        "压缩包的内容超出模型应有的大小，请选择该模型自己的压缩包。",
    ),
    "model_import.too_many_files": Text(
        "The folder holds too many files. Choose the model's own folder.",
        "文件夹中的文件过多，请选择该模型自己的文件夹。",
    ),
    "model_import.unreadable": Text(
        "The files could not be read. Check that the disk is connected and that you may open them.",
        "无法读取文件，请检查磁盘是否已连接，以及是否有读取权限。",
    ),
    "model_download.own_model": Text(
        "This model is one of your own, and nobody is known to offer it. Put its files into the models folder again, "
        "or remove it.",
        "这是你自己的模型，没有已知的下载来源。请重新将其文件放入模型文件夹，或移除该模型。",
    ),
    "model_download.token_missing": Text(
        "The model's owner gives it to those alone who have agreed to its terms. Agree on its page, store your access "
        "token in the settings, and download again.",
        "该模型的所有者要求先同意其条款。请在模型页面同意条款，在设置中保存访问令牌，然后重新下载。",
    ),
    "model_download.token_refused": Text(
        "The model's owner refused your access token. Check that the account has agreed to the terms on the model's "
        "page, and that the token is still valid and may read such models.",
        "模型所有者拒绝了你的访问令牌。请确认该账号已在模型页面同意条款，且令牌仍然有效并有权读取此类模型。",
    ),
}
