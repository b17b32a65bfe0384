"""What comes of wrong, hostile and half-finished input."""

import struct
import time

from peer import (AMQP, ATTACH, BEGIN, CLOSE, DETACH, DISPOSITION, END, FLOW, NULL, OPEN, SASL,
                  SASL_INIT, SASL_RESPONSE, TRANSFER, TRUE, Peer, binary, frame, maps, rss_kib, string, symbol, uint,
                  values, works)

CASES = []


def case(name):
    def register(function):
        CASES.append((name, function))
        return function
    return register


def refused(peer, condition):
    """The broker closes the connection with this condition, and then the socket."""
    body = peer.until(CLOSE)
    assert condition in body, f"closed with {body!r}, not {condition!r}"
    peer.send(frame(CLOSE))
    peer.closed(within=5)
    assert works()


@case("another protocol version is answered with ours")
def other_version():
    for header in (b"AMQP\x00\x01\x01\x00", b"AMQP\x00\x00\x09\x01", b"AMQP\x02\x01\x00\x00",
                   b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
        with Peer() as peer:
            answer = peer.send(header).closed(within=5)
            assert answer in (AMQP, SASL), f"{header!r} is answered with {answer!r}"
    assert works()


@case("port scanners and health checks do no harm")
def scanners():
    for piece in (b"", b"A", b"AMQP", AMQP[:7], SASL):
        for end in (Peer.reset, Peer.__exit__):
            peer = Peer().send(piece)
            end(peer)
    assert works()


@case("both ways to log in: SASL ANONYMOUS, and AMQP at once")
def both_ways():
    with Peer() as peer:
        peer.anonymous()
        peer.send(frame(OPEN, string("anonymous")))
        peer.until(OPEN)
    with Peer() as peer:
        peer.open().begin()


@case("a large or impossible frame size before login ends the connection")
def sizes_before_login():
    before = rss_kib()
    for size in (0, 7, 9000, 1 << 20, 0x7FFFFFFF, 0xFFFFFFFF):
        with Peer() as peer:
            peer.send(SASL, struct.pack(">IBBH", size, 2, 1, 0), b"\x00" * 20).closed(within=5)
    assert rss_kib() - before < 8192, "memory was reserved for frames that never came"
    assert works()


@case("malformed SASL responses are failed log-ins")
def malformed_sasl():
    for init in (
        frame(SASL_INIT, symbol("PLAIN"), kind=1) + frame(SASL_RESPONSE, binary(b"x"), kind=1),
        frame(SASL_INIT, symbol("PLAIN"), kind=1) + frame(SASL_RESPONSE, kind=1),
        frame(SASL_INIT, symbol("PLAIN"), binary(b"\x00"), kind=1),
        frame(SASL_INIT, symbol("PLAIN"), b"\xa0\x05\xff\xff\x00\x00\x00", kind=1),
        frame(SASL_INIT, symbol("GSSAPI"), kind=1),
        frame(SASL_INIT, kind=1),
        frame(SASL_INIT, string("PLAIN"), NULL, kind=1),
        frame(OPEN, string("too early"), kind=0),
    ):
        with Peer() as peer:
            peer.send(SASL, init)
            assert peer.read(8) == SASL
            peer.closed(within=5)
    assert works()


@case("an array of four thousand million nulls takes neither time nor memory")
def zero_width_array():
    before, started = rss_kib(), time.monotonic()
    bomb = b"\xf0" + struct.pack(">II", 5, 0xFFFFFFFF) + NULL
    for value in (bomb, maps((symbol("x"), bomb))):
        with Peer() as peer:
            peer.header()
            peer.send(frame(OPEN, string("bomb"), *[NULL] * 6, NULL, NULL, value))
            refused(peer, b"amqp:")
    assert time.monotonic() - started < 5
    assert rss_kib() - before < 8192, "the array was made"


@case("deeply nested values are refused")
def deep():
    value = NULL
    for _ in range(2000):
        value = b"\xd0" + struct.pack(">II", len(value) + 4, 1) + value
    with Peer() as peer:
        peer.header()
        peer.send(frame(OPEN, string("deep"), *[NULL] * 8, maps((symbol("x"), value))))
        refused(peer, b"amqp:")


@case("unknown, truncated and misplaced performatives close the connection with an error")
def wrong_frames():
    truncated = frame(BEGIN, NULL, uint(0))[:-3]
    truncated = struct.pack(">I", len(truncated)) + truncated[4:]
    for wrong, condition in (
        (frame(0x7F, NULL), b"amqp:"),
        (truncated, b"amqp:decode-error"),
        (frame(FLOW, NULL, uint(1), uint(0), uint(1), channel=9), b"amqp:"),
        (frame(OPEN, string("again")), b"amqp:"),
        (frame(BEGIN, NULL, uint(0), uint(1)), b"amqp:"),
        (frame(BEGIN, NULL, string("no"), uint(1), uint(1)), b"amqp:"),
        (struct.pack(">IBBH", 12, 1, 0, 0) + b"\x00" * 4, b"amqp:connection:framing-error"),
    ):
        with Peer() as peer:
            peer.open().send(wrong)
            refused(peer, condition)


@case("text that is not UTF-8 is a decode error")
def bad_utf8():
    with Peer() as peer:
        peer.header()
        peer.send(frame(OPEN, b"\xa1\x02\xff\xfe"))
        refused(peer, b"amqp:decode-error")


@case("a handle in use ends the session")
def handle_in_use():
    with Peer() as peer:
        peer.open().begin()
        peer.attach_sender("raw-handle", handle=3, name="one")
        peer.until(ATTACH)
        peer.attach_sender("raw-handle", handle=3, name="two")
        assert b"amqp:session:handle-in-use" in peer.until(END)


@case("serial numbers wrap: a session that starts just below 2^32")
def serial_numbers():
    with Peer() as peer:
        start = 0xFFFFFFFC
        peer.open().begin(next_outgoing_id=start)
        peer.attach_sender("raw-serial")
        peer.until(ATTACH)
        peer.until(FLOW)
        for number in range(10):
            peer.send(peer.transfer((start + number) & 0xFFFFFFFF))
        settled = 0
        while settled < 10:
            body = peer.until(DISPOSITION)
            assert b"\x00\x53\x24" in body, f"not accepted: {body!r}"
            first, last = values(body)[1:3]
            settled += ((first if last is None else last) - first & 0xFFFFFFFF) + 1


@case("half a message, and then nothing: nothing is left of it")
def half_a_message():
    for end in (Peer.reset, Peer.__exit__):
        peer = Peer().open().begin()
        peer.attach_sender("raw-half")
        peer.until(FLOW)
        peer.send(peer.transfer(0, b"x" * 1000, more=TRUE))
        peer.send(peer.transfer(0, b"x" * 1000, more=TRUE)[:300])
        end(peer)
    with Peer() as peer:
        peer.open().begin()
        peer.attach_receiver("raw-half")
        peer.until(ATTACH)
        peer.credit(1, drain=TRUE)
        kind, body = peer.frame()
        while kind != FLOW:
            assert kind != TRANSFER, f"half a message came: {body!r}"
            kind, body = peer.frame()


@case("a consumer that does not read keeps no message from the others")
def stalled_consumer():
    with Peer() as stalled, Peer() as reader, Peer() as sender:
        stalled.open().begin(incoming_window=1_000_000)
        stalled.attach_receiver("raw-stalled")
        stalled.until(ATTACH)
        stalled.credit(1_000_000)
        sender.open().begin()
        sender.attach_sender("raw-stalled")
        sender.until(FLOW)
        body = b"x" * 50_000
        for number in range(400):  # 20 MB, more than the sockets hold
            sender.send(sender.transfer(number, body))
        reader.open().begin(incoming_window=1_000_000)
        reader.attach_receiver("raw-stalled")
        reader.until(ATTACH)
        reader.credit(1_000_000)
        reader.until(TRANSFER)
        for number in range(400, 410):
            sender.send(sender.transfer(number, b"late %d" % number))
            while b"late %d" % number not in reader.until(TRANSFER):
                pass


@case("detach and end are answered, and so is close")
def goodbyes():
    with Peer() as peer:
        peer.open().begin()
        peer.attach_sender("raw-goodbye")
        peer.until(ATTACH)
        peer.send(frame(DETACH, uint(0), TRUE))
        peer.until(DETACH)
        peer.send(frame(END))
        peer.until(END)
        peer.send(frame(CLOSE))
        peer.until(CLOSE)
        peer.closed(within=5)


@case("who does not finish the handshake is let go after ten seconds")
def handshake_timeout():
    started = time.monotonic()
    peers = [Peer().send(piece) for piece in (b"", SASL, AMQP, SASL + b"\x00\x00")]
    for peer in peers:
        peer.closed(within=13)
        assert time.monotonic() - started > 8, "let go too early"
        peer.socket.close()


@case("10,000 connections that come and go leave no memory behind")
def soak():
    def cycle(number):
        if number % 4 == 0:
            Peer().send(SASL[: number % 8]).reset()
        elif number % 4 == 1:
            Peer().send(AMQP, frame(OPEN, string("soak"))[: number % 20]).reset()
        else:
            peer = Peer().open().begin()
            peer.attach_sender("raw-soak", name="s")
            peer.attach_receiver("raw-soak", name="r", handle=1)
            peer.until(ATTACH)
            if number % 4 == 2:
                peer.reset()
            else:
                peer.send(frame(CLOSE))
                peer.until(CLOSE)
                peer.socket.close()

    for number in range(2000):
        cycle(number)
    before = rss_kib()
    for number in range(8000):
        cycle(number)
    grown = rss_kib() - before
    assert grown < 4096, f"{grown} KiB more after 8,000 more connections"
