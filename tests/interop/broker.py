"""A Mochila broker as a process: started on a free port, restarted on the same one, stopped."""

import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time


class Stopped(Exception):
    """The broker did not start, or is gone."""


class Broker:
    """Listens on loopback; `guarded` asks for a password, an open one lets anybody in."""

    USER, PASSWORD = "interop", "pony-express"

    def __init__(self, binary, log, guarded=False):
        self.binary, self.log_path, self.guarded = binary, pathlib.Path(log), guarded
        self.port = free_port()
        self.process = None
        self.home = tempfile.TemporaryDirectory(prefix="mochila-interop-")
        self.log = open(log, "w", encoding="utf-8")

    def __enter__(self):
        if self.guarded:
            self.add_user()
        self.start()
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.home.cleanup()

    @property
    def users_file(self):
        return os.path.join(self.home.name, "users")

    def add_user(self):
        subprocess.run(
            [self.binary, "user", "add", self.USER, "--users-file", self.users_file],
            input=self.PASSWORD + "\n", text=True, check=True, stdout=self.log, stderr=self.log,
        )

    def start(self):
        command = [self.binary, "serve", "-p", str(self.port), "--interface", "127.0.0.1",
                   "--no-data-dir"]
        command += ["--auth", "yes", "--users-file", self.users_file] if self.guarded else ["--auth", "no"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd=self.home.name
        )
        deadline = time.monotonic() + START_LIMIT_S
        while not self.listens():
            if self.process.poll() is not None:
                raise Stopped(f"{' '.join(map(str, command))} ended with {self.process.returncode}: "
                              f"see {self.log_path}")
            if time.monotonic() > deadline:
                raise Stopped(f"no answer on port {self.port} within {START_LIMIT_S} s")
            time.sleep(0.02)

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def restart(self, kill=False):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            self.wait()
        self.start()

    def stop(self):
        """Asks it to end and returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        try:
            return self.process.wait(timeout=STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"none within {STOP_LIMIT_S} s"

    def died(self):
        """How it ended, if it has."""
        status = self.process.poll()
        return None if status is None else f"ended with {status}: see {self.log_path}"

    def connections_left(self):
        """Established connections to the port, after a while to let them go."""
        deadline = time.monotonic() + 5
        while (left := self.established()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def established(self):
        try:
            table = pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            return 0
        rows = (line.split() for line in table)
        return sum(1 for row in rows
                   if row[3] in (ESTABLISHED, CLOSE_WAIT) and row[1].endswith(f":{self.port:04X}"))

    def panics(self):
        text = self.log_path.read_text(encoding="utf-8", errors="replace")
        return [line for line in text.splitlines() if "panicked at" in line]


ESTABLISHED, CLOSE_WAIT = "01", "08"
START_LIMIT_S, STOP_LIMIT_S = 20, 20


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def find_binary(root):
    """The binary under test: named by MOCHILA, or the newest that was built, or built now."""
    named = os.environ.get("MOCHILA")
    if named:
        return os.path.abspath(named)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or root / "target")
    built = [path for path in (target / "release" / "mochila", target / "debug" / "mochila")
             if path.exists()]
    if not built:
        subprocess.run(["cargo", "build", "--package", "mochila"], cwd=root, check=True)
        built = [target / "debug" / "mochila"]
    return str(max(built, key=lambda path: path.stat().st_mtime))
