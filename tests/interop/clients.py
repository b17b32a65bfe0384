"""The clients: how each is installed below its own folder, and the command that runs its cases.

Installing is idempotent, and quick when nothing has changed. Everything installed is git-ignored.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


class NotInstalled(Exception):
    """The client cannot be had on this machine."""


class Suite:
    """A folder with a client's cases. `install` returns the command to run them."""

    limit_s = 240
    env = {}

    def __init__(self, name):
        self.name, self.folder = name, HERE / name

    def install(self, log):
        raise NotImplementedError

    def step(self, log, *command, **options):
        """Runs one install step, a second time when the first fails: registries have bad moments."""
        for attempt in (1, 2):
            log.write(f"$ {' '.join(map(str, command))}\n")
            log.flush()
            try:
                subprocess.run(command, cwd=self.folder, check=True, timeout=INSTALL_LIMIT_S,
                               stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options)
                return
            except (OSError, subprocess.SubprocessError) as error:
                failure = error
        raise NotInstalled(f"{command[0]} failed twice: {failure}")

    def once(self, log, stamp, inputs, *commands, still_there=lambda: True):
        """Runs the commands unless they have succeeded before with the same input files."""
        digest = hashlib.sha256()
        for path in sorted(inputs):
            digest.update(path.read_bytes())
        stamp = self.folder / stamp
        if stamp.exists() and stamp.read_text() == digest.hexdigest() and still_there():
            return
        for command in commands:
            self.step(log, *command)
        stamp.write_text(digest.hexdigest())

    def tool(self, log, name, *packages):
        """A program of this machine; where it is missing, Debian's packages are tried."""
        if not shutil.which(name):
            if not packages or not shutil.which("apt-get"):
                raise NotInstalled(f"{name} is not on this machine")
            self.step(log, "apt-get", "update", "-qq")
            self.step(log, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)
        return name


class PythonProton(Suite):
    """PyPI's python-qpid-proton in a venv, or Debian's python3-qpid-proton when that fails."""

    def install(self, log):
        try:
            return self.from_pypi(log)
        except NotInstalled as error:
            log.write(f"not from PyPI: {error}\n")
        if not self.has_proton("/usr/bin/python3"):
            self.tool(log, "apt-get")
            self.step(log, "apt-get", "update", "-qq")
            self.step(log, "apt-get", "install", "-y", "-qq", "python3-qpid-proton")
        return ["/usr/bin/python3", "main.py"]

    def from_pypi(self, log):
        venv, requirements = self.folder / ".venv", self.folder / "requirements.txt"
        self.once(
            log, ".venv/installed", [requirements],
            [sys.executable, "-m", "venv", "--clear", str(venv)],
            [str(venv / "bin" / "pip"), "install", "--quiet", "--requirement", str(requirements)],
            [str(venv / "bin" / "python"), "-c", "import proton"],
            still_there=lambda: self.has_proton(str(venv / "bin" / "python")),
        )
        return [str(venv / "bin" / "python"), "main.py"]

    @staticmethod
    def has_proton(python):
        try:
            return not subprocess.run([python, "-c", "import proton"], capture_output=True).returncode
        except OSError:
            return False


class Rhea(Suite):
    """rhea from npm."""

    def install(self, log):
        self.tool(log, "npm", "nodejs", "npm")
        inputs = [self.folder / "package.json", self.folder / "package-lock.json"]
        self.once(log, "node_modules/.installed", inputs,
                  ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"])
        return ["node", "main.js"]


class Fe2o3(Suite):
    """fe2o3-amqp from crates.io, in a workspace of its own."""

    env = {"RUST_BACKTRACE": "0"}

    def install(self, log):
        target = self.folder / "target"
        self.step(log, "cargo", "build", "--quiet", "--locked", "--target-dir", str(target))
        return [str(target / "debug" / "fe2o3-suite")]


class QpidJms(Suite):
    """Qpid JMS from Maven Central."""

    def install(self, log):
        self.tool(log, "mvn", "maven", "default-jdk-headless")
        inputs = [self.folder / "pom.xml", *self.folder.glob("src/**/*.java")]
        self.once(log, "target/installed", inputs,
                  ["mvn", "--quiet", "--batch-mode", "compile", "dependency:build-classpath",
                   "-Dmdep.outputFile=target/classpath"],
                  still_there=lambda: all(map(os.path.exists, self.jars())))
        classpath = os.pathsep.join(["target/classes", *self.jars()])
        return ["java", "-cp", classpath, "mochila.Main"]

    def jars(self):
        return (self.folder / "target" / "classpath").read_text().strip().split(os.pathsep)


class GoAmqp(Suite):
    """Azure/go-amqp from the Go module proxy."""

    def install(self, log):
        self.tool(log, "go", "golang-go")
        binary = self.folder / "target" / "suite"
        self.step(log, "go", "build", "-o", str(binary), ".")
        return [str(binary)]


class Raw(Suite):
    """Sockets and bytes: no client would send this."""

    limit_s = 180

    def install(self, log):
        return [sys.executable, "main.py"]


INSTALL_LIMIT_S = 600

SUITES = [
    PythonProton("python-proton"),
    Rhea("rhea"),
    Fe2o3("fe2o3"),
    QpidJms("qpid-jms"),
    GoAmqp("go-amqp"),
    Raw("raw"),
]
