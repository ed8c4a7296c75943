# How a plugin of the gateway begins: `reader` has a message in each line, `say` answers.
import json, os, socket, sys

sock = socket.socket(socket.AF_UNIX)
sock.connect(os.environ["TRUNKLINE_PLUGIN_SOCKET"])
# Two: one that does both forgets what it has read whenever it writes.
reader = sock.makefile("r", encoding="utf-8", newline="\n")
writer = sock.makefile("w", encoding="utf-8", newline="\n")


def say(**message):
    writer.write(json.dumps(message) + "\n")
    writer.flush()


