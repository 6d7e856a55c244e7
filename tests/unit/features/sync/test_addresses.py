"""By which addresses memory may travel."""

import pytest

from pipeline.features.sync.remotes.remote import check_url
from pipeline.kernel.errors import InvalidField


@pytest.mark.parametrize("url", ["dir:/home/ann/Sync", "s3://bucket/home", "s3://bucket", "https://host:8443"])
def test_an_address_is_kept_as_it_is(url):
    assert check_url(url) == url


def test_this_machine_may_be_asked_without_tls():
    assert check_url("http://127.0.0.1:7077/") == "http://127.0.0.1:7077"


@pytest.mark.parametrize(
    "url",
    [
        "dir:relative",
        "dir:",
        "s3:///home",
        "http://host",
        "https://ann:secret@host",
        "https://host?token=1",
        "https://host#token",
        "https://host:0",
        "https://[host",
        "s3://[host",
        "ftp://x",
        "",
    ],
)
def test_any_other_is_refused(url):
    with pytest.raises(InvalidField) as refused:
        check_url(url)
    assert refused.value.errors[0].loc == "url"
