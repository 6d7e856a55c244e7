"""A team's server behind TLS, as the clients of hooks, tools and recall reach it."""

import base64
import ssl
import threading
from contextlib import closing

import pytest
from flask import Flask, request
from werkzeug.serving import WSGIRequestHandler, make_server

from pipeline.features.team.link import TeamLink
from pipeline.features.team.servers import TeamServer
from pipeline.kernel.errors import RemoteUnreachable
from pipeline.kernel.http.connections import KeptConnections, NotConnected
from tests.support.proxies import make_certificate
from tests.support.served import serve_app

LOGIN = f"Basic {base64.b64encode(b'anna:s@me').decode()}"


@pytest.fixture
def certificate(tmp_path):
    return make_certificate(tmp_path)


class KeepingAlive(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"


@pytest.fixture
def url(certificate):
    app = Flask("team")
    app.add_url_rule("/memory/v1/workspaces", "list", lambda: {"items": [{"id": request.headers["Authorization"]}]})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.file, certificate.key)
    server = make_server("127.0.0.1", 0, app, threaded=True, ssl_context=context, request_handler=KeepingAlive)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    # Behind a path, as a proxy may have it.
    yield f"https://127.0.0.1:{server.server_port}/memory"
    server.shutdown()
    thread.join()
    server.server_close()


def test_trusted_server_is_queried_over_persistent_connections(url, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.file))
    with closing(KeptConnections(url, 10)) as connections:
        for _ in range(3):
            answer = connections.send("GET", "/v1/workspaces", None, {"Authorization": "Bearer t"})
            assert (answer.status, b"Bearer t" in answer.body) == (200, True)
    with closing(TeamLink(TeamServer("acme", url, "t"))) as link:
        assert link.list_workspaces("default") == {"Bearer t"}


def test_server_with_an_untrusted_certificate_gets_no_token(url):
    with closing(KeptConnections(url, 10)) as connections, pytest.raises(NotConnected):
        connections.send("GET", "/v1/workspaces", None, {"Authorization": "Bearer t"})
    with closing(TeamLink(TeamServer("acme", url, "t"))) as link, pytest.raises(RemoteUnreachable):
        link.list_workspaces("default")


@pytest.fixture
def proxy():
    """An HTTP proxy that answers every request itself, with what it was asked."""
    app = Flask("proxy")
    app.add_url_rule("/memory/v1/workspaces", "list", lambda: {"items": [{"id": request.environ["REQUEST_URI"]}]})
    app.after_request(lambda answer: answer if request.headers.get("Proxy-Authorization") == LOGIN else ("", 407))
    with serve_app(app) as port:
        yield port


def test_a_team_is_asked_through_the_proxy_of_the_environment(proxy, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://anna:s%40me@127.0.0.1:{proxy}")
    monkeypatch.delenv("no_proxy", raising=False)
    server = TeamServer("acme", "http://team.example/memory", "t")
    with closing(TeamLink(server)) as link:
        assert link.list_workspaces("default") == {"http://team.example/memory/v1/workspaces"}
    monkeypatch.setenv("no_proxy", "team.example")
    with closing(TeamLink(server)) as link, pytest.raises(RemoteUnreachable):
        link.list_workspaces("default")
