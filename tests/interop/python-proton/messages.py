"""What a message is made of: bodies, sections, types, sizes, time to live."""

import hashlib
import random
import time
import uuid

from proton import (Array, Data, Described, Message, Timeout, UNDESCRIBED, byte, char, decimal32,
                    decimal64, decimal128, float32, int32, short, symbol, timestamp, ubyte, uint,
                    ulong, ushort)

from harness import Connection, bodies, case, drain, equal, fresh

EVERY_TYPE = {
    "null": None,
    "true": True,
    "false": False,
    "ubyte": ubyte(255),
    "ushort": ushort(65535),
    "uint 0": uint(0),
    "uint small": uint(200),
    "uint": uint(4294967295),
    "ulong 0": ulong(0),
    "ulong small": ulong(200),
    "ulong": ulong(18446744073709551615),
    "byte": byte(-128),
    "short": short(-32768),
    "int small": int32(-100),
    "int": int32(-2147483648),
    "long small": -100,
    "long": -9223372036854775808,
    "float": float32(1.5),
    "double": 3.141592653589793,
    "decimal32": decimal32(12345),
    "decimal64": decimal64(1234567890),
    "decimal128": decimal128(b"0123456789abcdef"),
    "char": char("\U0001f40e"),
    "timestamp": timestamp(1700000000123),
    "uuid": uuid.UUID("01234567-89ab-cdef-0123-456789abcdef"),
    "binary empty": b"",
    "binary": bytes(range(256)) * 2,
    "string empty": "",
    "string": "sëlla de correu \U0001f40e",
    "string long": "x" * 300,
    "symbol": symbol("a-symbol"),
    "symbol long": symbol("s" * 300),
}

COMPOUND = {
    "list empty": [],
    "list": [1, "two", symbol("three"), None, [ulong(4)]],
    "list long": [int32(i) for i in range(1000)],
    "map": {"a": 1, symbol("b"): [True, None], ulong(3): {"deep": b"er"}},
    "described": Described(symbol("com.example:point"), [1, 2]),
    "described by number": Described(ulong(0xFFFF000000000001), "x"),
    "array of int": Array(UNDESCRIBED, Data.INT, 1, -2, 300000),
    "array of string": Array(UNDESCRIBED, Data.STRING, "a", "bb", "c" * 300),
    "array of symbol": Array(UNDESCRIBED, Data.SYMBOL, symbol("a"), symbol("b")),
    "array of ulong": Array(UNDESCRIBED, Data.ULONG, 0, 1, 1 << 60),
}


def same(actual, expected):
    """Equal in value and in type: ubyte(1) is not ulong(1)."""
    if isinstance(actual, memoryview):  # what Proton makes of a binary that is not a data section
        actual = bytes(actual)
    if isinstance(expected, (list, tuple)):
        return len(actual) == len(expected) and all(map(same, actual, expected))
    if isinstance(expected, dict):
        return actual.keys() == expected.keys() and all(
            same(actual[key], value) for key, value in expected.items())
    return type(actual) is type(expected) and actual == expected


def round_trip(connection, message):
    queue = fresh("types")
    sender, receiver = connection.create_sender(queue), connection.create_receiver(queue)
    sender.send(message)
    received = receiver.receive()
    receiver.accept()
    sender.close()
    receiver.close()
    return received


@case("send and receive")
def send_and_receive():
    with Connection() as connection:
        queue = fresh()
        connection.send(queue, "a", "b", "c")
        receiver = connection.create_receiver(queue)
        equal(bodies(receiver, 3), ["a", "b", "c"], "bodies")


@case("5,000 messages stay in order")
def many_in_order():
    with Connection() as connection:
        queue, count = fresh(), 5000
        sender = connection.create_sender(queue)
        deliveries = []
        for number in range(count):
            connection.until(lambda: sender.link.credit > 0, "credit")
            deliveries.append(sender.link.send(Message(body=number)))
        connection.until(lambda: all(d.settled for d in deliveries), "all settled")
        receiver = connection.create_receiver(queue, credit=200)
        equal(bodies(receiver, count), list(range(count)), "bodies")


@case("all primitive types as body")
def types_in_body():
    with Connection() as connection:
        for name, value in {**EVERY_TYPE, **COMPOUND}.items():
            message = Message(body=value)
            message.inferred = False
            received = round_trip(connection, message)  # owns the memory that `body` may show
            body = received.body
            assert same(body, value), f"{name}: {body!r} is not {value!r}"


@case("all primitive types in application properties")
def types_in_application_properties():
    with Connection() as connection:
        received = round_trip(connection, Message(properties=dict(EVERY_TYPE)))
        for name, value in EVERY_TYPE.items():
            actual = received.properties[name]
            assert same(actual, value), f"{name}: {actual!r} is not {value!r}"


@case("all primitive types in message annotations")
def types_in_annotations():
    annotations = {symbol(f"x-opt-{name.replace(' ', '-')}"): value
                   for name, value in {**EVERY_TYPE, **COMPOUND}.items()}
    with Connection() as connection:
        received = round_trip(connection, Message(annotations=annotations)).annotations
        for name, value in annotations.items():
            assert same(received[name], value), f"{name}: {received[name]!r} is not {value!r}"


@case("properties section")
def properties_section():
    with Connection() as connection:
        for message_id in ("id-1", ulong(7), uuid.uuid4(), b"\x00\x01"):
            sent = Message(
                id=message_id, user_id=b"ann", address="to", subject="subject",
                reply_to="reply-to", correlation_id=message_id, content_type=symbol("text/plain"),
                content_encoding=symbol("gzip"), expiry_time=4102444800.5,
                creation_time=1700000000.25, group_id="group", group_sequence=4294967295,
                reply_to_group_id="reply-group", body="body")
            received = round_trip(connection, sent)
            for field in ("id", "user_id", "address", "subject", "reply_to", "correlation_id",
                          "content_type", "content_encoding", "expiry_time", "creation_time",
                          "group_id", "group_sequence", "reply_to_group_id", "body"):
                equal(getattr(received, field), getattr(sent, field), field)


@case("header section: durable and priority")
def header_section():
    with Connection() as connection:
        received = round_trip(connection, Message(durable=True, priority=9, body="x"))
        equal((received.durable, received.priority), (True, 9), "durable, priority")
        equal(received.delivery_count, 0, "delivery-count")
        received = round_trip(connection, Message(body="x"))
        equal((received.durable, received.priority, received.ttl), (False, 4, 0), "defaults")


@case("large messages of 10 MB, both ways")
def large_messages():
    body = random.Random(1).randbytes(10_000_000)
    digest = hashlib.sha256(body).hexdigest()
    with Connection() as connection:
        queue = fresh("large")
        sender = connection.create_sender(queue)
        for number in range(2):
            sender.send(Message(id=ulong(number), body=body, inferred=True), timeout=60)
        receiver = connection.create_receiver(queue)
        for number in range(2):
            message = receiver.receive(timeout=60)
            receiver.accept()
            equal(message.id, ulong(number), "id")
            equal(hashlib.sha256(message.body).hexdigest(), digest, "digest")


@case("sizes around the frame size, frames of 512 bytes")
def sizes_around_the_frame_size():
    with Connection(max_frame_size=512) as small, Connection() as usual:
        for sender_side, receiver_side in ((small, usual), (usual, small)):
            queue = fresh("frames")
            sizes = [0, 1, *range(380, 520), 1023, 1024, 65535, 65536, 131072, 300_000]
            sender, receiver = sender_side.create_sender(queue), receiver_side.create_receiver(queue)
            for size in sizes:
                sender.send(Message(body=b"m" * size, inferred=True))
                equal(len(receiver.receive().body), size, "size")
                receiver.accept()


@case("ttl expires a message that waits, and the rest of it is passed on")
def ttl():
    with Connection() as connection:
        queue = fresh("ttl")
        sender = connection.create_sender(queue)
        sender.send(Message(body="short", ttl=0.2))
        sender.send(Message(body="long", ttl=60))
        sender.send(Message(body="for ever"))
        time.sleep(0.6)
        receiver = connection.create_receiver(queue)
        message = receiver.receive()
        equal(message.body, "long", "first message left")
        assert 50 < message.ttl < 59.8, f"ttl is {message.ttl}"
        receiver.accept()
        equal(bodies(receiver, 1), ["for ever"], "second message left")
        sender.send(Message(body="short", ttl=0.2))
        equal(bodies(receiver, 1), ["short"], "an unexpired message")
        try:
            raise AssertionError(f"got {receiver.receive(timeout=0.3).body!r} from an empty queue")
        except Timeout:
            pass
        drain(connection, receiver)
