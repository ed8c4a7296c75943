"""`TRUNKLINE REVISION (URL | COMMAND ARG…)` into what `trunkline call` sees of the travel server, as one line of JSON.

It shows progress on a terminal alone, so it gets one.
"""

import json
import os
import pty
import re
import subprocess
import sys
import threading


def main(trunkline: str, revision: str, *server: str) -> int:
    screen, terminal = pty.openpty()
    words = [trunkline, "call", "book", "city=Oslo", "nights=3", "--answer", "value=true", "--json"]
    target = server if server[0].startswith("http:") else ["--", *server]
    command = [*words, "--protocol", revision, *target]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=terminal, text=True)
    os.close(terminal)
    shown = bytearray()

    def watch() -> None:
        # Linux says that nobody holds the other end by an error.
        try:
            while data := os.read(screen, 4096):
                shown.extend(data)
        except OSError:
            pass

    watcher = threading.Thread(target=watch)
    watcher.start()
    said, _ = process.communicate(timeout=40)
    watcher.join()
    text = shown.decode()
    if process.returncode != 0:
        print(said, text, file=sys.stderr)
        return 1
    heard = [[int(done), int(total)] for done, total in re.findall(r"\r\x1b\[K(\d+)/(\d+)", text)]
    result = json.loads(said)
    report = {
        "revision": revision,
        "heard": heard,
        "error": result.get("isError", False),
        "result": result.get("structuredContent"),
    }
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit("usage: python cli_client.py TRUNKLINE REVISION (URL | COMMAND ARG…)")
    sys.exit(main(*sys.argv[1:]))
