#!/usr/bin/env python3
"""A client of a bridge whose standard output is a pipe that others have too. Starts the command with the lines of its own
standard input, reads all that it writes, and prints the number of bytes of the longest line, then the pipe's mode while it
was read: "waits" if writes of others still wait.

    bridge_client.py COMMAND [ARGUMENT...]"""

import fcntl
import os
import subprocess
import sys

reading, writing = os.pipe()
bridge = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=writing)
bridge.stdin.write(sys.stdin.buffer.read())
bridge.stdin.close()
output = os.read(reading, 1)
mode = "waits" if not fcntl.fcntl(writing, fcntl.F_GETFL) & os.O_NONBLOCK else "does not wait"
os.close(writing)
while piece := os.read(reading, 1 << 16):
    output += piece
bridge.wait()
print(max(len(line) for line in output.split(b"\n")), mode)
