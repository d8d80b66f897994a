"""A child process of ours that another program started, in this process, before it gave its place to us.

Not one that we started: that is a `subprocess.Popen`, and this has as much of it as is needed.

Invariant: it is waited for once; afterwards its number may be another's, and is not used.
"""

import os
import signal


class Inherited:
    """By its number."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """How it ended, if it has."""
        return self._ended(os.WNOHANG)

    def wait(self) -> int:
        """How it ends."""
        code = self._ended(0)
        return 0 if code is None else code

    def kill(self) -> None:
        """SIGKILL, unless it is over."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _ended(self, how: int) -> int | None:
        if self.returncode is None:
            try:
                ended, status = os.waitpid(self.pid, how)
            except ChildProcessError:  # somebody else has waited for it
                self.returncode = 0
            else:
                self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode
