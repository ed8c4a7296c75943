"""The PyPI clients with open sessions at a gateway that is stopped, reloaded or killed, and started again; see `restart.mjs`."""

import logging
import os
import re
import signal
import subprocess
import tempfile

import anyio

from check import Checks, equal, start, text
from demo import Person
from gateway import connect


class Gateway:
    """A gateway with the demo, at a port that stays the same."""

    def __init__(self, program: str, folder: str) -> None:
        self.program, self.folder, self.port = program, folder, 0

    def start(self) -> None:
        words = ["serve", "--listen", f"127.0.0.1:{self.port}", "--state", os.path.join(self.folder, "state")]
        env = {**os.environ, "XDG_CONFIG_HOME": self.folder}
        self.process = subprocess.Popen(
            [self.program, *words], cwd=self.folder, env=env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        for line in self.process.stderr:
            if at := re.search(r"http://127\.0\.0\.1:(\d+)/mcp", line):
                self.port = int(at[1])
                return
        raise RuntimeError("The gateway ended.")

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal; one that ends it is followed by a start."""
        self.process.send_signal(number)
        if number != signal.SIGHUP:
            self.process.wait(20)
            self.start()


async def main(program: str) -> int:
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        gateway = Gateway(program, folder)
        gateway.start()
        try:
            for sdk, era in [("py", "legacy"), ("py", "auto"), ("fast", "legacy"), ("fast", "auto")]:
                for number in [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]:
                    checks.prefix = f"restart {sdk} {era} {number.name}"

                    async def goes_on() -> None:
                        url = f"http://127.0.0.1:{gateway.port}/mcp"
                        async with connect(sdk, era, url, Person()) as client:
                            before = text(await client.call_tool("demo.sum", {"a": 2, "b": 3}))
                            await anyio.to_thread.run_sync(gateway.signal, number)
                            with anyio.fail_after(2):
                                equal(text(await client.call_tool("demo.sum", {"a": 2, "b": 3})), before)

                    await checks.check("goes on within two seconds", goes_on, 60)
        finally:
            gateway.process.kill()
            gateway.process.wait()
    return checks.end()


if __name__ == "__main__":
    start(main, "TRUNKLINE", logging.CRITICAL)
