"""Transform an exported ONNX graph: eight-bit weights, and the embedding table in a separate file."""

from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

from pipeline.index.encoder import Vectors
from pipeline.index.onnx_runtime import import_quantization
from pipeline.index.token_table import TABLE_INPUT, TOKENS_INPUT

# Only multilingual vocabularies are larger. Smaller ones stay in 32 bits, as measured for decision 0001.
LARGE_TABLE: Final = 32 * 2**20
# Minimum number of values of a table in a separate file.
SEPARATE_TABLE: Final = 2**20
_TABLE_RANK: Final = 2


def quantize(exported: Path, target: Path) -> None:
    """Write the eight-bit form of an exported ONNX graph."""
    import onnx

    quantization = import_quantization()
    model = onnx.load(exported)
    _shrink_large_tables(model.graph)
    quantization.quantize_dynamic(
        model,
        target,
        op_types_to_quantize=["MatMul"],
        nodes_to_exclude=_once_a_text(model.graph),
        per_channel=True,
        weight_type=quantization.QuantType.QInt8,
    )


def _once_a_text(graph: Any) -> list[str]:
    """Return the quantizer's names of the layers after the pooling: they are fast, and their loss matters."""
    return [f"{node.name}_MatMul" for node in graph.node if node.op_type == "Gemm"]


def separate_table(model: Path, target: Path, table_file: Path) -> None:
    """Write a graph to `target` and its embedding table, if it is large, to a separate file."""
    import onnx
    from onnx import helper, numpy_helper

    loaded = onnx.load(model)
    graph = loaded.graph
    table_file.unlink(missing_ok=True)
    for name, table in _tables(graph, lambda tensor: prod(tensor.dims) > SEPARATE_TABLE).items():
        lookups = [node for node in graph.node if name in node.input]
        if all(node.input[1] == TOKENS_INPUT for node in lookups):
            np.save(table_file, numpy_helper.to_array(table))
            graph.initializer.remove(table)
            shape = ["batch", "sequence", table.dims[1]]
            graph.input.append(helper.make_tensor_value_info(TABLE_INPUT, table.data_type, shape))
            for node in lookups:
                graph.node.remove(node)
                _rename_input(graph, node.output[0], TABLE_INPUT)
            break
    onnx.save(loaded, target)


def _rename_input(graph: Any, old: str, new: str) -> None:
    for node in graph.node:
        for position, name in enumerate(node.input):
            if name == old:
                node.input[position] = new


def _shrink_large_tables(graph: Any) -> None:
    """Store each large embedding table as rows of eight bits with a scale, and restore the rows at lookup."""
    from onnx import numpy_helper

    tables = _tables(graph, _is_large)
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        graph.node.extend(_lookup(node) if node.input and node.input[0] in tables else [node])
    for name, table in tables.items():
        codes, scales = round_rows(numpy_helper.to_array(table))
        graph.initializer.remove(table)
        graph.initializer.append(numpy_helper.from_array(codes, f"{name}.codes"))
        graph.initializer.append(numpy_helper.from_array(scales, f"{name}.scales"))


def _is_large(tensor: Any) -> bool:
    from onnx import TensorProto

    return bool(tensor.data_type == TensorProto.FLOAT and prod(tensor.dims) > LARGE_TABLE)


def _tables(graph: Any, is_wanted: Callable[[Any], bool]) -> dict[str, Any]:
    """Find the tables that the graph only uses to look up rows."""
    tables = {
        tensor.name: tensor for tensor in graph.initializer if len(tensor.dims) == _TABLE_RANK and is_wanted(tensor)
    }
    for node in graph.node:
        of_rows = node.op_type == "Gather" and all(attribute.i == 0 for attribute in node.attribute)
        for position, name in enumerate(node.input):
            if not (of_rows and position == 0):
                tables.pop(name, None)
    return tables


def _lookup(node: Any) -> list[Any]:
    """Replace a lookup of rows by lookups of codes and scales."""
    from onnx import TensorProto, helper

    (table, rows), (output,) = node.input, node.output
    return [
        helper.make_node("Gather", [f"{table}.codes", rows], [f"{output}.codes"]),
        helper.make_node("Gather", [f"{table}.scales", rows], [f"{output}.scales"]),
        helper.make_node("Cast", [f"{output}.codes"], [f"{output}.wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{output}.wide", f"{output}.scales"], [output]),
    ]


def round_rows(table: Vectors) -> tuple[np.ndarray[Any, np.dtype[np.int8]], Vectors]:
    """Round each row to multiples of a scale; shapes (rows, width) and (rows, 1)."""
    scales = np.abs(table).max(axis=1, keepdims=True) / np.float32(127)
    scales[scales == 0] = 1
    return np.rint(table / scales).astype(np.int8), scales
