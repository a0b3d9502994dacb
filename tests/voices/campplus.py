"""The network of CAM++ (3D-Speaker, Apache-2.0) as an ONNX graph over its trained weights.

    python -m tests.voices.campplus campplus_cn_en_common.pt campplus.onnx

Takes `feats` (1, frames, 80), the filter bank features less their mean, and gives `embs` (1, 192).
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.voices.checkpoint import Weights, read_checkpoint
from tests.voices.onnx_graph import Graph

EPSILON = 1e-5
MELS = 80
DIMENSION = 192
SEGMENT = 100
# Layers and dilation of each dense block.
BLOCKS = ((12, 1), (24, 2), (16, 2))


class CamPlusPlus:
    """Builds the graph layer by layer; names are those of the checkpoint."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self.graph = Graph()

    def build(self) -> str:
        """Return the name of the embedding's value."""
        add = self.graph.add
        value = add("Transpose", "feats", perm=[0, 2, 1])
        value = self._head(add("Unsqueeze", value, self.graph.integers(1)))
        value = self._conv(value, "xvector.tdnn.linear", stride=[2], pads=[2, 2])
        value = self._relu(self._norm(value, "xvector.tdnn.nonlinear.batchnorm"))
        for number, (layers, dilation) in enumerate(BLOCKS, 1):
            for layer in range(1, layers + 1):
                new = self._dense_layer(value, f"xvector.block{number}.tdnnd{layer}", dilation)
                value = add("Concat", value, new, axis=1)
            value = self._relu(self._norm(value, f"xvector.transit{number}.nonlinear.batchnorm"))
            value = self._conv(value, f"xvector.transit{number}.linear")
        value = self._relu(self._norm(value, "xvector.out_nonlinear.batchnorm"))
        value = self._conv(self._statistics(value), "xvector.dense.linear")
        value = self._norm(value, "xvector.dense.nonlinear.batchnorm")
        return add("Squeeze", value, self.graph.integers(2))

    def _head(self, value: str) -> str:
        value = self._plane(value, "head.conv1", "head.bn1")
        for layer in ("head.layer1", "head.layer2"):
            for number, stride in ((0, 2), (1, 1)):
                name = f"{layer}.{number}"
                inner = self._plane(value, f"{name}.conv1", f"{name}.bn1", stride)
                inner = self._plane(inner, f"{name}.conv2", f"{name}.bn2", relu=False)
                if stride == 2:
                    value = self._conv(value, f"{name}.shortcut.0", stride=[2, 1], pads=[0] * 4)
                    value = self._norm(value, f"{name}.shortcut.1")
                value = self._relu(self.graph.add("Add", inner, value))
        value = self._plane(value, "head.conv2", "head.bn2", 2)
        # Channels and bands become channels.
        return self.graph.add("Reshape", value, self.graph.integers(0, 32 * MELS // 8, -1))

    def _plane(
        self, value: str, conv: str, norm: str, stride: int = 1, *, relu: bool = True
    ) -> str:
        value = self._norm(self._conv(value, conv, stride=[stride, 1], pads=[1] * 4), norm)
        return self._relu(value) if relu else value

    def _dense_layer(self, value: str, name: str, dilation: int) -> str:
        value = self._relu(self._norm(value, f"{name}.nonlinear1.batchnorm"))
        value = self._conv(value, f"{name}.linear1")
        value = self._relu(self._norm(value, f"{name}.nonlinear2.batchnorm"))
        add, cam = self.graph.add, f"{name}.cam_layer"
        local = self._conv(
            value, f"{cam}.linear_local", pads=[dilation, dilation], dilations=[dilation]
        )
        mean = add("ReduceMean", value, axes=[-1], keepdims=1)
        context = add("Add", mean, self._segment_means(value))
        context = self._relu(self._conv(context, f"{cam}.linear1"))
        gate = add("Sigmoid", self._conv(context, f"{cam}.linear2"))
        return add("Mul", local, gate)

    def _segment_means(self, value: str) -> str:
        """Return the mean of each stretch of 100 frames, in each of its frames."""
        add, integers = self.graph.add, self.graph.integers
        means = add(
            "AveragePool",
            value,
            kernel_shape=[SEGMENT],
            strides=[SEGMENT],
            ceil_mode=1,
            count_include_pad=0,
        )
        spread = add("Expand", add("Unsqueeze", means, integers(3)), integers(1, 1, 1, SEGMENT))
        spread = add("Reshape", spread, integers(0, 0, -1))
        frames = add("Slice", add("Shape", value), integers(2), integers(3), integers(0))
        return add("Slice", spread, integers(0), frames, integers(2))

    def _statistics(self, value: str) -> str:
        """Return mean and standard deviation over time."""
        add = self.graph.add
        mean = add("ReduceMean", value, axes=[-1], keepdims=1)
        difference = add("Sub", value, mean)
        total = add(
            "ReduceSum",
            add("Mul", difference, difference),
            self.graph.integers(-1),
            keepdims=1,
        )
        shape = add("Shape", value)
        count = add("Slice", shape, *(self.graph.integers(n) for n in (2, 3, 0)))
        less = add("Cast", add("Sub", count, self.graph.integers(1)), to=1)
        return add("Concat", mean, add("Sqrt", add("Div", total, less)), axis=1)

    def _conv(
        self,
        value: str,
        name: str,
        *,
        stride: list[int] | None = None,
        pads: list[int] | None = None,
        dilations: list[int] | None = None,
    ) -> str:
        kernel = self._weights[f"{name}.weight"]
        inputs = [value, self.graph.constant(kernel)]
        bias = self._weights.get(f"{name}.bias")
        if bias is not None:
            inputs.append(self.graph.constant(bias))
        rank = kernel.ndim - 2
        return self.graph.add(
            "Conv",
            *inputs,
            kernel_shape=kernel.shape[2:],
            strides=stride or [1] * rank,
            pads=pads or [0] * 2 * rank,
            dilations=dilations or [1] * rank,
        )

    def _norm(self, value: str, name: str) -> str:
        mean = self._weights[f"{name}.running_mean"]
        variance = self._weights[f"{name}.running_var"]
        parts: list[NDArray] = [
            self._weights.get(f"{name}.weight", np.ones_like(mean)),
            self._weights.get(f"{name}.bias", np.zeros_like(mean)),
            mean,
            variance,
        ]
        constants = [self.graph.constant(part) for part in parts]
        return self.graph.add("BatchNormalization", value, *constants, epsilon=EPSILON)

    def _relu(self, value: str) -> str:
        return self.graph.add("Relu", value)


def write_campplus(checkpoint: Path, target: Path) -> None:
    """Write the network with the weights of *checkpoint* to *target*; the same bytes each time."""
    network = CamPlusPlus(read_checkpoint(checkpoint))
    output = network.build()
    network.graph.save(target, ("feats", [1, "frames", MELS]), ("embs", [1, DIMENSION]), output)


if __name__ == "__main__":
    write_campplus(Path(sys.argv[1]), Path(sys.argv[2]))
