import json
import socket
import threading

from benchmarks.figures import Aim, Limit, Report, latency
from benchmarks.wire import Wire, post


def test_latency_is_reported_in_percentiles():
    found = latency(list(range(1, 101)))
    assert (found.count, found.p50, found.p95, found.p99, found.longest) == (100, 50.5, 96, 100, 100)


def test_an_aim_is_met_from_its_own_side():
    assert Aim("p50", 5).met(5)
    assert not Aim("p50", 5).met(5.1)
    assert Aim("", 200, at_least=True).met(201)
    assert not Aim("", 200, at_least=True).met(199)


def test_a_report_shows_and_keeps_figures(tmp_path):
    shown = []
    report = Report(shown.append)
    report.latency("recall", latency([1.0, 2.0, 3.0]), p50=1.5)
    report.keep("10000", "recall", value=latency([1.0, 2.0, 3.0]))
    report.write(tmp_path / "figures.json")
    assert "✗ p50 ≤ 1.5" in shown[0]
    assert json.loads((tmp_path / "figures.json").read_text())["10000"]["recall"]["p50"] == 2.0


def test_a_figure_is_shown_and_kept_as_a_multiple_of_its_limit(tmp_path):
    shown = []
    report = Report(shown.append)
    report.section("writes")
    report.latency("one by one", latency([2.0, 3.0, 4.0]), Limit("a bare one", 1.5), p50=3)
    report.row("digested", "60 /s", (Aim("ratio", 0.6, at_least=True), 0.5), against=(Limit("encoder", 120), 60))
    report.write(tmp_path / "figures.json")
    assert "2.00 × a bare one (1.5)  ✓ p50 ≤ 3" in shown[1]
    assert "0.50 × encoder (120)  ✗ ratio ≥ 0.6" in shown[2]
    kept = json.loads((tmp_path / "figures.json").read_text())["ratios"]["writes"]["one by one, 3"]
    assert kept == {"value": 3.0, "limit": 1.5, "of": "a bare one", "ratio": 2.0}


def test_answer_is_read_completely_in_any_pieces():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        thread = threading.Thread(target=_answer_in_pieces, args=(server,))
        thread.start()
        with Wire(port) as wire:
            answers = wire.ask_all([post("/v1/recall", {"query": "x"}, "token")] * 2)
        thread.join()
    assert [(answer.status, answer.json()) for answer in answers] == [(200, {"a": 1})] * 2


def _answer_in_pieces(server):
    connection, _ = server.accept()
    with connection:
        for _ in range(2):
            received = b""
            while b'{"query": "x"}' not in received:
                received += connection.recv(100)
            for piece in (b"HTTP/1.1 200 OK\r\ncontent-le", b"ngth: 8\r\n\r", b'\n{"a"', b": 1}"):
                connection.sendall(piece)
