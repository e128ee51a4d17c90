"""[tool.zerograd]: what is taken, and how what is wrong is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from zerograd.errors import ConfigError
from zerograd.static.settings import DEFAULTS, SettingsFinder, Wrappers, read_settings


def settled(tmp_path: Path, text: str) -> object:
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    return read_settings(str(path))


def complaint(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        settled(tmp_path, text)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(tmp_path / "pyproject.toml"))
    return message.removeprefix(f"{tmp_path / 'pyproject.toml'}: ")


def test_everything_can_be_set(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        """
        [tool.zerograd]
        select = ["ZG1", "lost-gradient"]
        ignore = ["ZG104"]
        exclude = ["third_party"]
        backward = ["do_backward", "engine.Engine.push"]
        step = ["apply"]
        clear = ["reset"]
        [tool.zerograd.per-file-ignores]
        "tests/*" = ["ZG401"]
        """
    )
    settings = SettingsFinder().of(str(tmp_path))
    assert settings.root == str(tmp_path)
    assert settings.select == ("ZG1", "lost-gradient")
    assert settings.ignore == ("ZG104",)
    assert settings.exclude == ("third_party",)
    assert settings.per_file_ignores == (("tests/*", ("ZG401",)),)
    assert settings.wrappers == Wrappers(
        ("do_backward", "engine.Engine.push"), ("apply",), ("reset",)
    )


def test_the_nearest_pyproject_with_our_table_counts(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.zerograd]\nignore = ["ZG101"]\n')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "a" / "pyproject.toml").write_text('[project]\nname = "zerograd-user"\n')
    finder = SettingsFinder()
    assert finder.of(str(inner)).ignore == ("ZG101",)
    assert finder.of(str(tmp_path / "a")).ignore == ("ZG101",)
    (inner / "pyproject.toml").write_text("[tool.zerograd]\n")
    assert SettingsFinder().of(str(inner)).ignore == ()


def test_without_any_the_defaults_hold(tmp_path: Path) -> None:
    assert SettingsFinder().of(str(tmp_path)) is DEFAULTS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[tool.zerograd]\nselct = ["ZG101"]', "[tool.zerograd] has no key 'selct'; did you mean"),
        ("[tool.zerograd]\nper_file_ignores = {}", "did you mean 'per-file-ignores'?"),
        ("[tool.zerograd]\nqqq = 1", "it knows backward, clear, exclude"),
        ('[tool.zerograd]\nselect = "ZG101"', "select must be a list of strings, not 'ZG101'"),
        ("[tool.zerograd]\nselect = [1]", "select must be a list of strings, not [1]"),
        ('[tool.zerograd]\nselect = ["ZG999"]', "select: ZG999: there is no such rule."),
        ('[tool.zerograd]\nignore = ["stale"]', "ignore: stale: there is no such rule."),
        ('[tool.zerograd]\nstep = ["a b"]', "step names 'a b', which is no function"),
        ("[tool.zerograd]\nper-file-ignores = []", "per-file-ignores must be a table"),
        (
            '[tool.zerograd.per-file-ignores]\n"a" = "ZG1"',
            "per-file-ignores of 'a' must be a list of strings",
        ),
        ("[tool.zerograd\n", "is no valid TOML"),
        ("zerograd = " + "[" * 5000, "is no valid TOML"),
        ("[tool]\nzerograd = 3\n", "tool.zerograd must be a table"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in complaint(tmp_path, text)


def test_a_pyproject_of_others_is_not_even_parsed(tmp_path: Path) -> None:
    assert settled(tmp_path, "this is no TOML [") is None


def test_the_pyproject_of_the_project_we_stand_in_must_be_toml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "below").mkdir()
    for folder in (tmp_path / "below", tmp_path):
        monkeypatch.chdir(folder)
        assert "is no valid TOML" in complaint(tmp_path, "this is no TOML [")
    assert settled(tmp_path, "tool = 3\n") is None


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b'\xef\xbb\xbf[tool.zerograd]\nignore = ["ZG1"]\n')
    assert SettingsFinder().of(str(tmp_path)).ignore == ("ZG1",)


def test_a_pyproject_that_cannot_be_read_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "pyproject.toml"
    path.touch()

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(ConfigError, match=r"cannot be read \(Permission denied\)"):
        read_settings(str(path))
    assert read_settings(str(tmp_path / "none.toml")) is None
