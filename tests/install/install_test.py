"""Installs the build into a scratch folder, looks at what came out, and builds and runs a project that uses it."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from built import BUILD, PRESET, SOURCE, run

CONSUMER = SOURCE / "tests" / "install" / "consumer"
LLVM_SYMBOL = re.compile(r"^(LLVM[A-Z]|_ZN?K?[A-Z]*(St\d*)?4llvm|llvm_|_ZT[ISV]N4llvm|_ZN4llvm|_ZNK4llvm|_ZN5clang)")
SANITIZERS = {"asan": "-fsanitize=address,undefined", "tsan": "-fsanitize=thread"}


def symbols(path, *options):
    """Names of the symbols that nm lists; none for a file without a symbol table."""
    done = subprocess.run(["nm", "--format=posix", *options, str(path)], capture_output=True, text=True)
    return [line.split()[0] for line in done.stdout.splitlines() if len(line.split()) >= 2]


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="xylem-install-"))
        cls.prefix = cls.scratch / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        cls.files = [p for p in cls.prefix.rglob("*") if p.is_file()]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.scratch)

    def binaries(self):
        for path in self.files:
            if path.suffix in (".a", ".so") or path.parent.name == "bin":
                yield path

    def test_something_is_installed(self):
        self.assertTrue(any(p.name == "libxylem_base.a" for p in self.files))
        self.assertTrue(any(p.name == "error.h" for p in self.files))
        self.assertTrue(any(p.name == "xylem-config.cmake" for p in self.files))

    def test_no_llvm_symbol_is_visible(self):
        for path in self.binaries():
            options = ["--defined-only"] if path.suffix == ".a" else ["-D", "--defined-only"]
            found = [s for s in symbols(path, *options) if LLVM_SYMBOL.match(s)]
            self.assertEqual(found, [], path.name)

    def test_no_llvm_symbol_is_wanted(self):
        for path in self.binaries():
            options = ["--undefined-only"] if path.suffix == ".a" else ["-D", "--undefined-only"]
            found = [s for s in symbols(path, *options) if LLVM_SYMBOL.match(s)]
            self.assertEqual(found, [], path.name)

    def test_jit_library_exports_its_c_interface_only(self):
        for path in self.files:
            if path.name == "libxylem_jit.so":
                exported = symbols(path, "-D", "--defined-only")
                self.assertTrue(exported)
                self.assertEqual([s for s in exported if not s.startswith("xylem_jit_")], [])
                needed = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
                self.assertNotRegex(needed, r"NEEDED.*libLLVM")

    def test_no_path_of_the_build_in_the_package(self):
        for path in self.files:
            if path.suffix in (".cmake", ".h"):
                text = path.read_text(encoding="utf-8", errors="replace")
                self.assertNotIn(str(SOURCE), text, path)
        for path in self.binaries():
            if path.suffix == ".a":
                continue
            dynamic = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
            self.assertNotIn(str(BUILD), dynamic, path.name)

    def test_tests_are_not_installed(self):
        wrong = [p for p in self.files if "testing" in p.relative_to(self.prefix).parts or "_test" in p.name]
        self.assertEqual(wrong, [])

    def test_command_runs_from_elsewhere(self):
        command = self.prefix / "bin" / "xylem"
        if (BUILD / "bin" / "xylem").exists():
            _, output, _ = run(command, "--version", cwd="/")
            self.assertRegex(output.decode(), r"\d+\.\d+\.\d+")

    def test_consumer(self):
        components = [p.stem for p in sorted(CONSUMER.glob("*.cc")) if (BUILD / "lib" / f"libxylem_{p.stem}.a").exists()]
        self.assertIn("base", components)
        # A copy outside the tree, so that nothing of the source folder can be found by accident.
        project = self.scratch / "consumer"
        shutil.copytree(CONSUMER, project)
        options = [f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCOMPONENTS={';'.join(components)}", "-DCMAKE_BUILD_TYPE=Release",
                   f"-DCMAKE_CXX_FLAGS={SANITIZERS.get(PRESET, '')}"]
        if PRESET == "clang":
            options.append("-DCMAKE_CXX_COMPILER=clang++-19")
        example = BUILD / "generated" / "readme_example.cc"
        if example.exists():
            shutil.copy(example, project / "readme.cc")
            used = sorted(set(re.findall(r'#include [<"]xylem/(\w+)/', example.read_text())))
            options += ["-DREADME_EXAMPLE=readme.cc", f"-DREADME_COMPONENTS={';'.join(used)}"]
        env = dict(os.environ, CCACHE_DISABLE="1")
        run("cmake", "-G", "Ninja", "-S", project, "-B", project / "build", *options, env=env)
        run("cmake", "--build", project / "build", env=env)
        commands = (project / "build" / "build.ninja").read_text()
        self.assertNotIn("llvm-", commands)
        self.assertNotIn(str(SOURCE), commands)
        for component in components:
            run(project / "build" / f"use_{component}", cwd="/")
        if example.exists():
            run(project / "build" / "use_readme", cwd="/")

    def test_unknown_component_is_refused(self):
        project = self.scratch / "unknown"
        shutil.copytree(CONSUMER, project)
        status, _, errors = run("cmake", "-G", "Ninja", "-S", project, "-B", project / "build",
                                f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCOMPONENTS=nonsense", check=False)
        self.assertNotEqual(status, 0)
        self.assertIn(b"nonsense", errors)


if __name__ == "__main__":
    unittest.main()
