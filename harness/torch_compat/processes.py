"""Process many files in several processes and keep the order; a process that dies loses only the file that killed it.

Processes are forked, so they share everything imported and computed before. A process receives a few paths at a time through one pipe and
answers through another. ``concurrent.futures`` could do this too, but importing it takes as long as inspecting a hundred files.
"""

from __future__ import annotations

import gc
import marshal  # noqa: TID251 - used between a process and its own children: no data from a file is read with it
import os
import select
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["in_processes"]

CHUNK = 8  # paths that a process gets at a time
QUEUED = 2  # chunks that a process has: the current one and the next one
AHEAD = 128  # maximum number of chunks per process that wait to be printed
KEPT = 10_000  # garbage collector threshold in objects; hardly any of them are in cycles
LENGTH = 8  # bytes of the length prefix of an answer

Answer = tuple[int, str, tuple[tuple[str, str, str, str], ...], str]
"""The exit status of a file, its text, its entries for other tools (rule, level, text, path), and a message for standard error."""


def in_processes(
    paths: Iterable[str], answer: Callable[[str], Answer], crashed: Callable[[str], Answer], count: int
) -> Iterator[Answer]:
    """The answer for each path, in order.

    Parameters:
        answer: computes an answer, in a process forked from this one.
        crashed: computes the answer for a path whose process died twice: with other paths, and with this path alone.
        count: the number of processes.
    """
    pool = _Pool(answer, crashed, count)
    left = iter(paths)
    waiting: deque[_Chunk] = deque()
    try:
        while True:
            while len(waiting) < count * AHEAD and (some := list(islice(left, CHUNK))):
                waiting.append(_Chunk(some))
                pool.add(waiting[-1])
            if not waiting:
                return
            while not waiting[0].done:
                pool.step()
            yield from waiting.popleft().answers
    finally:
        pool.close()


class _Chunk:
    """Paths, and the answers for them."""

    __slots__ = ("answers", "done", "paths")

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self.answers: list[Answer] = []
        self.done = False


class _Pool:
    """The processes, and the queue of chunks."""

    def __init__(self, answer: Callable[[str], Answer], crashed: Callable[[str], Answer], count: int) -> None:
        self.answer = answer
        self.crashed = crashed
        self.queue: deque[_Chunk] = deque()
        gc.freeze()  # otherwise the garbage collector writes to every shared page
        self.processes = [_Process(answer) for _ in range(count)]

    def add(self, chunk: _Chunk) -> None:
        """Queue a chunk for processing."""
        self.queue.append(chunk)
        self._hand_out()

    def _hand_out(self) -> None:
        """Give chunks to the processes, to every other one from the end: neighboring files are alike, so processes recompute less."""
        for held in range(QUEUED):
            for at, process in enumerate(self.processes):
                if self.queue and len(process.chunks) <= held:
                    process.give(self.queue.pop() if at % 2 else self.queue.popleft())

    def step(self) -> None:
        """Wait for the next event, and handle it."""
        poll = select.poll()
        for process in self.processes:
            poll.register(process.answers, select.POLLIN)
            if process.unsent:
                poll.register(process.tasks, select.POLLOUT)
        ready = {descriptor for descriptor, _ in poll.poll()}
        for at, process in enumerate(self.processes):
            if process.tasks in ready:
                process.send()
            if process.answers in ready and not process.receive():
                self.processes[at] = _Process(self.answer)
                process.close()
                self._rescue(process.chunks)
        self._hand_out()

    def _rescue(self, chunks: deque[_Chunk]) -> None:
        """Rerun each path of a dead process's first chunk in a process of its own; requeue its other chunks, which had not begun."""
        if chunks:
            first = chunks.popleft()
            first.answers = [self._apart(path) for path in first.paths]
            first.done = True
        self.queue.extendleft(reversed(chunks))

    def _apart(self, path: str) -> Answer:
        process = _Process(self.answer)
        try:
            chunk = _Chunk([path])
            process.give(chunk)
            while not chunk.done:
                if process.unsent:
                    process.send()
                if not process.receive():
                    return self.crashed(path)
            return chunk.answers[0]
        finally:
            process.close()

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        for process in self.processes:
            process.close()
        gc.unfreeze()


class _Process:
    """One process: its unanswered chunks, and the pipes to it and from it."""

    def __init__(self, answer: Callable[[str], Answer]) -> None:
        self.chunks: deque[_Chunk] = deque()
        self.unsent = b""
        self.received = bytearray()
        there, self.tasks = os.pipe()
        self.answers, back = os.pipe()
        self.number = os.fork()
        if not self.number:
            try:
                os.close(self.tasks)
                os.close(self.answers)
                _serve(there, back, answer)
            finally:
                os._exit(0)  # in every case: no code of the parent may run here, and its unwritten buffers belong to it
        os.close(there)
        os.close(back)
        os.set_blocking(self.tasks, False)  # otherwise both could wait for each other, with two full pipes

    def give(self, chunk: _Chunk) -> None:
        """Queue a chunk in the process, after those it already has."""
        self.chunks.append(chunk)
        self.unsent += marshal.dumps(chunk.paths)
        self.send()

    def send(self) -> None:
        """Send as much as the pipe accepts."""
        try:
            self.unsent = self.unsent[os.write(self.tasks, self.unsent) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it died; `receive` reports that
            self.unsent = b""

    def receive(self) -> bool:
        """Read answers, waiting for data if there is none. False if the process died."""
        result = os.read(self.answers, 1 << 20)
        received = self.received
        received += result
        while len(received) >= LENGTH:
            end = LENGTH + int.from_bytes(received[:LENGTH], "little")
            if len(received) < end:
                break
            told = marshal.loads(received[LENGTH:end])  # noqa: S302 - our own child wrote it
            del received[:end]
            chunk = self.chunks.popleft()
            if told.__class__ is str:
                raise RuntimeError(f"in a child process: {told}")
            chunk.answers, chunk.done = told, True
        return bool(result)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        os.close(self.tasks)
        os.close(self.answers)
        os.kill(self.number, 9)
        os.waitpid(self.number, 0)


def _serve(tasks: int, answers: int, answer: Callable[[str], Answer]) -> None:
    """Answer until the parent closes the pipe or has died."""
    gc.set_threshold(KEPT)
    with open(tasks, "rb") as given:
        while True:
            try:
                paths = marshal.load(given)  # noqa: S302 - our own parent wrote it
            except EOFError:
                return
            try:
                told: Any = [answer(path) for path in paths]
            except Exception:  # noqa: BLE001 - the parent raises it; an answer that fails says so itself
                import traceback  # noqa: PLC0415 - needed only here

                told = traceback.format_exc()
            left = memoryview(marshal.dumps(told))
            left = memoryview(len(left).to_bytes(LENGTH, "little") + left)
            while left:
                left = left[os.write(answers, left) :]
