"""Functions of several folders are found and imported in one interpreter; errors name the file and the fix."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness.lambdas.functions import Functions
from mcp_functions_harness.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

HELLO = "def handler(event, context):\n    return 'hello'\n"


def load_error(directory: Path) -> str:
    with pytest.raises(Problem) as error:
        Functions(directory)
    message = str(error.value)
    assert "\n" not in message
    return message


def test_every_folder_with_an_app_is_a_function(project: Callable[[dict[str, str]], Path]) -> None:
    directory = project(
        {"b/app.py": HELLO, "a/app.py": HELLO, "data/notes.txt": "", ".hidden/app.py": "!", "__pycache__/app.py": "!"}
    )
    with Functions(directory) as functions:
        assert list(functions.by_folder) == ["a", "b"]
        assert functions.by_folder["a"].handler({}, None) == "hello"
        assert functions.by_folder["a"].handlers == ()


def test_two_functions_may_have_modules_of_the_same_name(project: Callable[[dict[str, str]], Path]) -> None:
    late = "def handler(event, context):\n    import late\n    return forms.WHO + WHO + late.NOW\n"
    app = f"import forms\nfrom forms import WHO\n{late}"
    directory = project(
        {
            "a/app.py": app,
            "a/forms.py": "import late\nWHO = 'a' + late.NOW\n",
            "a/late.py": "NOW = '1'\n",
            "b/app.py": app,
            "b/forms.py": "from deep.down import WHO\n",
            "b/deep/__init__.py": "",
            "b/deep/down.py": "import late\nWHO = 'b' + late.NOW\n",
            "b/late.py": "NOW = '2'\n",
        }
    )
    with Functions(directory) as functions:
        assert functions.by_folder["a"].handler({}, None) == "a1a11"
        assert functions.by_folder["b"].handler({}, None) == "b2b22"
    assert not {"forms", "late", "deep", "app"} & sys.modules.keys()


def test_a_dotted_import_binds_its_first_name(project: Callable[[dict[str, str]], Path]) -> None:
    imports = "import deep.down\nimport deep.down as down\nimport json, os.path\n"
    app = f"{imports}handler = lambda event, context: deep.down.X + down.X\n"
    directory = project({"a/app.py": app, "a/deep/__init__.py": "", "a/deep/down.py": "X = 1\n"})
    with Functions(directory) as functions:
        assert functions.by_folder["a"].handler({}, None) == 2


def test_the_type_hints_of_a_loaded_function_can_be_resolved(project: Callable[[dict[str, str]], Path]) -> None:
    app = (
        "from __future__ import annotations\nfrom typing import get_type_hints\nfrom pydantic import BaseModel\n"
        "class Form(BaseModel):\n    inner: Inner\nclass Inner(BaseModel):\n    x: int\n"
        "def handler(event: Form, context: Inner): return get_type_hints(handler), Form(inner={'x': 1}).inner.x\n"
    )
    with Functions(project({"a/app.py": app})) as functions:
        hints, value = functions.by_folder["a"].handler({}, None)
        assert (sorted(hints), value) == (["context", "event"], 1)


def test_closing_functions_removes_their_modules_and_import_paths(project: Callable[[dict[str, str]], Path]) -> None:
    modules, path, finders = set(sys.modules), list(sys.path), list(sys.meta_path)
    directory = project({"a/app.py": "import forms\n" + HELLO, "a/forms.py": ""})
    Functions(directory).close()
    assert (set(sys.modules), sys.path, sys.meta_path) == (modules, path, finders)
    assert sorted(path.name for path in directory.rglob("*")) == ["a", "app.py", "forms.py"]


def test_loading_again_reads_changed_files(project: Callable[[dict[str, str]], Path]) -> None:
    for value in ("1", "22"):
        with Functions(project({"a/app.py": f"def handler(event, context): return {value}\n"})) as functions:
            assert functions.by_folder["a"].handler({}, None) == int(value)


def test_the_error_for_a_missing_directory_names_it() -> None:
    assert (
        load_error(Path("nowhere"))
        == "there is no folder nowhere: start in the folder of functions/, or name it with --functions"
    )


def test_the_error_for_a_directory_without_functions_explains_functions(
    project: Callable[[dict[str, str]], Path],
) -> None:
    message = load_error(project({"data/notes.txt": ""}))
    assert "no functions in" in message
    assert "a folder with an app.py that ends in `handler = serve(…)`" in message


@pytest.mark.parametrize(
    ("app", "expected_message"),
    [
        ("import nothing_of_this_name\n", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("def broken(:\n", "SyntaxError: invalid syntax (functions/b/app.py:1)"),
        ("raise ValueError('one\\ntwo')\n", "ValueError: one"),
        ("raise KeyError\n", "KeyError"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
    ],
)
def test_the_error_for_a_function_that_does_not_load_names_it(
    project: Callable[[dict[str, str]], Path], app: str, expected_message: str
) -> None:
    finders = list(sys.meta_path)
    message = load_error(project({"a/app.py": HELLO, "b/app.py": app}))
    assert message.startswith(f"functions/b/app.py does not load: {expected_message}")
    assert ("a package belongs in functions/b/requirements.txt" in message) == ("NotFound" in expected_message)
    assert sys.meta_path == finders


@pytest.mark.parametrize("app", ["", "handler = 7\n"])
def test_the_error_for_a_function_without_a_handler_shows_the_fix(
    project: Callable[[dict[str, str]], Path], app: str
) -> None:
    message = load_error(project({"a/app.py": app}))
    assert message == "functions/a/app.py has no `handler`: end it with `handler = serve(your_tool)`"


def test_a_folder_whose_name_no_lambda_can_have_is_refused(project: Callable[[dict[str, str]], Path]) -> None:
    assert "rename it; a Lambda's name has letters, digits, _ and - only" in load_error(project({"a b/app.py": HELLO}))
