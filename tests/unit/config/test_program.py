import logging

from config.process import RedactingFormatter


def test_what_is_logged_is_masked_with_its_traceback():
    formatter = RedactingFormatter(lambda text: text.replace("secret", "[masked]"))
    error = ValueError("the secret")
    record = logging.LogRecord("n", logging.ERROR, "f", 1, "a %s", ("secret",), (type(error), error, None))
    line = formatter.format(record)
    assert "secret" not in line
    assert line.count("[masked]") == 2
