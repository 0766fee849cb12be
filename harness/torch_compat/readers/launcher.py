"""Starts the Python of a release inside a fence: this file applies the fence to its own process, and then becomes that Python.

Run as ``python -I -S launcher.py SPEC`` by this package's own Python. SPEC is a JSON object:

* ``parent``: the process id of the harness. The process dies with the thread of it that started the launcher.
* ``isolate``: ``{"network": bool, "home": bool}``, what must be shut off. Nothing starts if the machine refuses either.
* ``reads``, ``writes``: what stays readable and writable where the home is shut off; a path that does not exist is left out.
* ``homes``: folders that must not be readable then.
* ``reply``: a file descriptor that takes one line ``{"launch": reason}`` if the command does not start.
* ``command``: what to become.

With ``"probe": true`` and no command it tries everything on itself, and prints ``{"network": reason, "home": reason}``; a reason is
null where the machine can do it.

How: Landlock shuts off the file system (Linux 6.2 and newer: its third version is the first that covers truncation), and a seccomp
filter every socket, with the calls that change what belongs to a file rather than its bytes, which Landlock does not cover. Both need
no privileges, no user namespace and no helper program, keep the user's id, and work inside containers. Capabilities are dropped, so
root inside the fence is no stronger than a user, except that it still reads files of other users where Landlock lets it.
"""

from __future__ import annotations

# pathlib takes as long to import as everything else here
# ruff: noqa: PTH112, PTH123, PTH208
import ctypes  # noqa: TID251 - system calls that Python has no function for
import errno
import json
import os
import signal
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes as long to import as everything else here
    from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
ALL_FILE_RIGHTS = (
    1 << 15
) - 1  # of the third version: all but ioctl, which matters for devices alone, and those are listed below
MAKE_DEVICES = 1 << 6 | 1 << 11
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14  # what a rule about a file, not a folder, may grant; the last is truncation
OLDEST_LANDLOCK = 3
WITH_NETWORK, WITH_SCOPES = 4, 6  # versions of Landlock that can also refuse TCP; signals and abstract sockets
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446  # the same on every machine

SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store",
    "/etc/alternatives", "/etc/group", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload",
    "/etc/localtime", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/proc", "/sys",
)  # fmt: skip
"""Readable for every release. What /proc tells of processes outside the fence, their variables and memory, Landlock refuses."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

KEPT_CAPABILITY = 1  # CAP_DAC_OVERRIDE: without it, root could not read an archive that belongs to somebody else
CAPABILITY_VERSION = 0x20080522

# Numbers of system calls by the machine's name and the kernel's for its ABI: refused with EACCES.
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
X32 = 0x40000000  # calls of x86-64's third ABI, under numbers of their own

libc = ctypes.CDLL(None, use_errno=True)


class NotPossible(Exception):  # noqa: N818 - no error of a user: each is caught here
    """The machine refuses a part of the fence; the text says which."""


def call(name: str, result: int) -> int:
    """The result of a system call, unless it failed."""
    if result < 0:
        code = ctypes.get_errno()
        raise NotPossible(f"{name}: {errno.errorcode.get(code, code)}")
    return result


def shut_off_files(reads: list[str], writes: list[str]) -> None:
    """Leave this process, and all that come of it, nothing of the file system but these.

    Raises:
        NotPossible: this kernel has no Landlock, or not enough of it.
    """
    version = call("Landlock", libc.syscall(LANDLOCK_CREATE, None, 0, 1))
    if version < OLDEST_LANDLOCK:
        raise NotPossible(f"Landlock has version {version} here, {OLDEST_LANDLOCK} is needed: Linux 6.2 or newer")
    rights = struct.pack("=QQQ", ALL_FILE_RIGHTS, 3 if version >= WITH_NETWORK else 0, 3 if version >= WITH_SCOPES else 0)
    rules = call("landlock_create_ruleset", libc.syscall(LANDLOCK_CREATE, rights, len(rights), 0))
    look, change = EXECUTE | READ_FILE | READ_DIR, ALL_FILE_RIGHTS & ~MAKE_DEVICES
    granted = [(path, look) for path in (*SYSTEM, *reads)] + [(path, change) for path in writes]
    for path, right in [*granted, *((path, READ_FILE | WRITE_FILE) for path in DEVICES)]:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # it is not there, or nobody may look at it: nothing to grant
        rule = struct.pack("=Qi", right if os.path.isdir(path) else right & OF_FILES, fd)
        call(f"Landlock's rule for {path}", libc.syscall(LANDLOCK_ADD, rules, 1, rule, 0))
        os.close(fd)
    call("landlock_restrict_self", libc.syscall(LANDLOCK_RESTRICT, rules, 0))
    os.close(rules)


def shut_off_sockets() -> None:
    """Refuse this process, and all that come of it, every socket, and what else Landlock does not cover.

    Raises:
        NotPossible: the kernel has no seccomp filters, or the numbers of its calls are not known.
    """
    machine = os.uname().machine
    if machine not in REFUSED:
        raise NotPossible(f"the system calls of {machine} are not known; those of {' and '.join(REFUSED)} are")
    abi, numbers = REFUSED[machine]
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06  # of classic BPF: ld [k], jeq, jge, ret
    kill, refuse, allow = 0x80000000, 0x00050000 | errno.EACCES, 0x7FFF0000
    steps = [
        (load, 0, 0, 4),
        (equal, 1, 0, abi),
        (give, 0, 0, kill),
        (load, 0, 0, 0),
        (at_least, 0, 1, X32),
        (give, 0, 0, refuse),
    ]
    for number in numbers.values():
        steps += [(equal, 0, 1, number), (give, 0, 0, refuse)]
    steps.append((give, 0, 0, allow))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(code))
    call("seccomp", libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0))


def drop_capabilities() -> None:
    """Give up every capability but one, also those that root would get back with the next program."""
    for capability in range(64):
        if capability != KEPT_CAPABILITY:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # a user has none to drop, and is refused
    head = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    held = ctypes.create_string_buffer(24)
    call("capget", libc.capget(head, held))
    kept = struct.unpack("=6I", held.raw)[1] & 1 << KEPT_CAPABILITY
    call("capset", libc.capset(head, struct.pack("=6I", kept, kept, 0, 0, 0, 0)))


def check_home(homes: list[str]) -> None:
    """Try to get at what must be shut off.

    Raises:
        NotPossible: something of it can be read all the same.
    """
    for home in homes:
        try:
            os.listdir(home)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR):
                continue
        raise NotPossible("the home can still be read: it holds, or is, a folder that the release needs")
    try:
        with open(f"/proc/{os.getppid()}/environ", "rb") as stream:
            stream.read(1)
    except OSError:
        return
    raise NotPossible("the variables of the process that started this one can still be read")


def check_network() -> None:
    """Try to open sockets.

    Raises:
        NotPossible: one was opened.
    """
    for family in (1, 2, 10):  # those of Unix and of both internets
        fd = libc.socket(family, 1, 0)
        if fd >= 0:
            os.close(fd)
            raise NotPossible("a socket can still be opened")


def die_with(parent: int) -> None:
    """Let the kernel end this process when the parent's thread ends; end it now if the parent has gone already."""
    call("prctl", libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    if os.getppid() != parent:
        os._exit(1)


def isolate(spec: dict[str, Any]) -> dict[str, str | None]:
    """Apply what is asked for; for each part, why it is not possible, or None."""
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


def main() -> None:
    """Become the command inside the fence, or say why not."""
    spec = json.loads(sys.argv[1])
    die_with(spec["parent"])
    call("no_new_privs", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    reasons = isolate(spec)
    if spec.get("probe"):
        sys.stdout.write(json.dumps(reasons))
        return
    failed = [f"{part}: {reason}" for part, reason in reasons.items() if reason]
    if not failed:
        try:
            os.environ.pop("LD_LIBRARY_PATH", None)  # this Python may need it; the release has its own libraries
            die_with(spec["parent"])  # again: a change of credentials may have undone it
            os.execv(spec["command"][0], spec["command"])  # noqa: S606 - the harness says what
        except OSError as error:
            failed = [str(error)]
    os.write(spec["reply"], json.dumps({"launch": "; ".join(failed)}).encode("ascii") + b"\n")


if __name__ == "__main__":
    main()
