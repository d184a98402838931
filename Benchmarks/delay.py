#!/usr/bin/env python3
"""A link with a delay between a client and a server on this machine, which counts requests and bytes.

usage: delay.py [--ms N] [--counts FILE] [--trace FILE] tcp PORT
       delay.py [--ms N] [--counts FILE] [--trace FILE] pipe -- COMMAND...

With tcp it listens on a free port of 127.0.0.1, prints it, connects each client to PORT of 127.0.0.1, and
ends when its standard input ends. With pipe it runs COMMAND, an SFTP server, between its own standard
input and output, and takes the place of an SSH client, whose arguments after those of COMMAND it ignores.

Each direction has half of the delay (20 ms by default), regardless of the number of bytes: the rate is not
limited. A new TCP connection costs one more delay, like its handshake. What the server sends is acknowledged
at once, because the client's own acknowledgments cannot reach it. At the end of each connection, the counts
of requests by type and of bytes in each direction are added to FILE, as one line of JSON.
"""

import argparse
import collections
import fcntl
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

KINDS = {
    1: "init", 3: "open", 4: "close", 5: "read", 6: "write", 7: "lstat", 8: "fstat", 9: "setstat",
    10: "fsetstat", 11: "opendir", 12: "readdir", 13: "remove", 14: "mkdir", 15: "rmdir",
    16: "realpath", 17: "stat", 18: "rename", 200: "extended"}
HTTP = re.compile(rb"(GET|PUT|POST|DELETE|HEAD) [^ ]+ HTTP/1\.1\r\n")
CHUNK = 256 << 10
# The size of a pipe that holds a piece, whose parts may be small; and the number of a request's first
# bytes that are looked at.
PIPE_SIZE, HEAD = 1 << 20, 2048


class Counts:
    """The requests and bytes of one connection."""

    def __init__(self, trace):
        self.requests = collections.Counter()
        self.bytes = {"sent": 0, "received": 0}
        self.first = self.last = None
        self.rest = b""
        self.trace = trace

    def http(self, piece):
        self.count("sent", piece)
        found = HTTP.match(piece.head)
        if found:
            self.request(found[1].decode(), found[0].split(b" ")[1].decode(errors="replace"))

    def sftp(self, chunk):
        self.count("sent", chunk)
        self.rest += chunk
        while len(self.rest) >= 5:
            length = int.from_bytes(self.rest[:4], "big")
            if len(self.rest) < 4 + length:
                break
            kind = KINDS.get(self.rest[4], str(self.rest[4]))
            text = self.rest[9:4 + min(length, 300)] if kind != "write" else b""
            self.request(kind, re.sub(rb"[^ -~]+", b" ", text).decode())
            self.rest = self.rest[4 + length:]

    def request(self, kind, text):
        self.requests[kind] += 1
        if self.trace:
            self.trace.write(f"{time.time():.4f} {kind} {text}\n")
            self.trace.flush()

    def received(self, chunk):
        self.count("received", chunk)

    def count(self, direction, chunk):
        self.bytes[direction] += len(chunk)

    def save(self, path):
        if not path:
            return
        line = json.dumps({"requests": dict(self.requests), **self.bytes}) + "\n"
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, line.encode())
        os.close(file)


def carry(read, write, close, seconds, count):
    """Copies a stream; each piece is delayed. Returns the thread, which ends with the stream."""
    pieces = collections.deque()
    arrived = threading.Condition()

    def receive():
        while True:
            try:
                chunk = read(CHUNK)
            except OSError:
                chunk = b""
            with arrived:
                pieces.append((time.monotonic() + seconds, chunk))
                arrived.notify()
            if not chunk:
                return
            count(chunk)

    def send():
        while True:
            with arrived:
                while not pieces:
                    arrived.wait()
                due, chunk = pieces.popleft()
            rest = due - time.monotonic()
            if rest > 0:
                time.sleep(rest)
            try:
                if not chunk:
                    return close()
                write(chunk)
            except OSError:
                return close()

    threading.Thread(target=receive, daemon=True).start()
    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    return sender


class Piece:
    """A piece of a TCP stream in a pipe. The system moves its pages there and on without copying them
    (splice(2)): the link shares the processors with the programs that are measured."""

    free = collections.deque()

    def __init__(self, source, has_head):
        self.head = source.recv(HEAD, socket.MSG_PEEK) if has_head else b""
        self.pipe = self.free.pop() if self.free else self.make_pipe()
        self.size = 0
        try:
            self.size = os.splice(source.fileno(), self.pipe[1], CHUNK)
        finally:
            if not self.size:
                self.free.append(self.pipe)

    @staticmethod
    def make_pipe():
        pipe = os.pipe()
        fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        return pipe

    def __len__(self):
        return self.size

    def send(self, target):
        rest = self.size
        try:
            while rest:
                rest -= os.splice(self.pipe[0], target.fileno(), rest)
        finally:
            if rest:
                for end in self.pipe:
                    os.close(end)
            else:
                self.free.append(self.pipe)


def shut(connection, how):
    try:
        connection.shutdown(how)
    except OSError:
        pass


def connect(client, port, options, trace):
    counts = Counts(trace)
    half = options.ms / 2000
    # The client already counts as connected: a real one would wait for the answer to its first packet.
    time.sleep(2 * half)
    server = socket.create_connection(("127.0.0.1", port))
    for connection in (client, server):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def receive(_):
        piece = Piece(server, has_head=False)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return piece

    ends = [
        carry(
            lambda _: Piece(client, has_head=True), lambda piece: piece.send(server),
            lambda: shut(server, socket.SHUT_WR), half, counts.http),
        carry(
            receive, lambda piece: piece.send(client), lambda: shut(client, socket.SHUT_WR), half,
            counts.received)]
    for end in ends:
        end.join()
    client.close()
    server.close()
    counts.save(options.counts)


def serve(port, options, trace):
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)

    def accept():
        while True:
            client, _ = listener.accept()
            threading.Thread(
                target=connect, args=(client, port, options, trace), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


def run(command, options, trace):
    counts = Counts(trace)
    half = options.ms / 2000
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def write(file, chunk):
        while chunk:
            chunk = chunk[os.write(file, chunk):]

    carry(
        lambda n: os.read(0, n), lambda c: write(server.stdin.fileno(), c), server.stdin.close, half,
        counts.sftp)
    back = carry(
        lambda n: os.read(server.stdout.fileno(), n), lambda c: write(1, c), lambda: None, half,
        counts.received)
    back.join()
    counts.save(options.counts)
    return server.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ms", type=float, default=20)
    parser.add_argument("--counts")
    parser.add_argument("--trace")
    parser.add_argument("kind", choices=["tcp", "pipe"])
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    trace = open(options.trace, "a", encoding="utf-8") if options.trace else None
    if options.kind == "tcp":
        serve(int(options.rest[0]), options, trace)
        return 0
    # The arguments of an SSH client: options, the host and the subsystem.
    command = options.rest[1:] if options.rest[:1] == ["--"] else options.rest
    return run(command[:1], options, trace)


sys.exit(main())
