import logging
import threading

import pytest

from config.process import RedactingFormatter, is_alive, process_owner, thread_owner


def test_process_identity_includes_its_start_time():
    owner = process_owner()
    assert is_alive(owner)
    host, pid, _ = owner.rsplit(":", 2)
    assert not is_alive(f"{host}:{pid}:1.00")
    assert not is_alive(f"{host}:4194304:1.00")
    assert is_alive("another-host:1:1.00")


def test_log_line_and_traceback_are_redacted():
    formatter = RedactingFormatter(lambda text: text.replace("secret", "[masked]"))
    error = ValueError("the secret")
    record = logging.LogRecord("n", logging.ERROR, "f", 1, "a %s", ("secret",), (type(error), error, None))
    line = formatter.format(record)
    assert "secret" not in line
    assert line.count("[masked]") == 2


def test_encrypted_data_directorys_log_quotes_no_error_message():
    def fail(text):
        raise ValueError(text) from KeyError(text)

    said = f"The {'qu' + 'okka'} sleeps"
    with pytest.raises(ValueError, match="okka") as raised:
        fail(said)
    error = (raised.type, raised.value, raised.tb)
    line = RedactingFormatter(str, shows_values=False).format(
        logging.LogRecord("n", logging.ERROR, "f", 1, "digest failed", (), error)
    )
    assert "quokka" not in line
    assert line.endswith("ValueError")
    assert "in fail" in line


def test_a_thread_owns_by_another_name_and_lives_as_long_as_its_process():
    process = process_owner()
    names = []
    other = threading.Thread(target=lambda: names.append(thread_owner(process)), name="thread-2")
    other.start()
    other.join(30)
    assert thread_owner(process) == process
    assert names == [f"{process}/thread-2"]
    assert is_alive(names[0])
    assert not is_alive(f"{process}0/thread-2")
