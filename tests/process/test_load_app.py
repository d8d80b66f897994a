"""Loading an application: every form of a target, and every way it can fail."""

import asyncio
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bridgehead.errors import StartError
from bridgehead.load_app import LoadedApp, load

APP = "async def app(scope, receive, send): ...\n"
NAMED = "async def {}(scope, receive, send): ...\n"
CLASS = "class Server:\n    async def __call__(self, scope, receive, send): ...\n"

Write = Callable[..., Path]
_numbers = itertools.count()


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes files into the current directory; what they import is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write_one(name: str, source: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return path

    yield write_one
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def loaded(target: Any, *, factory: bool = False, app_dir: str = "") -> LoadedApp:
    return load(target, factory=factory, app_dir=app_dir)


def refused(target: str, *, factory: bool = False, app_dir: str = "") -> StartError:
    with pytest.raises(StartError) as problem:
        load(target, factory=factory, app_dir=app_dir)
    assert "load_app" not in problem.value.detail
    assert "importlib" not in problem.value.detail
    return problem.value


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("shop:app", "shop:app"),
        ("shop", "shop:app"),
        ("shop:holder.inner", "shop:holder.inner"),
        ("shop:make()", "shop:make()"),
        ("shop.py", "shop.py:app"),
        ("./shop.py:app", "./shop.py:app"),
        ("shop.py:make()", "shop.py:make()"),
    ],
)
def test_each_form_of_a_target_finds_the_application(write: Write, target: str, name: str) -> None:
    write("shop.py", f"{APP}class holder:\n    inner = app\ndef make(): return app\n")
    found = loaded(target)
    assert found.name == name
    assert getattr(found.application, "__name__", "") == "app"


def test_an_application_object_is_taken_as_it_is() -> None:
    async def served(scope: object, receive: object, send: object) -> None: ...

    assert loaded(served).application is served
    assert loaded(lambda: served, factory=True).application is served


@pytest.mark.parametrize("name", ["app", "application", "api"])
def test_a_module_alone_is_searched_for_the_usual_names(write: Write, name: str) -> None:
    write("alone.py", NAMED.format("other") + NAMED.format(name))
    assert loaded("alone").name == f"alone:{name}"


def test_a_module_alone_serves_its_only_application(write: Write) -> None:
    write("alone.py", CLASS + "site = Server()\nsame = site\ndef helper(scope): ...\n")
    assert type(loaded("alone").application).__name__ == "Server"


def test_an_inherited_call_is_an_application_too(write: Write) -> None:
    write("alone.py", CLASS + "class Shop(Server): ...\nsite = Shop()\n")
    assert loaded("alone").name == "alone:site"


@pytest.mark.parametrize(
    "source",
    [
        "async def site(s, r, send): ...\n",
        "import functools\nasync def _f(one, s, r, send): ...\nsite = functools.partial(_f, 1)\n",
        "class _Site:\n    async def __call__(self, s, r, send): ...\nsite = _Site()\n",
        "from other import imported\nasync def site(s, r, send): ...\n",
        CLASS + "site = Server()\nasync def create_item(item, database, user): ...\n",
    ],
    ids=["function", "partial", "instance", "beside an import", "beside a handler"],
)
def test_the_only_application_may_name_its_parameters_as_it_likes(write: Write, source: str) -> None:
    write("other.py", NAMED.format("imported"))
    write("alone.py", source + "async def _private(a, b, c): ...\nasync def two(a, b): ...\n")
    assert loaded("alone").name == "alone:site"


def test_an_imported_function_with_three_parameters_is_no_application(write: Write) -> None:
    write("other.py", "async def imported(a, b, c): ...\n")
    write("alone.py", "from other import imported\n")
    assert refused("alone").message == "alone has no app, application, api, nor another ASGI application"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("api = APIRouter()\nserver = FastAPI()\n", "server"),
        ("app = lambda *_: None\napi = FastAPI()\n", "api"),
        ("zoo = FastAPI()\nsub = FastAPI()\nasync def site(s, r, send): ...\n", "sub"),
        ("api = FastAPI()\napp = FastAPI()\n", "app"),
    ],
)
def test_a_fastapi_goes_before_whatever_else_a_module_has(write: Write, source: str, name: str) -> None:
    """As `fastapi run` has it: `app`, `api`, then the first by name."""
    write("alone.py", "from fastapi import APIRouter, FastAPI\n" + source)
    assert loaded("alone.py").name == f"alone.py:{name}"


def test_a_wrapper_that_is_passed_over_for_a_fastapi_is_told(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    write("alone.py", "from fastapi import FastAPI\nsite = FastAPI()\nasync def app(s, r, send): ...\n")
    assert loaded("alone.py").name == "alone.py:site"
    assert "Write alone.py:app for that one" in caplog.text


def test_two_applications_are_not_guessed_between(write: Write) -> None:
    write("alone.py", NAMED.format("one") + NAMED.format("two"))
    problem = refused("alone")
    assert problem.message == "alone has several applications"
    assert problem.hint == "name it: `alone:one` or `alone:two`"


def test_a_module_without_any_application_is_told_what_to_name(write: Write) -> None:
    write("alone.py", "app = 3\n")
    assert refused("alone:app").hint == "name an application in it: `alone:attribute`"


def test_a_module_with_only_a_factory_is_told_how_to_name_it(write: Write) -> None:
    write("alone.py", "def create_app(): ...\n")
    assert refused("alone").hint == "name it: `alone:create_app()`"


@pytest.mark.parametrize(
    "maker", ["def make_app(): ...", "def get_asgi_application(): ...", "def build() -> 'FastAPI': ..."]
)
def test_only_what_says_that_it_makes_an_application_is_offered_as_a_factory(
    write: Write, maker: str
) -> None:
    write("alone.py", f"def main(): ...\n{maker}\n")
    name = maker.removeprefix("def ").partition("(")[0]
    assert refused("alone").hint == f"name it: `alone:{name}()`"


def test_other_functions_are_listed_and_not_offered(write: Write) -> None:
    write("alone.py", "def main(): ...\ndef walk(top): ...\n")
    assert refused("alone").hint == "name an application in it: `alone:attribute`; it has main, walk"


def test_the_factory_flag_calls_what_is_named(write: Write) -> None:
    write("shop.py", APP + "def make(debug=False): return app\n")
    assert loaded("shop:make", factory=True).name == "shop:make()"


def test_a_function_without_arguments_is_a_factory_unsaid(write: Write) -> None:
    write("shop.py", APP + "def make(debug=False): return app\n")
    assert loaded("shop:make").name == "shop:make()"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "def make(settings): ...",
            "the factory f:make needs arguments: missing a required argument: 'settings'",
        ),
        ("async def make(scope, receive, send): ...", "f:make is an application, and no factory"),
        ("def make(): return 3", "the factory f:make returned int, which cannot be called"),
        ("async def make(): ...", "the factory f:make is a coroutine function"),
        ("def make(): 1 / 0", "the factory f:make raised ZeroDivisionError"),
        ("def make(): raise SystemExit(1)", "the factory f:make raised SystemExit"),
    ],
)
def test_a_factory_that_gives_no_application_is_explained(write: Write, body: str, message: str) -> None:
    write("f.py", body + "\n")
    problem = refused("f:make()")
    assert problem.message == message
    assert problem.detail.count("File ") == ("raise" in message)


def test_a_file_in_a_package_may_import_relatively(write: Write) -> None:
    for package in ("deep", "deep/er"):
        write(f"src/{package}/__init__.py", "")
    write("src/deep/names.py", "name = 'found'\n")
    write("src/deep/er/main.py", "from ..names import name\n" + APP)
    found = loaded("src/deep/er/main.py:app")
    assert getattr(found.application, "__module__", "") == "deep.er.main"


def test_a_package_file_is_its_package(write: Write) -> None:
    write("kist/__init__.py", "from .inside import app\n")
    write("kist/inside.py", APP)
    assert getattr(loaded("kist/__init__.py").application, "__module__", "") == "kist.inside"


def test_a_file_may_import_its_neighbour(write: Write) -> None:
    write("lonely/neighbour.py", APP)
    write("lonely/my-app.py", "from neighbour import app\n")
    assert loaded("lonely/my-app.py").name == "lonely/my-app.py:app"


def test_a_file_named_as_a_loaded_module_does_not_replace_it(write: Write) -> None:
    write("enum.py", APP)
    before = sys.modules["enum"]
    assert getattr(loaded("enum.py").application, "__module__", "") == "enum_app"
    assert sys.modules["enum"] is before


def test_the_application_directory_goes_first_on_the_path(write: Write) -> None:
    folder = write("elsewhere/there.py", APP).parent
    assert loaded("there", app_dir="elsewhere").name == "there:app"
    assert loaded("there.py", app_dir="elsewhere").name == "there.py:app"
    assert sys.path[0] == str(folder)


def test_a_directory_that_is_not_there_is_refused(write: Write) -> None:
    write("x.py", APP)
    assert refused("x", app_dir="nowhere").message == "--app-dir: there is no directory 'nowhere'"


@pytest.mark.parametrize(
    ("target", "message", "hint"),
    [
        ("shp:app", "there is no module 'shp' in {} or on sys.path", "did you mean `shop:app`?"),
        ("kist.shap:app", "there is no module 'kist.shap' in {}/kist", "did you mean `kist.shape:app`?"),
        ("kost.shape", "there is no module 'kost' in {} or on sys.path", "did you mean `kist.shape`?"),
        ("shop.app", "'shop' is a module, not a package", "did you mean `shop:app`?"),
        (
            "zzzzzz",
            "there is no module 'zzzzzz' in {} or on sys.path",
            "it has kist, shop; --app-dir names another",
        ),
        ("shap.py", "there is no file 'shap.py'", "did you mean `shop.py`?"),
        ("no/shop.py", "there is no file 'no/shop.py'", "there is no such directory: {}/no"),
        ("shop:ap", "shop has no attribute 'ap'", "did you mean `shop:app`? it has app"),
        ("shop:app.x.y", "shop:app has no attribute 'x'", "it holds nothing"),
        ("shop:number", "shop:number is of type int, which cannot be called", "name it: `shop:app`"),
        (
            "kist/shape:app",
            "'kist/shape:app' is neither a module nor a .py file",
            "`kist/shape.py:app` or `kist.shape:app`",
        ),
        (
            "kist/shape.txt",
            "'kist/shape.txt' is neither a module nor a .py file",
            "name a .py file, or a module",
        ),
        ("readme.txt:app", "'readme.txt' is a file, but not one of Python", "name a .py file, or a module"),
        ("shop:make(1)", "'shop:make(1)' calls a factory with arguments", "without arguments"),
        ("shop:make().app", "'shop:make().app' goes on after it calls a factory", "the application itself"),
        ("shop.py/app", "'shop.py/app' joins a file and an attribute by a slash", "`shop.py:app`?"),
        ("shop:shelf.nope", "shop:shelf has no attribute 'nope'", "it has inner"),
        ("shop:shelf.iner.app", "shop:shelf has no attribute 'iner'", "did you mean `shop:shelf.inner`?"),
        ("shop:", "'shop:' does not name an attribute", "write module:attribute"),
        ("kist/", "'kist/' is a directory", "name a module or a file: `kist.shape` or `kist`"),
        ("./kist/:app", "'./kist/' is a directory", "`kist.shape:app` or `kist:app`"),
        ("bare/", "'bare/' is a directory", "`bare/main.py` or `bare/aside.py`"),
        ("bare", "bare is a directory", "`bare/main.py` or `bare/aside.py`"),
        ("bare:app", "bare has no attribute 'app'", "`bare/main.py:app` or `bare/aside.py:app`"),
        ("deep.bare", "deep.bare is a directory", "name a module or a file: `deep/bare/main.py`"),
        (".", "'.' is a directory", "`my-app.py` or `shop.py`"),
        (
            "shop.py.app",
            "'shop.py.app' joins a file and an attribute by a dot",
            "did you mean `shop.py:app`?",
        ),
        ("kist/shape.py.app", "'kist/shape.py.app' joins a file", "did you mean `kist/shape.py:app`?"),
        ("my-app:app", "'my-app' is not the name of a module", "did you mean `my-app.py:app`?"),
        ("kist:shape", "kist has no attribute 'shape'", "did you mean `kist.shape`?"),
        ("kist:shape.app", "kist has no attribute 'shape'", "did you mean `kist.shape:app`?"),
        (":app", "':app' does not name a module", "write module:attribute"),
        ("my-shop:app", "'my-shop:app' does not name a module", "write module:attribute"),
    ],
)
def test_a_target_that_is_not_there_names_the_next_step(
    write: Write, tmp_path: Path, target: str, message: str, hint: str
) -> None:
    write("readme.txt", "")
    shelf = "class Shelf: pass\nshelf = Shelf()\nshelf.inner = Shelf()\nshelf.inner.app = app\n"
    write("shop.py", APP + "number = 3\n" + shelf)
    write("kist/__init__.py", "")
    write("kist/shape.py", APP)
    write("bare/aside.py", APP)
    write("bare/main.py", APP)
    write("deep/bare/main.py", APP)
    write("my-app.py", APP)
    problem = refused(target)
    assert problem.message.startswith(message.format(tmp_path))
    assert hint.format(tmp_path) in problem.hint
    assert problem.detail == ""


def test_what_is_named_as_a_file_and_is_none_is_told_so(write: Write, tmp_path: Path) -> None:
    write("folder.py/aside.py", APP)
    (tmp_path / "gone.py").symlink_to("/nowhere/app.py")
    assert refused("folder.py").message == "'folder.py' is a directory"
    assert refused("gone.py").message == "'gone.py' links to '/nowhere/app.py', where there is no file"
    assert "did you mean" not in refused("gonn.py").hint


def test_a_failed_import_inside_the_application_shows_its_own_traceback(write: Write) -> None:
    path = write("main.py", "import inner\n")
    inner = write("inner.py", "\nimport absent_library.part\n")
    problem = refused("main:app")
    assert problem.message == "main imports 'absent_library', which is not installed"
    assert sys.executable in problem.hint
    assert f'File "{path}", line 1' in problem.detail
    assert f'File "{inner}", line 2' in problem.detail
    assert problem.detail.count("File ") == 2


@pytest.mark.parametrize(
    ("imports", "message", "hint"),
    [
        ("from .viws import views", "kist imports 'kist.viws', which is not in {}/kist", "`views`"),
        ("import kist.other.deep", "kist imports 'kist.other', which is not in {}/kist", "make it"),
        (
            "import kist.inner.gone",
            "kist imports 'kist.inner.gone', which is not in {}/kist/inner",
            "make it",
        ),
        ("import absent.part", "kist imports 'absent', which is not installed", "install it"),
    ],
)
def test_a_module_that_a_package_lacks_is_not_to_be_installed(
    write: Write, tmp_path: Path, imports: str, message: str, hint: str
) -> None:
    write("kist/__init__.py", f"{imports}\n")
    write("kist/views.py", "views = 1\n")
    write("kist/inner/__init__.py", "")
    problem = refused("kist:app")
    assert problem.message == message.format(tmp_path)
    assert hint in problem.hint
    assert problem.detail.count("File ") == 1


def test_a_missing_import_in_a_file_shows_its_own_traceback(write: Write) -> None:
    write("main.py", "import absent_library\n")
    problem = refused("main.py")
    assert problem.message == "main.py imports 'absent_library', which is not installed"
    assert problem.detail.count("File ") == 1


def test_a_cause_keeps_its_traceback_without_our_frames(write: Write) -> None:
    write("main.py", "try:\n    import absent\nexcept ImportError as e:\n    raise ValueError('no') from e\n")
    problem = refused("main")
    assert problem.message == "main raised ValueError while it was imported"
    assert "ModuleNotFoundError" in problem.detail
    assert problem.detail.count("File ") == 2


def test_a_module_named_as_an_application_is_named_as_a_module(write: Write) -> None:
    write("bag/__init__.py", "from . import web\n")
    write("bag/web.py", APP)
    problem = refused("bag:web")
    assert problem.message == "bag:web is of type module, which cannot be called"
    assert problem.hint == "did you mean `bag.web`?"


@pytest.mark.parametrize(
    ("target", "otherwise"), [("lonely/main.py:site", "; or add lonely/__init__.py"), ("main:site", "")]
)
def test_a_relative_import_outside_a_package_is_told_its_package(
    write: Write, target: str, otherwise: str
) -> None:
    write("lonely/main.py", "from .a import Z\n")
    problem = refused(target, app_dir="lonely" if target.startswith("main") else "")
    assert problem.message == f"{target.removesuffix(':site')} imports relatively, and is in no package"
    expected = "run it as a module of its package: `serve lonely.main:site`"
    assert problem.hint == expected + otherwise
    assert problem.detail.count("File ") == 1


def test_a_relative_import_in_a_folder_that_cannot_be_a_package_is_made_absolute(write: Write) -> None:
    write("my-shop/main.py", "from .a import Z\n")
    assert refused("my-shop/main.py").hint.startswith("leave out the dot: ")


@pytest.mark.parametrize(
    ("target", "source"),
    [
        ("main", "import asyncio\nasync def f(): ...\nasyncio.run(f())\n"),
        ("main", "import asyncio\nasync def f(): ...\nasyncio.get_running_loop().run_until_complete(f())\n"),
        ("main:make()", "import asyncio\nasync def f(): ...\ndef make(): asyncio.run(f())\n"),
    ],
)
def test_a_loop_inside_the_loop_is_told_where_to_go(write: Write, target: str, source: str) -> None:
    write("main.py", source)

    async def load_inside() -> StartError:
        return refused(target)

    # A coroutine left behind would warn, which is an error here.
    problem = asyncio.run(load_inside())
    assert "raised RuntimeError" in problem.message
    assert problem.hint.startswith("the server's loop runs already: await it in")


def test_a_syntax_error_names_the_line(write: Write) -> None:
    write("main.py", "import broken\n")
    write("broken.py", "x = 1\ndef f(:\n")
    problem = refused("main:app")
    assert problem.message == "main has a syntax error in broken.py, line 2"
    assert "def f(:" in problem.detail


def test_a_module_that_exits_is_reported(write: Write) -> None:
    write("main.py", "import sys\nsys.exit(4)\n")
    problem = refused("main:app")
    assert problem.message == "main ended the process while it was imported (exit code 4)"
    assert problem.detail.count("File ") == 1


@pytest.mark.parametrize("target", ["main", "main:app", "main.py"])
@pytest.mark.parametrize("error", ["RuntimeError", "SystemExit"])
def test_a_module_that_cannot_be_asked_is_the_applications_fault(
    write: Write, target: str, error: str
) -> None:
    write("main.py", f"def __getattr__(name): raise {error}(name)\n")
    problem = refused(target)
    assert problem.message == f"{target.removesuffix(':app')}:app raised {error}"
    assert problem.detail.count("File ") == 1


def test_a_proxy_that_cannot_be_asked_is_no_application(write: Write) -> None:
    write(
        "main.py",
        "class Proxy:\n    def __getattribute__(self, name): raise RuntimeError(name)\n"
        "    def __call__(self): ...\nuser = Proxy()\n" + NAMED.format("site"),
    )
    assert loaded("main").name == "main:site"


def test_an_attribute_that_raises_is_not_called_missing(write: Write) -> None:
    write(
        "main.py", "class Lazy:\n    @property\n    def app(self): raise RuntimeError('no')\nlazy = Lazy()\n"
    )
    problem = refused("main:lazy.app")
    assert problem.message == "main:lazy.app raised RuntimeError"
    assert problem.detail.count("File ") == 1
