import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pipeline.index import onnx_graph
from pipeline.index.onnx_graph import quantize, separate_table
from pipeline.index.onnx_runtime import import_onnxruntime
from pipeline.index.token_table import TABLE_INPUT, TOKENS_INPUT, TokenTable
from pipeline.kernel.errors import EncoderUnavailable

ROWS, WIDTH = 50, 64


def export_model(path, *, also_multiplied=False):
    """A table, a matrix, and a layer after the pooling, as an encoder has them."""
    numbers = np.random.default_rng(1)
    table = numbers.standard_normal((ROWS, WIDTH)).astype(np.float32) * numbers.random((ROWS, 1), np.float32)
    table[7] = 0
    held = {
        "table": table,
        "matrix": numbers.standard_normal((WIDTH, WIDTH)).astype(np.float32),
        "last": numbers.standard_normal((WIDTH, WIDTH)).astype(np.float32),
        "axes": np.array([1], np.int64),
    }
    nodes = [
        helper.make_node("Gather", ["table", TOKENS_INPUT], ["rows"]),
        helper.make_node("MatMul", ["rows", "matrix"], ["wide"]),
        helper.make_node("ReduceMean", ["wide", "axes"], ["pooled"], keepdims=0),
        helper.make_node("Gemm", ["pooled", "last"], ["vector"], name="dense"),
        helper.make_node("Identity", ["rows"], ["looked_up"]),
    ]
    outputs = ["vector", "looked_up"]
    if also_multiplied:
        nodes.append(helper.make_node("MatMul", ["table", "matrix"], ["product"]))
        outputs.append("product")
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info(TOKENS_INPUT, TensorProto.INT64, ["batch", "sequence"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in held.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


def run(path, ids, **inputs):
    session = import_onnxruntime().InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["vector", "looked_up"], {TOKENS_INPUT: ids} | inputs)


def weights(path):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}


@pytest.fixture
def original(tmp_path):
    return export_model(tmp_path / "exported.onnx")


def test_large_table_is_quantized_to_eight_bits_within_half_a_step(monkeypatch, original, tmp_path):
    monkeypatch.setattr(onnx_graph, "LARGE_TABLE", ROWS * WIDTH - 1)
    quantize(original, tmp_path / "model.onnx")
    kept = weights(tmp_path / "model.onnx")
    assert "table" not in kept
    assert kept["table.codes"].dtype == np.int8
    ids = np.arange(ROWS)[None]
    whole, ours = run(original, ids)[1][0], run(tmp_path / "model.onnx", ids)[1][0]
    # Half a step of 1/127 of the largest weight of the row.
    assert (np.abs(ours - whole) <= np.abs(whole).max(axis=1, keepdims=True) / 254 + 1e-7).all()
    assert (ours[7] == 0).all()


def test_a_table_of_one_language_stays_as_it_is(original, tmp_path):
    quantize(original, tmp_path / "model.onnx")
    np.testing.assert_array_equal(weights(tmp_path / "model.onnx")["table"], weights(original)["table"])


def test_a_table_that_is_also_multiplied_stays_as_it_is(monkeypatch, tmp_path):
    monkeypatch.setattr(onnx_graph, "LARGE_TABLE", 1)
    quantize(export_model(tmp_path / "exported.onnx", also_multiplied=True), tmp_path / "model.onnx")
    assert weights(tmp_path / "model.onnx")["table"].dtype == np.float32


def test_matrices_are_quantized_and_layers_after_the_pooling_are_not(original, tmp_path):
    quantize(original, tmp_path / "model.onnx")
    kept = weights(tmp_path / "model.onnx")
    assert "matrix" not in kept
    assert kept["matrix_quantized"].dtype == np.int8
    np.testing.assert_array_equal(kept["last"], weights(original)["last"])


@pytest.mark.parametrize("eight_bits", [False, True])
def test_with_its_table_in_a_file_a_graph_gives_the_same_numbers(monkeypatch, original, tmp_path, eight_bits):
    monkeypatch.setattr(onnx_graph, "LARGE_TABLE", 1 if eight_bits else ROWS * WIDTH)
    monkeypatch.setattr(onnx_graph, "SEPARATE_TABLE", ROWS * WIDTH - 1)
    whole, model, file = (tmp_path / name for name in ("whole.onnx", "model.onnx", "tokens.npy"))
    quantize(original, whole)
    separate_table(whole, model, file)
    assert not weights(model).keys() & {"table", "table.codes"}
    ids = np.random.default_rng(2).integers(0, ROWS, (3, 5))
    ours = run(model, ids, **{TABLE_INPUT: TokenTable(file).rows(ids)})
    for mine, theirs in zip(ours, run(whole, ids), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("also_multiplied", [False, True])
def test_a_small_table_and_one_that_is_not_only_looked_up_stay_inside(monkeypatch, tmp_path, also_multiplied):
    if also_multiplied:
        monkeypatch.setattr(onnx_graph, "SEPARATE_TABLE", 1)
    model, file = tmp_path / "model.onnx", tmp_path / "tokens.npy"
    separate_table(export_model(tmp_path / "exported.onnx", also_multiplied=also_multiplied), model, file)
    assert "table" in weights(model)
    assert not file.exists()


def test_a_table_that_is_cut_while_it_is_read_is_an_error(tmp_path):
    file = tmp_path / "tokens.npy"
    np.save(file, np.ones((ROWS, WIDTH), np.float32))
    table = TokenTable(file)
    assert (table.rows(np.array([[ROWS - 1]])) == 1).all()
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size - 1)
    with pytest.raises(EncoderUnavailable, match="was truncated"):
        table.rows(np.array([[ROWS - 1]]))
