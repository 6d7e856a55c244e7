import logging

from config.process import RedactingFormatter, is_alive, process_owner


def test_this_process_lives_and_one_of_its_number_but_another_start_does_not():
    owner = process_owner()
    assert is_alive(owner)
    host, pid, _ = owner.rsplit(":", 2)
    assert not is_alive(f"{host}:{pid}:1.00")
    assert not is_alive(f"{host}:4194304:1.00")
    assert is_alive("another-host:1:1.00")


def test_what_is_logged_is_masked_with_its_traceback():
    formatter = RedactingFormatter(lambda text: text.replace("secret", "[masked]"))
    error = ValueError("the secret")
    record = logging.LogRecord("n", logging.ERROR, "f", 1, "a %s", ("secret",), (type(error), error, None))
    line = formatter.format(record)
    assert "secret" not in line
    assert line.count("[masked]") == 2
