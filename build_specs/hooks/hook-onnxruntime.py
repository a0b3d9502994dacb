# mypy: disable-error-code="import-untyped,import-not-found"
"""Only the inference session: the package's tools for making models are left out."""

from PyInstaller.utils.hooks import collect_dynamic_libs

binaries = collect_dynamic_libs("onnxruntime")
excludedimports = [
    "onnxruntime.datasets",
    "onnxruntime.quantization",
    "onnxruntime.tools",
    "onnxruntime.transformers",
]
