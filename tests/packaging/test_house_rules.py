# SPDX-License-Identifier: Apache-2.0
"""Rules of this code base that a machine can check: layers, sizes, licence lines."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.checkout import NO_GIT, ROOT, git
from support.tiers import LONG
from support.workers import GROUPS

BACKEND = ROOT / "backend"
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
LICENCE = "SPDX-License-Identifier: Apache-2.0"


def _tracked_and_new(*suffixes: str) -> list[Path]:
    names = git("ls-files", "--cached", "--others", "--exclude-standard")
    paths = (ROOT / name for name in names if not name.startswith("third_party/"))
    return [path for path in paths if path.suffix in suffixes and path.is_file()]


if not (ROOT / ".git").exists():
    pytest.skip(NO_GIT, allow_module_level=True)
SOURCES = _tracked_and_new(".py", ".cc", ".cu", ".cuh", ".h", ".sh", ".cmake")
CPP = [path for path in SOURCES if path.suffix in {".cc", ".h"}]
CUDA = [path for path in SOURCES if path.suffix in {".cu", ".cuh"}]
# Those of the fuzz targets need Clang's libFuzzer, which is not a build requirement.
FUZZ = ROOT / "tests" / "fuzz"
INCLUDE_FOLDERS = (BACKEND, BACKEND / "src", BACKEND / "abi")
HEADERS = [path for path in CPP if path.suffix == ".h" and not path.is_relative_to(FUZZ)]


def test_there_is_something_to_check() -> None:
    assert len(CPP) > 20
    assert len(HEADERS) > 10
    assert len(SOURCES) > len(CPP) + 20


def test_no_link_is_tracked() -> None:
    """One to a folder of a machine replaces the folder of that name wherever it is checked out."""
    listed = git("ls-files", "--stage")
    assert [line for line in listed if line.startswith("120000 ")] == []


def test_every_source_names_its_licence_once() -> None:
    wrong = [
        _name(path)
        for path in SOURCES
        if sum(LICENCE in line for line in path.read_text().splitlines()[:3]) != 1
    ]
    assert wrong == []


def test_no_file_is_too_long() -> None:
    lengths = {_name(path): len(path.read_text().splitlines()) for path in SOURCES}
    assert {name: n for name, n in lengths.items() if n > MAX_FILE_LINES} == {}


def test_no_function_is_too_long() -> None:
    functions = [f for path in SOURCES if path.suffix == ".py" for f in _python_functions(path)]
    functions += [f for path in CPP + CUDA for f in _cpp_functions(path)]
    assert len(functions) > 200
    assert [(name, n) for name, n in functions if n > MAX_FUNCTION_LINES] == []


@pytest.mark.parametrize(
    "layer", ["config", "engine", "metrics", "quality", "queue", "rows", "text"]
)
def test_the_core_knows_nothing_of_triton(layer: str) -> None:
    files = [path for path in CPP if path.is_relative_to(BACKEND / "src" / layer)]
    assert files
    assert _matches(files, r'#include "(triton_c_api\.h|triton/)|TRITON(SERVER|BACKEND)_') == []


# What each folder of backend/src may include: folders, and single files of folders that it knows
# a part of only. Each folder may include its own files and those in COMMON.
TEST_BINDINGS = {
    "loop_bindings.cc",
    "loop_work_bindings.cc",
    "products_bindings.cc",
    "timed_layers.cc",
    "timed_layers.h",
}  # of parts of the engine
COMMON = {"error.h", "steady_clock.h"}
LAYERS: dict[str, set[str]] = {
    "config": set(),
    "metrics": set(),
    "quality": {"config/parse_value.h", "text/code_points.h", "text/word_characters.h"},
    "rows": {"config/"},
    "engine": {
        *("config/", "rows/", "ctranslate2_api.h"),
        "gpu/args.h",
    },
    "queue": {
        *("config/", "rows/"),
        # The interface of the engine: what does not lead to CTranslate2.
        *("engine/loaded_model.h", "engine/device.h", "engine/search/finish.h"),
        *("engine/calls/call_engine.h", "engine/calls/call_model.h"),
        *("engine/loop/loop_engine.h", "engine/loop/step_time.h", "engine/calls/thread_scope.h"),
        *("engine/team.h", "engine/usable_cores.h"),
    },
    "triton": {"config/", "metrics/", "rows/", "engine/device.h", "triton_c_api.h"},
    "text": {"config/nearest_name.h", "config/parse_value.h"},
    "serving": {
        *("config/", "metrics/", "rows/", "quality/", "queue/", "text/", "triton/"),
        "triton_c_api.h",
        *("engine/loaded_model.h", "engine/device.h"),
    },
}


def test_every_folder_of_the_backend_is_a_layer() -> None:
    assert {path.name for path in (BACKEND / "src").iterdir() if path.is_dir()} == set(LAYERS)


@pytest.mark.parametrize("layer", sorted(LAYERS))
def test_a_layer_includes_only_what_it_may_know(layer: str) -> None:
    allowed = {f"{layer}/", *LAYERS[layer], *COMMON}
    wrong = [
        f"{_name(path)}: {header}"
        for path in CPP
        if path.is_relative_to(BACKEND / "src" / layer)
        for header in _includes(path)
        if not any(header == one or (one[-1] == "/" and header.startswith(one)) for one in allowed)
    ]
    assert wrong == []


def test_folders_of_the_engine_include_only_those_before() -> None:
    engine = BACKEND / "src" / "engine"
    order = ("model", "compute", "search", "calls", "loop")
    own = {"device.h", "shared_by_key.h", "team.h", "usable_cores.h"}
    allowed = {f"engine/{name}" for name in own}
    for place, folder in enumerate(order):
        before = tuple(f"engine/{name}/" for name in order[: place + 1])
        wrong = [
            f"{_name(path)}: {header}"
            for path in CPP
            if path.is_relative_to(engine / folder)
            for header in _includes(path)
            if header.startswith("engine/") and not header.startswith(before)
            if header not in allowed
        ]
        assert wrong == []
    assert {path.name for path in engine.iterdir() if path.is_dir()} == set(order)


def test_only_the_library_of_calls_names_ctranslate2() -> None:
    """Nobody else includes our declarations, not through any header either."""
    engine = BACKEND / "src" / "engine"
    ours = engine / "calls" / "library"
    others = [
        path
        for path in CPP
        if path.is_relative_to(BACKEND)
        and not path.is_relative_to(ours)
        and not path.name.startswith("ctranslate2_")
        and path.name not in TEST_BINDINGS
    ]
    assert len(others) > 50
    assert _matches(others, r"\bctranslate2::") == []
    declared = [
        f"{_name(path)}: {header.name}"
        for path in others
        for header in sorted(_reached(path))
        if header.name.startswith("ctranslate2_")
    ]
    assert declared == []
    reached = _reached(ours / "ct2_library.cc")
    assert any(header.name == "ctranslate2_api.h" for header in reached)


def test_kernels_include_nothing_with_code_for_other_files() -> None:
    """They are compiled for instructions that a processor may lack: see backend/CMakeLists.txt."""
    products = BACKEND / "src" / "engine" / "compute" / "cpu" / "products"
    files = [*products.glob("kernel_*.cc"), products / "kernel_body.h", products / "lane_math.h"]
    files = [path for path in files if path.name != "kernel_choice.cc"]
    files += products.parent.glob("row_functions*")
    assert len(files) == 14
    mine = "products/(kernel|kernel_body|lane_math)|row_functions(_body)?|exponential"
    ours = rf'"engine/(model/activation|compute/cpu/({mine}))\.h"'
    allowed = rf"(<cstddef>|<cstdint>|<cstring>|<immintrin\.h>|{ours})"
    assert _matches(files, rf"#include (?!{allowed})") == []


def test_products_know_nothing_of_ctranslate2() -> None:
    files = [path for path in CPP if "products" in path.parts and "engine" in path.parts]
    assert len(files) > 10
    ours = r"(compute/cpu/(products/|processor|exponential)|model/activation\.h|team\.h)"
    assert _matches(files, rf'#include "(ctranslate2|engine/(?!{ours}))') == []


def test_no_floats_of_the_host_cross_the_interface_of_a_device() -> None:
    """A device takes rules and gives tokens, scores, candidates and positions, by value."""
    compute, search = BACKEND / "src" / "engine" / "compute", BACKEND / "src" / "engine" / "search"
    names = ("device_model", "loop_compute", "row_alignment", "step_sequence")
    interface = [compute / f"{name}.h" for name in names]
    interface += [search / f"{name}.h" for name in ("wide_search", "beam_search", "alternatives")]
    assert _matches(interface, r"float ?\*") == []
    choice = (compute / "token_choice.h").read_text()
    for name in ("OutputRules", "Found", "Choice", "Draw"):
        found = re.search(rf"^struct {name} {{.*?^}};", choice, re.DOTALL | re.MULTILINE)
        assert found
        assert not re.search(r"float ?\*", found[0]), name


def test_only_config_text_and_the_bindings_know_the_json_library() -> None:
    source = BACKEND / "src"
    allowed = (source / "config", source / "quality", source / "text", BACKEND / "python")
    files = [path for path in CPP if not any(path.is_relative_to(folder) for folder in allowed)]
    assert _matches(files, r"#include <nlohmann/") == []


def test_each_entry_point_is_one_statement() -> None:
    """Rule 6: an entry point is one call through the one guard."""
    text = (BACKEND / "src" / "api.cc").read_text()
    bodies = re.findall(r"\bTRITONBACKEND_\w+\([^)]*\)\s*\{(.*?)\n\}", text, flags=re.DOTALL)
    assert len(bodies) >= 6
    assert all(body.strip().startswith("return ") for body in bodies)


def test_cmake_lists_every_source_once_and_sorted() -> None:
    """Sorted lists and no globbing: a forgotten file fails here, not at the first load."""
    text = (BACKEND / "CMakeLists.txt").read_text()
    lists = [re.findall(r"^  (\S+\.cc)\)?$", block, re.MULTILINE) for block in text.split("\n\n")]
    listed = [name for names in lists for name in names]
    assert sorted(listed) == sorted(
        str(path.relative_to(BACKEND)) for path in CPP
        if path.suffix == ".cc" and path.is_relative_to(BACKEND)
    )  # fmt: skip
    assert all(names == sorted(names) for names in lists)


def _included_first() -> set[Path]:
    """Headers that a source file of the backend includes first: each build compiles them alone."""
    first = set()
    for path in CPP:
        include = re.search(r'^#include "(.+)"', path.read_text(), re.MULTILINE)
        if path.suffix == ".cc" and path.is_relative_to(BACKEND) and include is not None:
            first.update(folder / include[1] for folder in INCLUDE_FOLDERS)
    return first


def test_every_header_compiles_alone() -> None:
    folders = [*INCLUDE_FOLDERS, _python_include("nlohmann_json", "include")]
    folders.append(_python_include("pybind11", "include"))
    flags = ["-std=c++17", "-fsyntax-only", "-x", "c++", "-w", *_python_headers()]
    flags += [f"-I{folder}" for folder in folders]
    flags += ['-DCT2TRITON_CT2_MIN="0"', '-DCT2TRITON_CT2_MAX="0"', '-DCT2TRITON_VERSION="0"']

    def complaint(header: Path) -> str:
        return subprocess.run(
            ["g++", *flags, str(header)], capture_output=True, text=True, check=False
        ).stderr

    others = set(HEADERS) - _included_first()
    assert 10 < len(others) < len(HEADERS) / 2
    with ThreadPoolExecutor(2) as pool:
        complaints = dict(zip(others, pool.map(complaint, others), strict=True))
    assert {_name(path): text for path, text in complaints.items() if text} == {}


def test_a_type_of_a_header_has_a_name_of_its_own() -> None:
    """Two types of one name compile and link, and then one is built with the other's size."""
    places: dict[tuple[str, str], set[str]] = {}
    for path in HEADERS:
        text = path.read_text()
        namespace = re.findall(r"^namespace (ct2triton[\w:]*) \{", text, re.MULTILINE)[:1]
        if not namespace:
            continue
        for name in re.findall(r"^(?:struct|class|enum class) (\w+)[^;{]*\{", text, re.MULTILINE):
            places.setdefault((namespace[0], name), set()).add(_name(path))
    assert len(places) > 100
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_tools_know_nothing_of_the_tests() -> None:
    """Tests may use tools, and nobody may need both to understand either."""
    files = [path for name in ("tools", "demo_model") for path in (ROOT / name).rglob("*.py")]
    assert len(files) > 15
    assert _matches(files, r"\btests\b|(import|from) (support|tiny_|core\b|server\b)") == []


# Parts of the names of variables in a model.
SCOPES = {"attention", "ffn", "layer_norm", "self_attention"}
# What an absolute path may begin with: folders of every Linux, and those of examples, of images
# and of URLs. A place of one machine (a home, a checkout, a temporary folder) is none of them.
ROOTS = {"bin", "dev", "etc", "lib", "mnt", "opt", "proc", "sys", "usr", "var"}
EXAMPLES = {"backends", "build", "cache", "models", "nowhere"}
# Control groups, and what follows the number of a processor in /sys.
KERNEL = {"a", "system.slice", "topology"}
URLS = {
    "api",
    "download_file",
    "frontend",
    "grpc.health.v1.Health",
    "resolve",
    "revision",
    "translate",
    "tree",
    "v2",
    "versions",
}


def test_nothing_names_a_machine() -> None:
    texts = _tracked_and_new(
        *(".py", ".cc", ".h", ".sh", ".md", ".toml", ".txt", ".cmake", ".json", ".yml", ".yaml", "")
    )
    # In .gitignore, a path begins at the checkout.
    files = [path for path in texts if path.name != ".gitignore"]
    allowed = "|".join(sorted(ROOTS | EXAMPLES | KERNEL | URLS | SCOPES))
    begins = r"(?<![\w.:/+}\)\]<>*`~-])"
    assert _matches(files, rf"{begins}/(?!(?:{allowed})/)[A-Za-z_][\w.-]*/") == []


def _matches(files: list[Path], pattern: str) -> list[str]:
    return [
        f"{_name(path)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if re.search(pattern, line)
    ]


def _includes(path: Path) -> list[str]:
    """Headers of this code base that a file includes, as it writes them."""
    return re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE)


def _reached(path: Path) -> set[Path]:
    """Headers of this code base that a file includes, directly or through others."""
    gpu = BACKEND / "gpu"
    folders = (BACKEND / "src", BACKEND / "abi", BACKEND / "python", BACKEND, gpu)
    reached: set[Path] = set()
    to_read = [path]
    while to_read:
        for name in _includes(to_read.pop()):
            header = next(f / name for f in (*folders, gpu / "emulation") if (f / name).is_file())
            if header not in reached:
                reached.add(header)
                to_read.append(header)
    return reached


def _python_functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0].lineno
            is_docstring = isinstance(node.body[0], ast.Expr) and ast.get_docstring(node)
            # A docstring's length is no complexity: lines of code are counted.
            start = (node.body[0].end_lineno or first) + 1 if is_docstring else first
            yield f"{_name(path)}:{node.name}", (node.end_lineno or start) - start + 1


def _cpp_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Functions as clang-format writes them: `) ... {` opens, `}` at the same indent ends."""
    lines = path.read_text().splitlines()
    for start, line in enumerate(lines):
        if not re.search(r"\)( const| noexcept| override|->.*)* \{$", line):
            continue
        if re.match(r"\s*(if|for|while|switch|else|\}|catch)\b", line):
            continue
        indent = len(line) - len(line.lstrip())
        closing = re.compile(rf"^ {{0,{indent}}}\}}")
        end = next((n for n in range(start + 1, len(lines)) if closing.match(lines[n])), start)
        yield f"{_name(path)}:{start + 1}", end - start + 1


def _python_include(package: str, folder: str) -> Path:
    import importlib.util

    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / folder


def _python_headers() -> list[str]:
    import sysconfig

    return [f"-I{sysconfig.get_paths()['include']}"]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_what_is_long_and_what_stays_together_is_there() -> None:
    """An entry that nothing answers to would send its tests back to `make test` in silence."""
    entries = [*LONG, *(one for group in GROUPS for one in group)]
    for entry in entries:
        place, _, value = entry.rstrip("]").partition("[")
        file, _, name = place.partition("::")
        path = ROOT / "tests" / file
        assert path.exists(), entry
        text = "" if path.is_dir() else path.read_text()
        assert f"def {name}(" in text or not name, entry
        assert value in text or not value, entry
