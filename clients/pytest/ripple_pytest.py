"""pytest with a running Ripple: `pytest -p ripple_pytest`. The manifest is ripple.toml, or the variable RIPPLE_CONFIG."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import pytest

FOLDERS = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
RIPPLE = os.environ.get("RIPPLE") or shutil.which("ripple", path=FOLDERS) or "ripple"
# It runs against the service and ends when its input is closed, so `dev` ends with pytest, even if pytest is killed.
CLIENT = "import json, os, sys; print(json.dumps(dict(os.environ)), flush=True); sys.stdin.read()"
STARTED = pytest.StashKey()


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        return  # A worker of pytest-xdist has the variables of the process that started it.
    if not shutil.which(RIPPLE):
        raise pytest.UsageError(f"there is no program {RIPPLE}: install it, or name it in the variable RIPPLE")
    os.environ.setdefault("RIPPLE_CONFIG", "ripple.toml")
    lines, pipe = tempfile.TemporaryFile("w+"), subprocess.PIPE
    command = [RIPPLE, "dev", "--", sys.executable, "-c", CLIENT]
    dev = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=lines, text=True)
    config.stash[STARTED] = dev, lines
    variables = dev.stdout.readline()
    if not variables:
        pytest.exit(ended(dev, lines), returncode=dev.returncode)
    os.environ.update(json.loads(variables))


def pytest_sessionfinish(session):
    dev, lines = session.config.stash.get(STARTED, (None, None))
    if dev and (report := ended(dev, lines)):
        session.config.get_terminal_writer().line(report)
        session.exitstatus = session.exitstatus or dev.returncode


def ended(dev, lines):
    """Waits until `dev` has verified everything and ended. Returns its last lines if it failed."""
    dev.stdin.close()
    failed = dev.wait()
    lines.seek(0)
    return failed and f"\n{RIPPLE} dev ended with {failed}:\n" + "".join(lines.readlines()[-40:])


@pytest.fixture(scope="session")
def settled():
    """Call it after writes: it returns when Ripple has handled everything that was written before."""
    return lambda: subprocess.run([RIPPLE, "wait", "--timeout", "60"], check=True)
