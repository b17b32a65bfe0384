"""A peer made of a socket: it sends what it is told, right or wrong, and reads frames."""

import os
import socket
import struct
import time

HOST, PORT = "127.0.0.1", int(os.environ["AMQP_PORT"])
PID = int(os.environ["AMQP_PID"])
TIMEOUT_S = 15

AMQP = b"AMQP\x00\x01\x00\x00"
SASL = b"AMQP\x03\x01\x00\x00"
OPEN, BEGIN, ATTACH, FLOW, TRANSFER = 0x10, 0x11, 0x12, 0x13, 0x14
DISPOSITION, DETACH, END, CLOSE = 0x15, 0x16, 0x17, 0x18
SASL_MECHANISMS, SASL_INIT, SASL_RESPONSE, SASL_OUTCOME = 0x40, 0x41, 0x43, 0x44

NULL, TRUE, FALSE = b"\x40", b"\x41", b"\x42"


# One encoded value each.

def uint(value):
    return b"\x70" + struct.pack(">I", value)


def ubyte(value):
    return bytes([0x50, value])


def string(text):
    return b"\xb1" + struct.pack(">I", len(text.encode())) + text.encode()


def symbol(text):
    return b"\xb3" + struct.pack(">I", len(text)) + text.encode("ascii")


def binary(value):
    return b"\xb0" + struct.pack(">I", len(value)) + value


def lists(*items):
    body = b"".join(items)
    return b"\xd0" + struct.pack(">II", len(body) + 4, len(items)) + body


def maps(*pairs):
    body = b"".join(key + value for key, value in pairs)
    return b"\xd1" + struct.pack(">II", len(body) + 4, 2 * len(pairs)) + body


def described(code, value):
    return b"\x00\x53" + bytes([code]) + value


def source(address):
    return described(0x28, lists(string(address)))


def target(address):
    return described(0x29, lists(string(address)))


def frame(performative, *fields, channel=0, payload=b"", kind=0):
    body = described(performative, lists(*fields)) + payload
    return struct.pack(">IBBH", len(body) + 8, 2, kind, channel) + body


def values(encoded):
    """The items of an encoded list: numbers, booleans and null as such, others as bytes."""
    if encoded[0] == 0x45:
        return []
    position = 3 if encoded[0] == 0xC0 else 9
    count, out = encoded[2] if encoded[0] == 0xC0 else int.from_bytes(encoded[5:9], "big"), []
    while len(out) < count:
        value, position = item(encoded, position)
        out.append(value)
    return out


def item(encoded, position):
    """One value and where it ends."""
    code, position = encoded[position], position + 1
    if code == 0x00:
        _, position = item(encoded, position)
        return item(encoded, position)
    if code in SINGLE:
        return SINGLE[code], position
    width = {0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}.get(code >> 4)
    if width:
        return int.from_bytes(encoded[position:position + width], "big"), position + width
    prefix = 1 if code >> 4 in (0xA, 0xC, 0xE) else 4
    end = position + prefix + int.from_bytes(encoded[position:position + prefix], "big")
    return encoded[position + prefix:end], end


SINGLE = {0x40: None, 0x41: True, 0x42: False, 0x43: 0, 0x44: 0, 0x45: b""}


class Gone(Exception):
    """The broker closed the connection."""


class Peer:
    """One connection."""

    def __init__(self):
        self.socket = socket.create_connection((HOST, PORT), timeout=TIMEOUT_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *pieces):
        self.socket.sendall(b"".join(pieces))
        return self

    def reset(self):
        """Ends the connection without a word, as a killed process on a lost machine does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def read(self, count):
        out = b""
        while len(out) < count:
            try:
                piece = self.socket.recv(count - len(out))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise Gone(f"closed after {out!r}" if out else "closed")
            out += piece
        return out

    def frame(self):
        """The next frame that is not empty: (performative, its encoded list and payload)."""
        while True:
            size, doff, _, _ = struct.unpack(">IBBH", self.read(8))
            body = self.read(size - 8)[4 * doff - 8:]
            if body:
                assert body[:2] == b"\x00\x53", f"not a performative: {body!r}"
                return body[2], body[3:]

    def until(self, performative):
        """Reads frames until one of this kind."""
        while True:
            kind, body = self.frame()
            if kind == performative:
                return body

    def closed(self, within=TIMEOUT_S):
        """Everything that still comes until the broker closes the connection."""
        self.socket.settimeout(within)
        out = b""
        try:
            while piece := self.socket.recv(65536):
                out += piece
        except ConnectionResetError:
            pass
        except TimeoutError:
            raise AssertionError(f"still open after {within} s; it said {out!r}") from None
        return out

    def header(self):
        """Exchanges AMQP headers, without SASL."""
        self.send(AMQP)
        assert self.read(8) == AMQP

    def anonymous(self):
        """Logs in with SASL ANONYMOUS, up to the AMQP header."""
        self.send(SASL)
        assert self.read(8) == SASL
        assert b"ANONYMOUS" in self.until(SASL_MECHANISMS)
        self.send(frame(SASL_INIT, symbol("ANONYMOUS"), kind=1))
        self.until(SASL_OUTCOME)
        self.header()

    def open(self, *fields):
        self.header()
        self.send(frame(OPEN, string(f"raw-{time.monotonic_ns()}"), *fields))
        self.until(OPEN)
        return self

    def begin(self, next_outgoing_id=0, incoming_window=100):
        self.send(frame(BEGIN, NULL, uint(next_outgoing_id), uint(incoming_window), uint(100)))
        self.next_incoming_id = values(self.until(BEGIN))[1]
        return self

    def attach_sender(self, address, handle=0, name="sender"):
        self.send(frame(ATTACH, string(name), uint(handle), FALSE, NULL, NULL,
                        source("here"), target(address), NULL, NULL, uint(0)))

    def attach_receiver(self, address, handle=0, name="receiver"):
        self.send(frame(ATTACH, string(name), uint(handle), TRUE, NULL, NULL,
                        source(address), target("here")))

    def credit(self, credit, handle=0, drain=FALSE, window=1_000_000):
        """Gives credit on a link on which nothing has been received yet."""
        self.send(frame(FLOW, uint(self.next_incoming_id), uint(window), uint(0), uint(100),
                        uint(handle), uint(0), uint(credit), NULL, drain))

    def transfer(self, number, body=b"x", handle=0, more=FALSE):
        return frame(TRANSFER, uint(handle), uint(number), binary(b"%d" % number), uint(0), FALSE,
                     more, payload=described(0x75, binary(body)))


def works():
    """Whether the broker still serves others."""
    with Peer() as peer:
        peer.open().begin()
    return True


def rss_kib():
    with open(f"/proc/{PID}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
