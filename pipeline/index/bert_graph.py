"""Build the ONNX graph of a BERT encoder of sentences from its weights, without torch.

The graph does what transformers' BertModel does, followed by mean pooling and normalization. It takes the rows of the
embedding table as an input (`token_table`). Weights have BertModel's names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pipeline.index.encoder import Vectors
from pipeline.index.token_table import TABLE_INPUT, TOKENS_INPUT

MASK_INPUT: Final = "attention_mask"

# Operators and file format that every supported ONNX Runtime reads.
_OPSET: Final = 20
_IR_VERSION: Final = 9
_SMALLEST_NORM: Final = 1e-12
_SMALLEST_COUNT: Final = 1e-9


@dataclass(frozen=True, slots=True)
class BertConfig:
    """The parameters of a BERT encoder that its weights do not show."""

    layers: int
    heads: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class LastLayer:
    """A linear layer after the pooling: `weight @ vector + bias`."""

    weight: Vectors
    bias: Vectors


def build_graph(
    weights: Mapping[str, Vectors], config: BertConfig, *, scales: Vectors | None = None, last: LastLayer | None = None
) -> Any:
    """Build the model. With `scales`, shape (tokens, 1), the table's rows are eight-bit codes."""
    from onnx import TensorProto, helper

    graph = _Graph(weights)
    hidden = graph.embed(scales, config.epsilon)
    bias = graph.mask_bias()
    for layer in range(config.layers):
        hidden = graph.layer(hidden, bias, f"encoder.layer.{layer}", config)
    vector = graph.normalize(graph.pool(hidden))
    if last is not None:
        # The quantizer leaves out layers of this operator (`onnx_graph`).
        layer_inputs = [vector, graph.constant(np.ascontiguousarray(last.weight.T)), graph.constant(last.bias)]
        vector = graph.add("Gemm", *layer_inputs)
    # Also without a last layer: torch's export does so, and vectors stay the same bit by bit.
    vector = graph.normalize(vector)
    width = graph.width
    rows = TensorProto.FLOAT if scales is None else TensorProto.INT8
    inputs = [
        helper.make_tensor_value_info(MASK_INPUT, TensorProto.INT64, ["batch", "sequence"]),
        helper.make_tensor_value_info(TABLE_INPUT, rows, ["batch", "sequence", width]),
    ]
    if scales is not None:
        inputs.append(helper.make_tensor_value_info(TOKENS_INPUT, TensorProto.INT64, ["batch", "sequence"]))
    output = helper.make_tensor_value_info(vector, TensorProto.FLOAT, ["batch", width])
    made = helper.make_graph(graph.nodes, "encoder", inputs, [output], graph.initializers)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)


class _Graph:
    """The nodes and constants of a graph; methods return the name of their output."""

    def __init__(self, weights: Mapping[str, Vectors]) -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._weights = weights
        self.width: int = weights["embeddings.LayerNorm.weight"].shape[0]

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node."""
        from onnx import helper

        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, values: npt.NDArray[Any] | float | list[int]) -> str:
        """Add a constant; numbers become 32-bit floats, lists 64-bit integers."""
        from onnx import numpy_helper

        kinds = {float: np.float32, list: np.int64}
        array = values if isinstance(values, np.ndarray) else np.asarray(values, kinds[type(values)])
        name = f"constant_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def embed(self, scales: Vectors | None, epsilon: float) -> str:
        """Add the embeddings of tokens, of the first segment, and of positions."""
        from onnx import TensorProto

        tokens = TABLE_INPUT
        if scales is not None:
            row_scales = self.add("Gather", self.constant(scales), TOKENS_INPUT)
            tokens = self.add("Mul", self.add("Cast", TABLE_INPUT, to=TensorProto.FLOAT), row_scales)
        segment = self.constant(self._weights["embeddings.token_type_embeddings.weight"][0])
        length = self.add("Slice", self.add("Shape", MASK_INPUT), self.constant([1]), self.constant([2]))
        positions = self.constant(self._weights["embeddings.position_embeddings.weight"])
        used = self.add("Slice", positions, self.constant([0]), length)
        embedded = self.add("Add", self.add("Add", tokens, segment), used)
        return self._layer_norm(embedded, "embeddings.LayerNorm", epsilon)

    def mask_bias(self) -> str:
        """Add what is added to the attention of each token: 0, or the lowest number for padding."""
        padding = self.add("Sub", self.constant(1.0), self._float_mask())
        bias = self.add("Mul", padding, self.constant(float(np.finfo(np.float32).min)))
        return self.add("Unsqueeze", bias, self.constant([1, 2]))

    def layer(self, hidden: str, bias: str, name: str, config: BertConfig) -> str:
        """Add a layer: attention and a feed-forward network, each with a residual connection."""
        attended = self._attend(hidden, bias, f"{name}.attention.self", config.heads)
        added = self.add("Add", self._linear(attended, f"{name}.attention.output.dense"), hidden)
        hidden = self._layer_norm(added, f"{name}.attention.output.LayerNorm", config.epsilon)
        inner = self.add("Gelu", self._linear(hidden, f"{name}.intermediate.dense"))
        added = self.add("Add", self._linear(inner, f"{name}.output.dense"), hidden)
        return self._layer_norm(added, f"{name}.output.LayerNorm", config.epsilon)

    def pool(self, hidden: str) -> str:
        """Add the mean over the tokens that are not padding."""
        mask = self.add("Unsqueeze", self._float_mask(), self.constant([2]))
        total = self.add("ReduceSum", self.add("Mul", hidden, mask), self.constant([1]), keepdims=0)
        count = self.add("ReduceSum", mask, self.constant([1]), keepdims=0)
        return self.add("Div", total, self.add("Max", count, self.constant(_SMALLEST_COUNT)))

    def normalize(self, vector: str) -> str:
        """Add the scaling of vectors to unit length."""
        norm = self.add("ReduceL2", vector, self.constant([1]), keepdims=1)
        return self.add("Div", vector, self.add("Max", norm, self.constant(_SMALLEST_NORM)))

    def _attend(self, hidden: str, bias: str, name: str, heads: int) -> str:
        size = self.width // heads
        # A length that ONNX Runtime cannot infer keeps it from fusing the next sum with its normalization, which rounds
        # otherwise than the graph of torch's export: vectors would differ from those that are stored.
        apart, together = self.constant([0, 0, heads, size]), self.constant([0, -1, self.width])

        def split(part: str, order: list[int]) -> str:
            values = self.add("Reshape", self._linear(hidden, f"{name}.{part}"), apart)
            return self.add("Transpose", values, perm=order)

        query, key, value = split("query", [0, 2, 1, 3]), split("key", [0, 2, 3, 1]), split("value", [0, 2, 1, 3])
        scores = self.add("Mul", self.add("MatMul", query, key), self.constant(size**-0.5))
        shares = self.add("Softmax", self.add("Add", scores, bias), axis=-1)
        mixed = self.add("Transpose", self.add("MatMul", shares, value), perm=[0, 2, 1, 3])
        return self.add("Reshape", mixed, together)

    def _linear(self, values: str, name: str) -> str:
        weight = self.constant(np.ascontiguousarray(self._weights[f"{name}.weight"].T))
        return self.add("Add", self.add("MatMul", values, weight), self.constant(self._weights[f"{name}.bias"]))

    def _layer_norm(self, values: str, name: str, epsilon: float) -> str:
        scale, bias = (self.constant(self._weights[f"{name}.{kind}"]) for kind in ("weight", "bias"))
        return self.add("LayerNormalization", values, scale, bias, axis=-1, epsilon=epsilon)

    def _float_mask(self) -> str:
        from onnx import TensorProto

        return self.add("Cast", MASK_INPUT, to=TensorProto.FLOAT)
