"""Starts the Python of a release inside a fence: applies the fence to its own process, then execs that Python.

The child processes that run programs (``child.py``) import it for a narrower version of the same fence: only the files that they name, and
only the system calls in :data:`ALLOWED`.

Run as ``python -I -S launcher.py SPEC`` by this package's own Python. SPEC is a JSON object:

* ``parent``: the process id of the harness. The process dies with the thread of the harness that started the launcher.
* ``isolate``: ``{"network": bool, "home": bool}``, what must be shut off. Nothing starts if the machine does not support a requested part.
* ``reads``, ``writes``: what stays readable and writable if the home is shut off; paths that do not exist are ignored.
* ``homes``: folders that must not be readable in that case.
* ``reply``: a file descriptor that receives one line ``{"launch": reason}`` if the command does not start.
* ``command``: the command to exec.

With ``"probe": true`` and no command it tries everything on itself and prints ``{"network": reason, "home": reason}``; a reason is null if
the machine supports that part.

Landlock shuts off the file system (Linux 6.2 and newer: its third version is the first that covers truncation). A seccomp filter shuts off
every socket, and the calls that change file metadata, which Landlock does not cover. Both need no privileges, no user namespace and no
helper program, keep the user's id, and work inside containers. Capabilities are dropped, so root inside the fence has no more rights than
a user, except that it can still read files of other users where Landlock allows it.
"""

from __future__ import annotations

# importing pathlib takes as long as everything else here
# ruff: noqa: PTH112, PTH123, PTH208
import ctypes  # noqa: TID251 - system calls that Python has no function for
import errno
import json
import os
import signal
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes as long as everything else here
    from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
ALL_FILE_RIGHTS = (1 << 15) - 1  # of the third version: all but ioctl, which matters only for devices, and those are listed below
MAKE_DEVICES = 1 << 6 | 1 << 11
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14  # what a rule for a file, not a folder, may grant; the last is truncation
OLDEST_LANDLOCK = 3
WITH_NETWORK, WITH_SCOPES = 4, 6  # versions of Landlock that can also refuse TCP; signals and abstract sockets
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446  # the same on every machine

SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store",
    "/etc/alternatives", "/etc/group", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload",
    "/etc/localtime", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/proc", "/sys",
)  # fmt: skip
"""Readable by every release. Landlock denies access to the /proc data of processes outside the fence, such as their variables and
memory."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

KEPT_CAPABILITY = 1  # CAP_DAC_OVERRIDE: without it, root could not read another user's archive
CAPABILITY_VERSION = 0x20080522

# System call numbers by machine name, with the kernel's constant for its ABI: refused with EACCES.
REFUSED = {
    "x86_64": (
        0xC000003E,
        {
            "socket": 41, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_getfd": 438,
            "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
            "add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
            "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
            "open_by_handle_at": 304, "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313,
            "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260,
            "utime": 132, "utimes": 235, "futimesat": 261, "utimensat": 280,
            "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199,
            "setxattrat": 463, "removexattrat": 466,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "socket": 198, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "pidfd_getfd": 438,
            "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
            "add_key": 217, "request_key": 218, "keyctl": 219, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
            "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51,
            "open_by_handle_at": 265, "kexec_load": 104, "kexec_file_load": 294, "init_module": 105, "finit_module": 273,
            "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "fchownat": 54, "fchown": 55, "utimensat": 88,
            "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
            "setxattrat": 463, "removexattrat": 466,
        },
    ),
}  # fmt: skip
# System calls that a pure computation needs, keyed in the same way; the rest is refused with EACCES.
ALLOWED = {
    "x86_64": {
        "read": 0, "write": 1, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10,
        "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "pread64": 17, "readv": 19,
        "writev": 20, "access": 21, "sched_yield": 24, "mremap": 25, "madvise": 28, "dup": 32, "nanosleep": 35, "getpid": 39,
        "sendto": 44, "recvfrom": 45, "sendmsg": 46, "recvmsg": 47, "exit": 60, "uname": 63, "getcwd": 79, "readlink": 89,
        "gettimeofday": 96, "getrusage": 98, "sysinfo": 99, "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108,
        "getppid": 110, "sigaltstack": 131, "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204, "getdents64": 217,
        "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "openat": 257,
        "newfstatat": 262, "readlinkat": 267, "faccessat": 269, "getcpu": 309, "getrandom": 318, "statx": 332, "rseq": 334,
        "faccessat2": 439,
    },
    "aarch64": {
        "getcwd": 17, "dup": 23, "faccessat": 48, "openat": 56, "close": 57, "getdents64": 61, "lseek": 62,
        "read": 63, "write": 64, "readv": 65, "writev": 66, "pread64": 67, "ppoll": 73, "readlinkat": 78, "newfstatat": 79, "fstat": 80,
        "exit": 93, "exit_group": 94, "futex": 98, "nanosleep": 101, "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115,
        "restart_syscall": 128, "sched_getaffinity": 123, "sched_yield": 124, "sigaltstack": 132, "rt_sigaction": 134,
        "rt_sigprocmask": 135, "rt_sigreturn": 139, "times": 153, "uname": 160, "getrusage": 165, "getcpu": 168, "gettimeofday": 169,
        "getpid": 172, "getppid": 173, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177, "gettid": 178, "sysinfo": 179,
        "sendto": 206, "recvfrom": 207, "sendmsg": 211, "recvmsg": 212, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222,
        "mprotect": 226, "madvise": 233, "getrandom": 278, "statx": 291, "rseq": 293, "faccessat2": 439,
    },
}  # fmt: skip
TGKILL = {"x86_64": 234, "aarch64": 131}  # allowed only for the process itself: abort() sends a signal to its own process
FCNTL = {"x86_64": 72, "aarch64": 25}
DESCRIPTOR_COMMANDS = (0, 1, 2, 3, 1030)  # of fcntl: F_DUPFD to F_GETFL, F_DUPFD_CLOEXEC; others can signal any process
X32 = 0x40000000  # system calls of x86-64's third ABI, which have separate numbers

libc = ctypes.CDLL(None, use_errno=True)


class NotPossible(Exception):  # noqa: N818 - not a user error: always caught here
    """The machine does not support a part of the fence; the text says which."""


def call(name: str, result: int) -> int:
    """Return the result of a system call, or raise if it failed."""
    if result < 0:
        code = ctypes.get_errno()
        raise NotPossible(f"{name}: {errno.errorcode.get(code, code)}")
    return result


def shut_off_files(reads: list[str], writes: list[str], *, alone: bool = False) -> None:
    """Restrict this process and its descendants to these files, the system's own files and some devices.

    Parameters:
        alone: allow only these files, and execute none of them.

    Raises:
        NotPossible: this kernel has no Landlock, or not enough of it.
    """
    version = call("Landlock", libc.syscall(LANDLOCK_CREATE, None, 0, 1))
    if version < OLDEST_LANDLOCK:
        raise NotPossible(
            f"this machine has Landlock version {version}, but version {OLDEST_LANDLOCK} (Linux 6.2 or newer) is required"
        )
    rights = struct.pack("=QQQ", ALL_FILE_RIGHTS, 3 if version >= WITH_NETWORK else 0, 3 if version >= WITH_SCOPES else 0)
    rules = call("landlock_create_ruleset", libc.syscall(LANDLOCK_CREATE, rights, len(rights), 0))
    look, change = EXECUTE | READ_FILE | READ_DIR, ALL_FILE_RIGHTS & ~MAKE_DEVICES
    if alone:
        granted = [(path, READ_FILE | READ_DIR) for path in reads]
    else:
        granted = [(path, look) for path in (*SYSTEM, *reads)] + [(path, READ_FILE | WRITE_FILE) for path in DEVICES]
    for path, right in [*granted, *((path, change) for path in writes)]:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # it does not exist or is inaccessible: nothing to grant
        rule = struct.pack("=Qi", right if os.path.isdir(path) else right & OF_FILES, fd)
        call(f"Landlock's rule for {path}", libc.syscall(LANDLOCK_ADD, rules, 1, rule, 0))
        os.close(fd)
    call("landlock_restrict_self", libc.syscall(LANDLOCK_RESTRICT, rules, 0))
    os.close(rules)


def shut_off_sockets() -> None:
    """Deny this process and its descendants every socket, and other calls that Landlock does not cover.

    Raises:
        NotPossible: the kernel has no seccomp filters, or its system call numbers are not known.
    """
    abi, numbers = known_calls(REFUSED)
    steps = []
    for number in numbers.values():
        steps += [(EQUAL, 0, 1, number), (GIVE, 0, 0, REFUSE)]
    filter_calls(abi, [*steps, (GIVE, 0, 0, ALLOW)])


def shut_off_calls() -> None:
    """Deny this process every system call except those that computing needs.

    Raises:
        NotPossible: as :func:`shut_off_sockets`.
    """
    abi, numbers = known_calls({machine: (REFUSED[machine][0], allowed) for machine, allowed in ALLOWED.items()})
    steps = []
    for number in numbers.values():
        steps += [(EQUAL, 0, 1, number), (GIVE, 0, 0, ALLOW)]
    machine = os.uname().machine
    for number, argument, values in ((TGKILL[machine], 0, (os.getpid(),)), (FCNTL[machine], 1, DESCRIPTOR_COMMANDS)):
        steps += [(EQUAL, 0, 2 * len(values) + 2, number), (LOAD, 0, 0, FIRST_ARGUMENT + 8 * argument)]
        for value in values:
            steps += [(EQUAL, 0, 1, value), (GIVE, 0, 0, ALLOW)]
        steps.append((GIVE, 0, 0, REFUSE))
    filter_calls(abi, [*steps, (GIVE, 0, 0, REFUSE)])


def known_calls(table: dict[str, tuple[int, dict[str, int]]]) -> tuple[int, dict[str, int]]:
    """Return the row of a table for this machine.

    Raises:
        NotPossible: the table has none.
    """
    machine = os.uname().machine
    if machine not in table:
        raise NotPossible(f"the system calls of {machine} are unknown; supported machines: {', '.join(table)}")
    return table[machine]


# Classic BPF: ld [k], jeq, jge, ret; the value that ret returns; and the offset of a call's first argument
LOAD, EQUAL, AT_LEAST, GIVE = 0x20, 0x15, 0x35, 0x06
KILL, REFUSE, ALLOW = 0x80000000, 0x00050000 | errno.EACCES, 0x7FFF0000
FIRST_ARGUMENT = 16 if sys.byteorder == "little" else 20


def filter_calls(abi: int, steps: list[tuple[int, int, int, int]]) -> None:
    """Install a seccomp filter with these steps for every system call of this process and its descendants.

    Parameters:
        abi: the only ABI whose calls are allowed.

    Raises:
        NotPossible: the kernel has no seccomp filters.
    """
    steps = [
        (LOAD, 0, 0, 4),
        (EQUAL, 1, 0, abi),
        (GIVE, 0, 0, KILL),
        (LOAD, 0, 0, 0),
        (AT_LEAST, 0, 1, X32),
        (GIVE, 0, 0, REFUSE),
        *steps,
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(code))
    call("seccomp", libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0))


def drop_capabilities(kept: int | None = KEPT_CAPABILITY) -> None:
    """Drop every capability but one, or all, including those that root would regain on exec."""
    mask = 0 if kept is None else 1 << kept
    for capability in range(64):
        if capability != kept:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails for an ordinary user, who has none to drop
    head = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    held = ctypes.create_string_buffer(24)
    call("capget", libc.capget(head, held))
    left = struct.unpack("=6I", held.raw)[1] & mask
    call("capset", libc.capset(head, struct.pack("=6I", left, left, 0, 0, 0, 0)))


def check_home(homes: list[str]) -> None:
    """Try to access what must be shut off.

    Raises:
        NotPossible: something can be read nevertheless.
    """
    for home in homes:
        try:
            os.listdir(home)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR):
                continue
        raise NotPossible("the home directory can still be read: it is, or contains, a directory that the release needs")
    try:
        with open(f"/proc/{os.getppid()}/environ", "rb") as stream:
            stream.read(1)
    except OSError:
        return
    raise NotPossible("the environment variables of the parent process can still be read")


def check_network() -> None:
    """Try to open sockets.

    Raises:
        NotPossible: one was opened.
    """
    for family in (1, 2, 10):  # AF_UNIX, AF_INET and AF_INET6
        fd = libc.socket(family, 1, 0)
        if fd >= 0:
            os.close(fd)
            raise NotPossible("a socket can still be opened")


def die_with(parent: int) -> None:
    """Have the kernel end this process when the parent's thread ends; end it now if the parent is already gone."""
    call("prctl", libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    if os.getppid() != parent:
        os._exit(1)


def isolate(spec: dict[str, Any]) -> dict[str, str | None]:
    """Apply the requested isolation; for each part, return why it is not possible, or None."""
    reasons: dict[str, str | None] = {"network": None, "home": None}
    if spec["isolate"]["home"]:
        try:
            shut_off_files(spec["reads"], spec["writes"])
            drop_capabilities()
            check_home(spec["homes"])
        except NotPossible as error:
            reasons["home"] = str(error)
    if spec["isolate"]["network"]:
        try:
            shut_off_sockets()
            check_network()
        except NotPossible as error:
            reasons["network"] = str(error)
    return reasons


def gain_nothing() -> None:
    """Prevent this process from gaining privileges through exec from here on."""
    call("no_new_privs", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def main() -> None:
    """Exec the command inside the fence, or report why not."""
    spec = json.loads(sys.argv[1])
    die_with(spec["parent"])
    gain_nothing()
    reasons = isolate(spec)
    if spec.get("probe"):
        sys.stdout.write(json.dumps(reasons))
        return
    failed = [f"{part}: {reason}" for part, reason in reasons.items() if reason]
    if not failed:
        try:
            os.environ.pop("LD_LIBRARY_PATH", None)  # only this Python may need it; the release has its own libraries
            die_with(spec["parent"])  # again: a change of credentials may have undone it
            os.execv(spec["command"][0], spec["command"])  # noqa: S606 - the command comes from the harness
        except OSError as error:
            failed = [str(error)]
    os.write(spec["reply"], json.dumps({"launch": "; ".join(failed)}).encode("ascii") + b"\n")


if __name__ == "__main__":
    main()
