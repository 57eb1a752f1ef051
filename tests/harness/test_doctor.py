"""`mcp-functions doctor` lists the programs that this machine lacks."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness import machine
from mcp_functions_harness.command import run

if TYPE_CHECKING:
    from pathlib import Path

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}.{sys.version_info[2]}"
TEMPLATE = "Parameters:\n  Runtime: {Default: python3.13}\nResources:\n  Table: {Type: AWS::DynamoDB::Table}\n"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give this machine no program but those that a test writes, and no credentials."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "template.yaml").write_text(TEMPLATE, encoding="utf-8")
    return folder


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def lines(capsys: pytest.CaptureFixture[str], *, code: int) -> dict[str, str]:
    assert run(["doctor"]) == code
    output_lines = capsys.readouterr().out.splitlines()
    return {
        subject: next(line for line in output_lines if f"  {subject}  " in line) for subject in ("layers", "sam local")
    }


def test_doctor_lists_what_to_install_on_an_empty_machine(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"]) == 1
    output = capsys.readouterr().out
    assert programs.exists()
    for text in (
        "missing  build, deploy  there is no SAM CLI",
        "missing  layers         there is no python3.13, so they would not be compiled, and a cold start",
        "uv python install 3.13, or: pyenv install 3.13",
        "missing  sam local      no container engine answers",
        "missing  credentials    none of AWS",
    ):
        assert text in output


def test_doctor_exits_with_0_on_a_complete_machine(
    programs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program(programs, "sam", "echo SAM CLI, version 1.170.0")
    program(programs, "python3.13", f'exec "{sys.executable}" "$@"')
    program(programs, "docker", "echo 29.1.2")
    monkeypatch.setenv("AWS_PROFILE", "prod")
    found = lines(capsys, code=0)
    assert found["layers"].endswith(f"are compiled with {programs / 'python3.13'} ({VERSION})")
    assert found["sam local"].endswith("docker 29.1.2")


def test_doctor_ignores_an_interpreter_that_does_not_run_but_accepts_one_of_uv(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program(programs, "python3.13", "exit 127  # a shim without a version behind it")
    assert "there is no python3.13" in lines(capsys, code=1)["layers"]
    program(programs, "uv", f'echo "{sys.executable}"')
    assert f"are compiled with {sys.executable}" in lines(capsys, code=1)["layers"]


def test_doctor_runs_no_interpreter_of_the_current_folder_without_pyenv(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = programs.parent / "versions/3.13.1/bin"
    planted.mkdir(parents=True)
    program(planted, "python3.13", f'exec "{sys.executable}" "$@"')
    assert "there is no python3.13" in lines(capsys, code=1)["layers"]
    program(programs, "pyenv", f'echo "{programs.parent}"')
    assert f"are compiled with {planted / 'python3.13'}" in lines(capsys, code=1)["layers"]


PROJECT = """
Parameters: {Runtime: {Type: String, Default: python3.13}}
Globals: {Function: {Runtime: !Ref Runtime}}
Resources:
  Rates: {Type: AWS::Serverless::Function, Properties: {CodeUri: functions/rates/}}
  RatesWorker: {Type: AWS::Serverless::Function, Properties: {CodeUri: functions/rates}}
  Old: {Type: AWS::Serverless::Function, Properties: {CodeUri: functions/old/, Runtime: python3.12}}
  Plain: {Type: AWS::Serverless::Function, Properties: {CodeUri: functions/plain/}}
  Other: {Type: AWS::Serverless::Function, Properties: {CodeUri: functions/other/, Runtime: nodejs22.x}}
"""


@pytest.fixture
def with_packages(programs: Path) -> Path:
    """Write functions with packages of their own."""
    (programs.parent / "template.yaml").write_text(PROJECT, encoding="utf-8")
    for name in ("rates", "old", "other"):
        path = programs.parent / "functions" / name / "requirements.txt"
        path.parent.mkdir(parents=True)
        path.write_text("xmltodict==1.0.4\n", encoding="utf-8")
    return programs


def test_a_build_is_told_each_function_that_has_no_interpreter_for_its_packages(
    with_packages: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["doctor"]) == 1
    output = capsys.readouterr().out
    for text in (
        "missing  functions/old    has a requirements.txt, and there is no python3.12 with pip",
        "missing  functions/rates  has a requirements.txt, and there is no python3.13 with pip",
        "uv python install 3.12, or: pyenv install 3.12; or name its packages in layers/dependencies/requirements.txt",
    ):
        assert text in output
    assert run(["doctor", "--build"]) == 1
    error_lines = capsys.readouterr().err.splitlines()[::2]
    assert [line.partition(":")[0] for line in error_lines] == ["layers", "functions/old", "functions/rates"]
    monkeypatch.setenv("UNCOMPILED", "1")
    assert run(["doctor", "--build"]) == 1
    assert "layers:" not in capsys.readouterr().err
    program(with_packages, "python3.12", f'exec "{sys.executable}" "$@"')
    program(with_packages, "python3.13", f'case "$*" in *pip*) exit 1;; esac; exec "{sys.executable}" "$@"')
    assert run(["doctor", "--build"]) == 1
    assert capsys.readouterr().err.startswith(
        "functions/rates: has a requirements.txt, and there is no python3.13 with"
    )


def test_a_build_is_given_the_folders_of_interpreters_that_are_not_on_the_path(
    with_packages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for version in ("3.12.9", "3.13.1"):
        planted = with_packages.parent / f"versions/{version}/bin"
        planted.mkdir(parents=True)
        program(planted, f"python{version[:4]}", f'exec "{sys.executable}" "$@"')
    program(with_packages, "pyenv", f'echo "{with_packages.parent}"')
    assert run(["doctor", "--build"]) == 0
    versions = with_packages.parent / "versions"
    assert capsys.readouterr().out == f"{versions}/3.13.1/bin{os.pathsep}{versions}/3.12.9/bin\n"


def test_a_build_needs_the_runtime_of_its_environment(with_packages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = '[prod.global.parameters]\nparameter_overrides = ["Runtime=python3.14"]\n'
    (with_packages.parent / "samconfig.toml").write_text(config, encoding="utf-8")
    assert run(["doctor", "--build", "--config-env", "prod"]) == 1
    assert "functions/rates: has a requirements.txt, and there is no python3.14 with pip" in capsys.readouterr().err


def test_doctor_names_a_missing_extra(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "find_spec", lambda name: None if name in {"moto", "mcp"} else object())
    first = machine.examine(programs.parent)[0]
    assert (first.text, first.remedy) == ("not installed: demo, local", "pip install 'mcp-functions[demo,local]'")
