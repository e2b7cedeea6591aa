"""Makefile, pins, licence and the CI script, tried in empty folders.

The interpreters are stand-ins: shell scripts that answer the Makefile's questions
with a real Python and note every installation instead of making it.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib

import pytest

import transformer_ablation

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="no make here")

# Answers as Python VERSION at its own path; `-m venv` makes a folder with a copy.
STAND_IN = r"""#!/bin/sh
case "$1 $2" in
  "-c "*)
    {real} -c 'import sys; sys.exit(not (3, 11) <= {version} < (3, 14))' || exit 1
    echo "{text} {base}"; exit ;;
  "-m venv")
    if [ -e full_disk ]; then echo "no space left" >&2; exit 1; fi
    rm -rf .venv; mkdir -p .venv/bin; cp "{base}" .venv/bin/python
    echo "venv {text}" >> log; exit ;;
  "-m pip")
    case "$*" in *install*) ;; *) exit 0 ;; esac
    echo "pip {text}" >> log
    if [ -e no_network ]; then echo "cannot reach the index" >&2; exit 1; fi
    exit 0 ;;
  "-m pytest" | "-m experiments.sweep")
    echo "run $*" >> log; echo "PYTHONPATH=$PYTHONPATH" >> log; exit ;;
esac
exit 99
"""


def write_script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class Folder:
    """A folder with the Makefile and requirements, and interpreters of its own."""

    def __init__(self, root, repository):
        self.root = root / "clone"
        self.bin = root / "bin"
        self.root.mkdir()
        shutil.copy(repository / "Makefile", self.root)
        (self.root / "requirements.txt").write_text("one==1\n")
        for name in ("sh", "cat", "cksum", "rm", "mv", "cp", "mkdir", "make"):
            self.bin.mkdir(exist_ok=True)
            (self.bin / name).symlink_to(shutil.which(name))

    def add_python(self, name, *version):
        path = self.bin / name
        text = ".".join(map(str, version))
        fields = {"real": sys.executable, "base": path, "text": text}
        fields["version"] = "({})".format(", ".join(map(str, version)))
        script = STAND_IN
        for key, value in fields.items():
            script = script.replace("{" + key + "}", str(value))
        write_script(path, script)

    def make(self, *arguments):
        """Exit code and error text of make, with only the stand-ins on the PATH."""
        environment = {"PATH": str(self.bin), "HOME": str(self.root)}
        result = subprocess.run(
            [str(self.bin / "make"), *arguments],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return result.returncode, result.stderr

    def log(self):
        """What was done since the last look."""
        path = self.root / "log"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


@pytest.fixture
def folder(tmp_path, repository):
    return Folder(tmp_path, repository)


@needs_make
def test_environment_uses_the_newest_python_that_really_runs(folder):
    # A version manager's shim: there, executable, and without a version behind it.
    write_script(folder.bin / "python3.13", "#!/bin/sh\nexit 127\n")
    folder.add_python("python3.12", 3, 12, 4)
    folder.add_python("python3.11", 3, 11, 9)
    assert folder.make("venv") == (0, "")
    assert folder.log() == ["venv 3.12.4", "pip 3.12.4"]


@needs_make
@pytest.mark.parametrize("version", [(3, 10, 14), (3, 14, 0)])
def test_python_outside_the_supported_versions_is_refused(folder, version):
    folder.add_python("python3", *version)
    code, error = folder.make("venv")
    assert code == 2 and folder.log() == []
    assert "3.11, 3.12 or 3.13" in error and "make PYTHON=/path/to/python" in error


@needs_make
def test_named_python_that_does_not_run_is_refused(folder):
    folder.add_python("python3.12", 3, 12, 4)
    code, error = folder.make("venv", "PYTHON=/nowhere/python")
    assert code == 2 and folder.log() == []
    assert 'none of "/nowhere/python" runs' in error


@needs_make
def test_finished_environment_is_left_alone_until_requirements_change(folder):
    folder.add_python("python3.11", 3, 11, 9)
    folder.make("venv")
    folder.log()
    os.utime(folder.root / "requirements.txt")  # a new date alone is no change
    folder.make("venv")
    assert folder.log() == []
    (folder.root / "requirements.txt").write_text("one==2\n")
    folder.make("venv")
    assert folder.log() == ["venv 3.11.9", "pip 3.11.9"]


@needs_make
def test_interrupted_installation_is_not_taken_for_a_finished_one(folder):
    folder.add_python("python3.11", 3, 11, 9)
    (folder.root / "no_network").touch()
    code, error = folder.make("test")
    assert code == 2 and "cannot reach the index" in error
    assert "did not finish" in error
    # The tests did not start, and the next make installs again, in place.
    assert folder.log() == ["venv 3.11.9", "pip 3.11.9"]
    (folder.root / "no_network").unlink()
    assert folder.make("venv") == (0, "")
    assert folder.log() == ["pip 3.11.9"]


@needs_make
def test_failed_rebuild_does_not_leave_the_old_one_as_finished(folder):
    folder.add_python("python3.11", 3, 11, 9)
    folder.make("venv")
    (folder.root / "requirements.txt").write_text("one==2\n")
    (folder.root / "no_network").touch()
    folder.make("venv")
    (folder.root / "no_network").unlink()
    (folder.root / "requirements.txt").write_text("one==1\n")
    folder.log()
    folder.make("venv")
    assert folder.log() == ["pip 3.11.9"]


@needs_make
def test_rebuild_that_cannot_start_is_not_forgotten(folder):
    folder.add_python("python3.11", 3, 11, 9)
    folder.make("venv")
    (folder.root / "requirements.txt").write_text("one==2\n")
    (folder.root / "full_disk").touch()
    code, error = folder.make("venv")
    assert code == 2 and "no space left" in error
    # Clearing may have begun, so the old requirements are not known to be there.
    (folder.root / "full_disk").unlink()
    (folder.root / "requirements.txt").write_text("one==1\n")
    folder.log()
    folder.make("venv")
    assert folder.log() == ["pip 3.11.9"]


@needs_make
def test_named_python_replaces_another_and_then_stays(folder):
    folder.add_python("python3.11", 3, 11, 9)
    folder.add_python("python3.13", 3, 13, 1)
    folder.make("venv", "PYTHON=python3.11")
    assert folder.log() == ["venv 3.11.9", "pip 3.11.9"]
    folder.make("venv", "PYTHON=python3.13")
    assert folder.log() == ["venv 3.13.1", "pip 3.13.1"]
    folder.make("venv", "PYTHON=python3.11")
    folder.log()
    folder.make("venv")  # none named: the present one serves, not the newest
    assert folder.log() == []


@needs_make
def test_table3_starts_the_sweep_with_the_flags_of_the_readme(folder):
    folder.add_python("python3.12", 3, 12, 4)
    folder.make("table3")
    folder.make("table3", "WORKDIR=elsewhere", "JOBS=2", "ARGS=--rows=base,A_h1")
    default, changed = (line for line in folder.log() if line.startswith("run"))
    sweep = "run -m experiments.sweep --config=configs/table3.py:grammar "
    assert default == sweep + "--workdir=runs/table3 --jobs=auto"
    assert changed == sweep + "--workdir=elsewhere --jobs=2 --rows=base,A_h1"


@needs_make
def test_clean_keeps_runs(folder):
    for name in ("rm", "find"):
        (folder.bin / name).unlink(missing_ok=True)
        (folder.bin / name).symlink_to(shutil.which(name))
    kept = folder.root / "runs" / "table3" / "sweep.json"
    for path in (kept, folder.root / ".venv/x", folder.root / "src/a/__pycache__/a"):
        path.parent.mkdir(parents=True)
        path.touch()
    for name in ("experiments", "configs", "tests"):
        (folder.root / name).mkdir()
    assert folder.make("clean") == (0, "")
    assert kept.exists()
    assert not (folder.root / ".venv").exists()
    assert not (folder.root / "src/a/__pycache__").exists()


@pytest.mark.parametrize(
    ("lint", "test", "expected"), [(0, 0, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1)]
)
def test_ci_runs_the_tests_and_fails_when_either_part_does(
    tmp_path, repository, lint, test, expected
):
    (tmp_path / ".ci").mkdir()
    shutil.copy(repository / ".ci" / "run", tmp_path / ".ci")
    fake = f'#!/bin/sh\necho "make $1"\n[ $1 = lint ] && exit {lint}\nexit {test}\n'
    write_script(tmp_path / "bin" / "make", fake)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        [str(tmp_path / ".ci" / "run")],
        env={**os.environ, "PATH": path},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout.split("\n")[:2] == ["make lint", "make test"]
    assert result.returncode == expected


def test_ci_script_is_executable(repository):
    assert (repository / ".ci" / "run").stat().st_mode & stat.S_IXUSR


def requirement_lines(repository):
    """(name, version, marker or '') of every requirement; other lines fail."""
    pattern = r"([A-Za-z0-9_.-]+)==([0-9][0-9a-z.]*)(?:; (python_version .+))?"
    text = (repository / "requirements.txt").read_text()
    lines = [s for s in text.splitlines() if s and not s.startswith("#")]
    found = [re.fullmatch(pattern, line) for line in lines]
    assert all(found), [s for s, m in zip(lines, found, strict=True) if not m]
    return [m.groups(default="") for m in found]


def test_requirements_are_exact_and_cover_each_python_once(repository):
    requirements = requirement_lines(repository)
    markers = {}
    for name, _, marker in requirements:
        markers.setdefault(name, []).append(marker)
    split = ['python_version < "3.12"', 'python_version >= "3.12"']
    # Either one pin for all, or one each side of 3.12.
    assert {n: m for n, m in markers.items() if m != [""] and sorted(m) != split} == {}
    assert "tensorflow" not in markers


def test_version_stands_in_one_place(repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    assert "version" not in project and project["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", transformer_ablation.__version__)
    assert project["requires-python"] == ">=3.11,<3.14"


def test_license_is_the_whole_apache_license(repository):
    text = (repository / "LICENSE").read_text()
    assert "Version 2.0, January 2004" in text
    sections = [int(n) for n in re.findall(r"(?m)^   (\d)\. [A-Z]", text)]
    assert sections == list(range(1, 10))
    assert text.rstrip().endswith("limitations under the License.")


def test_changelog_names_the_results_version(repository):
    text = (repository / "CHANGELOG.md").read_text()
    version = transformer_ablation.RESULTS_VERSION
    assert f"`RESULTS_VERSION` is {version}." in text


@pytest.mark.parametrize("module", ["jax", "numpy"])
def test_settings_of_the_tests_come_before_jax(module):
    """Four devices and strict ranks, also in a child process of a test."""
    program = {
        "jax": "import jax; assert jax.device_count() >= 4, jax.devices()",
        "numpy": "import jax.numpy as n\n"
        "try: n.ones((2, 3)) + n.ones(3)\n"
        "except ValueError: pass\n"
        "else: raise SystemExit('ranks were promoted')",
    }[module]
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
