"""Settings of Spark that a user has made stay as they are."""

from pathlib import Path

import pytest

from analytics.session import settings_with

OURS = {"spark.driver.memory": "2g", "spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"}


def test_settings_of_a_run_and_of_spark_defaults_go_before_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text(
        "# spark.ui.enabled false\n\nspark.ui.enabled   true\nspark.driver.memory=5g\n"
        "spark.sql.session.timeZone Asia/Tokyo\n",
        encoding="utf-8",
    )
    conf = {"spark.driver.memory": "9g", "spark.executor.cores": "4", "spark.sql.session.timeZone": "PST"}
    # Spark itself reads what stands in its file.
    assert settings_with(OURS, {}) == {"spark.sql.session.timeZone": "UTC"}
    assert settings_with(OURS, conf) == conf | {"spark.sql.session.timeZone": "UTC"}


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"alone\n"], ids=["none", "no text", "no pairs"])
def test_without_settings_of_a_user_ours_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    if content is not None:
        (tmp_path / "conf").mkdir()
        (tmp_path / "conf" / "spark-defaults.conf").write_bytes(content)
    assert settings_with(OURS, {}) == OURS
