"""URLs of databases: what is one, and that no password is shown."""

import pytest

from storage.engine.urls import URL_SIZE_MAX, check_url, hide_secrets

pytestmark = pytest.mark.sqlite


@pytest.mark.parametrize(
    "url, shown",
    [
        ("", ""),
        ("postgresql://me@host/store", "postgresql://me@host/store"),
        ("postgres://me:word@host:5433/store", "postgres://me:***@host:5433/store"),
        ("postgresql:///store?host=/run/pg", "postgresql:///store?host=/run/pg"),
        ("postgresql://me:w%40rd@/store?password=x&sslpassword=y", None),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str | None) -> None:
    check_url(url)
    wanted = "postgresql://me:***@/store?password=***&sslpassword=***" if shown is None else shown
    assert hide_secrets(url) == wanted


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///x",
        "host=here user=me password=word",
        "postgresql://me:word@host",
        "postgresql://me:word@host/",
        "postgresql://me:word@host:0/store",
        "postgresql://me:word@host:65536/store",
        "postgresql://me:1/word@host/store",
        "postgresql://me:wo#rd@host/store",
        "postgresql://me:wo rd@host/store",
        "postgresql://[::1/word",
        "postgresql://word/" + "x" * URL_SIZE_MAX,
    ],
)
def test_what_is_no_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        check_url(url)
    assert "1/word" not in str(caught.value)
    assert "wo#rd" not in str(caught.value)
    assert hide_secrets(url) == "***"
