# mypy: disable-error-code="import-untyped,import-not-found"
"""The voice detector's ONNX file lies beside the code and is opened by its path."""

from PyInstaller.utils.hooks import collect_data_files

datas = collect_data_files("faster_whisper")
