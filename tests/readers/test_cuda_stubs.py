from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from torch_compat.errors import EnvironmentUnavailable
from torch_compat.readers import cuda_stubs
from torch_compat.readers.commands import Command, Commands, clean_environ
from torch_compat.readers.cuda_stubs import DEFINITIONS, Gap, build_stubs, find_gap, need_tool, read_shared_object

if TYPE_CHECKING:
    from pathlib import Path

needs_a_compiler = pytest.mark.skipif(
    not (shutil.which("cc") and shutil.which("readelf")), reason="cc or readelf is not installed, so no stub can be compiled"
)

READELF = """
Dynamic section at offset 0x2df8 contains 28 entries:
  Tag        Type                         Name/Value
 0x0000000000000001 (NEEDED)             Shared library: [libcublas.so.11]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x000000000000000e (SONAME)             Library soname: [libtorch_cuda.so]

Symbol table '.dynsym' contains 6 entries:
   Num:    Value          Size Type    Bind   Vis      Ndx Name
     0: 0000000000000000     0 NOTYPE  LOCAL  DEFAULT  UND
     1: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND cublasCreate_v2@libcublas.so.11 (5)
     2: 0000000000000000     0 OBJECT  GLOBAL DEFAULT  UND nvshmem_transport@NVSHMEM (6)
     3: 0000000000000000     0 NOTYPE  WEAK   DEFAULT  UND __gmon_start__
     4: 0000000000001139    11 FUNC    GLOBAL DEFAULT   12 _ZN5torch3getEv
     5: 0000000000001139    11 FUNC    GLOBAL DEFAULT   12 cudnnTorch@@TORCH_1

Version needs section '.gnu.version_r' contains 2 entries:
 Addr: 0x0000000000000520  Offset: 0x00000520  Link: 4 (.dynstr)
  000000: Version: 1  File: libcublas.so.11  Cnt: 1
  0x0010:   Name: libcublas.so.11  Flags: none  Version: 5
  0x0020: Version: 1  File: libc.so.6  Cnt: 2
  0x0030:   Name: GLIBC_2.4  Flags: none  Version: 3
  0x0040:   Name: GLIBC_2.2.5  Flags: none  Version: 2
"""


def test_what_readelf_says_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_stubs, "need_tool", lambda *_names, package: "readelf")

    def answer(_command: Command, **_: Any) -> str:
        return READELF

    command = Commands(tmp_path / "log", {}, answer)
    seen = read_shared_object(tmp_path / "libtorch_cuda.so", command)
    assert seen.needed == ("libcublas.so.11", "libc.so.6")
    assert seen.defined == {"_ZN5torch3getEv", "cudnnTorch"}
    assert seen.undefined == {"cublasCreate_v2": "FUNC", "nvshmem_transport": "OBJECT"}
    assert seen.versions == {"libcublas.so.11": ("libcublas.so.11",), "libc.so.6": ("GLIBC_2.2.5", "GLIBC_2.4")}


def test_an_empty_gap_is_false() -> None:
    assert not Gap()
    assert Gap(("libcublas.so.11",))


def test_a_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentUnavailable, match="needs cc or gcc, which is not installed") as caught:
        need_tool("cc", "gcc", package="gcc")
    assert caught.value.code == "no-tool"
    assert caught.value.exit_status == 4


def compiled(path: Path, source: str, *options: str | Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    code = path.with_suffix(".c")
    code.write_text(source, encoding="ascii")
    subprocess.run(["cc", "-shared", "-fPIC", code, "-o", path, f"-Wl,-soname,{path.name}", *options], check=True)
    code.unlink()


@pytest.fixture
def torch(tmp_path: Path) -> Path:
    """A package laid out as torch is; its library misses cuBLAS (versioned), NCCL (not) and one datum, and has cudart beside it."""
    package = tmp_path / "site" / "torch"
    elsewhere = tmp_path / "cuda"
    versions = tmp_path / "versions"
    versions.write_text("libcublas.so.11 { cublas*; nvshmem*; };", encoding="ascii")
    compiled(
        elsewhere / "libcublas.so.11",
        "int nvshmem_datum = 7; int cublasCreate(void) { return 0; }",
        f"-Wl,--version-script={versions}",
    )
    compiled(elsewhere / "libnccl.so.2", "int ncclInit(void) { return 0; }")
    compiled(elsewhere / "libcuda.so.1", "int cuInit(void) { return 0; }")
    compiled(package.parent / "nvidia/cuda_runtime/lib/libcudart.so.11", "int cudaCount(void) { return 5; }")
    found_as_torch_does = "-Wl,-rpath,$ORIGIN:$ORIGIN/lib:$ORIGIN/../../nvidia/cuda_runtime/lib"
    compiled(
        package / "lib/libtorch_cuda.so",
        """
        extern int nvshmem_datum; int cublasCreate(void); int ncclInit(void); int cudaCount(void); int Py_IsInitialized(void);
        int (*const pointer)(void) = cublasCreate;
        int create(void) { return cublasCreate() * 100 + ncclInit() * 10 + cudaCount() + nvshmem_datum; }
        int (*get(void))(void) { return pointer; }
        int of_python(void) { return Py_IsInitialized(); }
        """,
        elsewhere / "libcublas.so.11",
        elsewhere / "libnccl.so.2",
        package.parent / "nvidia/cuda_runtime/lib/libcudart.so.11",
        found_as_torch_does,
    )
    compiled(package / "lib/libcaffe2_nvrtc.so", "int cuInit(void); int n(void) { return cuInit(); }", elsewhere / "libcuda.so.1")
    compiled(
        package / "_C.so",
        "int create(void); int answer(void) { return create(); }",
        package / "lib/libtorch_cuda.so",
        found_as_torch_does,
    )
    shutil.rmtree(elsewhere)
    return package


@pytest.fixture
def command(tmp_path: Path) -> Commands:
    return Commands(tmp_path / "log", clean_environ({"LC_ALL": "C"}))


def loaded(torch: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    code = f"import ctypes; print(ctypes.CDLL({str(torch / '_C.so')!r}).answer())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ | environ)


@needs_a_compiler
def test_the_gap_is_what_the_import_would_miss(torch: Path, command: Commands) -> None:
    assert find_gap(torch, command) == Gap(
        libraries=("libcublas.so.11", "libnccl.so.2"),
        functions=("cublasCreate", "ncclInit"),
        data=("nvshmem_datum",),
        versions={"libcublas.so.11": ("libcublas.so.11",)},
    )


@needs_a_compiler
@pytest.mark.parametrize("environ", [{}, {"LD_BIND_NOW": "1"}], ids=["lazy", "now"])
def test_stubs_fill_the_gap(torch: Path, command: Commands, environ: dict[str, str]) -> None:
    assert "libcublas.so.11" in loaded(torch, **environ).stderr
    stubs = build_stubs(find_gap(torch, command), torch / "lib", command)
    assert stubs == (DEFINITIONS, "libcublas.so.11", "libnccl.so.2")
    after = loaded(torch, **environ)
    assert (after.stdout, after.stderr) == ("115\n", "")  # each stub fails with 1, the datum is 0, the real cudart answers 5
    assert not find_gap(torch, command)
    assert sorted(path.name for path in (torch / "lib").iterdir()) == sorted([*stubs, "libcaffe2_nvrtc.so", "libtorch_cuda.so"])


@needs_a_compiler
def test_stubs_have_the_versions_that_are_required_of_them(torch: Path, command: Commands) -> None:
    build_stubs(find_gap(torch, command), torch / "lib", command)
    source, program = torch / "main.c", torch / "main"
    source.write_text(
        "int answer(void); int Py_IsInitialized(void) { return 1; } int main(void) { return answer(); }", encoding="ascii"
    )
    search = [f"-Wl,-rpath,{torch}", f"-Wl,-rpath-link,{torch / 'lib'}:{torch.parent / 'nvidia/cuda_runtime/lib'}"]
    subprocess.run(
        ["cc", "-rdynamic", "-Wl,--allow-shlib-undefined", source, torch / "_C.so", *search, "-o", program], check=True
    )
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (115, "")  # the loader complains about a missing version only to whole programs


@needs_a_compiler
def test_a_compiler_that_fails_is_reported_with_its_words(torch: Path, command: Commands) -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"compiling the CUDA stubs failed: .*error") as caught:
        build_stubs(Gap(("libcublas.so.11",), functions=("not a name",)), torch / "lib", command)
    assert caught.value.hint is not None
    assert str(command.log) in caught.value.hint
    assert not list((torch / "lib").glob("stubs.*"))
