"""Who may import whom, read from the sources; each rule is also shown a bad file."""

import ast
import pathlib
import subprocess
import sys

import pytest

LIBRARY = "transformer_ablation"
ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = {
    "config": set(),
    "vocabulary": set(),
    # Records and claims both say which process wrote them, and ask whether it lives;
    # whoever shares out work asks for its cores.
    "process": set(),
    "parallel": {"process"},
    "data": {"config", "process", "vocabulary"},
    "model": {"config"},
    # Asks layers, and models on real sentences, what an output depends on: it is
    # no part of training or scoring, and measures no machine.
    "dependence": {"config", "data", "model", "vocabulary"},
    "decode": {"config", "vocabulary"},
    "train": {"config", "model", "parallel"},
    "evaluate": {"config", "data", "decode", "model", "parallel", "vocabulary"},
    "sweep": {"config", "process"},
    "report": {"config", "process"},
    "export": {"config", "vocabulary"},
    # A trained run as an object, for command lines and notebooks alike: it reads a
    # run's folder (report, train's checkpoints), translates and scores (evaluate).
    "runs": {
        "config",
        "data",
        "decode",
        "evaluate",
        "model",
        "parallel",
        "report",
        "train",
        "vocabulary",
    },
    "benchmark": {
        "config",
        "data",
        "decode",
        "evaluate",
        "export",
        "model",
        "parallel",
        "process",
        "train",
        "vocabulary",
    },
}
# The package itself offers what notebooks use, and imports it when it is asked for.
ROOT_MAY = {"runs"}
WITHOUT_JAX = ("sweep", "report")
# JAX, and what is built on it.
JAX_STACK = {"jax", "jaxlib", "flax", "optax", "orbax", "chex"}
PICKLES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib"}
PICKLES |= {"marshal", "shelve"}
VAGUE_NAMES = {"utils.py", "helpers.py", "common.py", "misc.py"}
MAX_EXPERIMENT_LINES = 119


def sources(*folders):
    """Every Python file below the folders of the repository."""
    return sorted(p for f in folders for p in (ROOT / f).rglob("*.py"))


def module_name(path):
    """Dotted name of a file, counted from src/ or the root of the repository."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "src" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(text, module, is_package=False):
    """Absolute dotted names that a source imports, at any depth.

    ``from a import b`` gives ``a`` and ``a.b``: b may be a module. Dynamic imports
    count where the name is written out.
    """
    package = module if is_package else module.rpartition(".")[0]
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                parts = parts[: len(parts) - node.level + 1]
                base = ".".join(parts + [base] * bool(base))
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and node.args:
            called = ast.unparse(node.func).rpartition(".")[2]
            argument = node.args[0]
            if called in ("import_module", "__import__"):
                names |= {str(getattr(argument, "value", ast.unparse(argument)))}
    return names


def imports_of(path):
    text = path.read_text(encoding="utf-8")
    return imported(text, module_name(path), path.name == "__init__.py")


def tops(names):
    """First components: the distributions or packages themselves."""
    return {name.partition(".")[0] for name in names}


def library_packages(names):
    """Which packages of the library are among the names."""
    parts = [name.split(".") for name in names]
    return {p[1] for p in parts if p[0] == LIBRARY and len(p) > 1} & set(PACKAGES)


def package_of(module):
    """The package a module of the library belongs to; '' for the root itself."""
    return (module.split(".") + [""])[1]


def forbidden_imports(text, module, is_package=False):
    """Packages of the library that a module imports and may not."""
    package = package_of(module)
    found = library_packages(imported(text, module, is_package))
    allowed = PACKAGES.get(package, set()) if package else ROOT_MAY
    return found - allowed - {package}


def device_calls(text):
    """Uses of jax.pmap and jax.distributed, whatever jax is called in the file."""
    tree = ast.parse(text)
    imports = [a for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    jax = {a.asname or a.name.partition(".")[0] for a in imports if a.name == "jax"}
    jax |= {"jax"}
    used = {name for name in imported(text, "x") if "." in name}
    used |= {
        f"jax.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in jax
    }
    wanted = ("jax.pmap", "jax.distributed")
    return {w for w in wanted for u in used if u == w or u.startswith(w + ".")}


def pickle_uses(text):
    """Imports of modules that store code, and numpy's switch for it."""
    found = tops(imported(text, "x")) & PICKLES
    for node in ast.walk(ast.parse(text)):
        switch = isinstance(node, ast.keyword) and node.arg == "allow_pickle"
        if switch and getattr(node.value, "value", True) is not False:
            found |= {"allow_pickle"}
    return found


@pytest.mark.parametrize("path", sources(f"src/{LIBRARY}"), ids=module_name)
def test_module_imports_only_what_its_package_may(path):
    module = module_name(path)
    text = path.read_text(encoding="utf-8")
    assert package_of(module) in PACKAGES or module == LIBRARY
    assert forbidden_imports(text, module, path.name == "__init__.py") == set()


def test_every_package_of_the_table_exists():
    found = {package_of(module_name(p)) for p in sources(f"src/{LIBRARY}")} - {""}
    assert found == set(PACKAGES)


def test_library_imports_no_command_line_config_or_test():
    outside = {"experiments", "configs", "tests"}
    found = {p.name: tops(imports_of(p)) & outside for p in sources("src")}
    assert {name for name, names in found.items() if names} == set()


def test_configs_import_no_command_line():
    found = {p.name: tops(imports_of(p)) for p in sources("configs")}
    assert {name for name, names in found.items() if "experiments" in names} == set()


def test_only_parallel_uses_pmap_and_distributed():
    users = {
        module_name(path)
        for path in sources("src", "experiments", "configs")
        if device_calls(path.read_text(encoding="utf-8"))
    }
    assert users == {f"{LIBRARY}.parallel", f"{LIBRARY}.parallel.hosts"}


@pytest.mark.parametrize("package", WITHOUT_JAX)
def test_planning_and_tables_name_neither_jax_nor_flax(package):
    found = {
        p.name: tops(imports_of(p)) & JAX_STACK
        for p in sources(f"src/{LIBRARY}/{package}")
    }
    assert {name for name, names in found.items() if names} == set()


@pytest.mark.parametrize("package", [*WITHOUT_JAX, "config"])
def test_planning_and_tables_load_no_jax_through_others(package):
    paths = [
        p for p in sources(f"src/{LIBRARY}") if package_of(module_name(p)) == package
    ]
    modules = [module_name(p) for p in paths]
    assert modules
    program = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print(sorted({JAX_STACK!r} & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"


def test_process_of_a_peer_loads_no_jax():
    """Two libraries' threads in one process would take each other's cores."""
    modules = [f"{LIBRARY}.benchmark.marian", "experiments.bench"]
    program = f"import {', '.join(modules)}, sys; "
    program += f"print(sorted({JAX_STACK!r} & set(sys.modules)))"
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.stdout.strip(), result.stderr) == ("[]", "")


def test_package_offers_what_notebooks_use_and_loads_nothing_itself():
    """Nor does the table of a sweep need JAX."""
    program = (
        f"import sys, {LIBRARY} as library\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "heavy = {'numpy', 'jax', 'flax', 'sentencepiece'}\n"
        f"inner = [n for n in sys.modules if n.startswith('{LIBRARY}.')]\n"
        "assert not heavy & loaded and inner == [], inner\n"
        "assert {'load_run', 'load_sweep', 'RunError'} <= set(dir(library))\n"
        "assert issubclass(library.RunError, ValueError)\n"
        "library.load_sweep\n"
        f"print(sorted({JAX_STACK!r} & set(sys.modules)))\n"
        "try: library.load_rnu\n"
        "except AttributeError as error: print(error)\n"
    )
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    message = f"module '{LIBRARY}' has no attribute 'load_rnu'"
    assert result.stdout.splitlines() == ["[]", message]


def test_nothing_is_pickled():
    paths = sources("src", "experiments", "configs", "tests")
    found = {module_name(p): pickle_uses(p.read_text(encoding="utf-8")) for p in paths}
    assert {name for name, uses in found.items() if uses} == set()


def test_no_file_has_a_name_that_says_nothing():
    paths = sources("src", "experiments", "configs", "tests")
    assert [p for p in paths if p.name in VAGUE_NAMES] == []


def test_command_lines_are_short():
    sizes = {p.name: len(p.read_text().splitlines()) for p in sources("experiments")}
    assert {n: s for n, s in sizes.items() if s > MAX_EXPERIMENT_LINES} == {}


# Each rule sees what it is there to see.


@pytest.mark.parametrize(
    ("module", "text", "found"),
    [
        ("train.loop", f"import {LIBRARY}.data.batches", {"data"}),
        ("train.loop", f"from {LIBRARY} import decode, model", {"decode"}),
        ("train.loop", f"from {LIBRARY}.evaluate.bleu import score", {"evaluate"}),
        ("train.loop", "from ..sweep import rows", {"sweep"}),
        ("train.loop", "from .. import vocabulary, parallel", {"vocabulary"}),
        ("train.loop", "def f():\n  from .. import report", {"report"}),
        ("train.loop", "if 0:\n  import " + LIBRARY + ".data as d", {"data"}),
        ("train.loop", f"importlib.import_module('{LIBRARY}.data')", {"data"}),
        ("train.loop", "from . import step, loss\nfrom ..config import Config", set()),
        ("train.loop", f"import jax\nfrom {LIBRARY} import __version__", set()),
        ("config", "from . import vocabulary", {"vocabulary"}),
        ("parallel", f"import {LIBRARY}.config", {"config"}),
        ("decode.beam", "from ..model import transformer", {"model"}),
        ("model.layers", "from ..train.loss import nll", {"train"}),
        ("report.table", "from ..sweep.rows import Row", {"sweep"}),
    ],
)
def test_import_that_is_not_in_the_table_is_seen(module, text, found):
    assert forbidden_imports(text, f"{LIBRARY}.{module}") == found


def test_relative_import_in_a_package_file_counts_from_the_package():
    module, text = f"{LIBRARY}.sweep", "from . import rows\nfrom ..data import x"
    assert forbidden_imports(text, module, is_package=True) == {"data"}
    assert f"{LIBRARY}.sweep.rows" in imported(text, module, is_package=True)


def test_root_of_the_library_may_import_no_package_but_runs():
    assert forbidden_imports("from . import model", LIBRARY, True) == {"model"}
    assert forbidden_imports(f"from {LIBRARY}.runs import run", LIBRARY, True) == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import jax\njax.pmap(f)", {"jax.pmap"}),
        ("import jax as j\ng = j.pmap", {"jax.pmap"}),
        ("from jax import pmap as p", {"jax.pmap"}),
        ("import jax.distributed", {"jax.distributed"}),
        ("import jax\njax.distributed.initialize()", {"jax.distributed"}),
        ("from jax.distributed import initialize", {"jax.distributed"}),
        ("import jax\njax.jit(f)\nparallel.pmap(f)", set()),
    ],
)
def test_device_call_is_seen_under_every_name(text, found):
    assert device_calls(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import pickle", {"pickle"}),
        ("def f():\n  from cloudpickle import dumps", {"cloudpickle"}),
        ("np.load(f, allow_pickle=True)", {"allow_pickle"}),
        ("np.load(f, allow_pickle=flag)", {"allow_pickle"}),
        ("np.load(f, allow_pickle=False)\nimport json", set()),
    ],
)
def test_pickle_is_seen(text, found):
    assert pickle_uses(text) == found


def test_jax_is_seen_below_its_top_name():
    text = (
        "def f():\n  import jax.numpy as jnp\n  from flax import linen\n  import rich"
    )
    assert tops(imported(text, "x")) & JAX_STACK == {"jax", "flax"}
