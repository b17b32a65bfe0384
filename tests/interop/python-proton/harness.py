"""Cases, connections and links for the Proton suite."""

import collections
import itertools
import os
import sys
import traceback

from proton import Endpoint, Message
from proton.handlers import MessagingHandler
from proton.reactor import LinkOption
from proton.utils import (BlockingConnection, BlockingReceiver, BlockingSender, ConnectionClosed,
                          LinkDetached)

HOST = "127.0.0.1"
PORT = os.environ["AMQP_PORT"]
AUTH_PORT = os.environ["AMQP_AUTH_PORT"]
USER, PASSWORD = os.environ["AMQP_USER"], os.environ["AMQP_PASSWORD"]
URL = f"amqp://{HOST}:{PORT}"
AUTH_URL = f"amqp://{HOST}:{AUTH_PORT}"
TIMEOUT_S = 15

CASES = []


def case(name):
    """Registers a case; its function may take a fresh queue name."""
    def register(function):
        CASES.append((name, function))
        return function
    return register


def run_all():
    """Runs every case, or those whose name contains an argument."""
    for name, function in CASES:
        if sys.argv[1:] and not any(part in name for part in sys.argv[1:]):
            continue
        say(f"case {name}")
        try:
            function()
            say(f"ok {name}")
        except Exception as error:  # a failing case must not hide the others
            traceback.print_exc()
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            say(f"fail {name} # {reason}")
    say("done")


def say(line):
    print(line, flush=True)


def restart_broker(kill=False):
    """Has the broker stopped and started again on the same port."""
    say("@restart kill" if kill else "@restart")
    assert sys.stdin.readline().strip() == "restarted"


_serial = itertools.count()


def fresh(name="q"):
    """A queue name that nobody has used."""
    return f"proton-{name}-{os.getpid()}-{next(_serial)}"


class Connection(BlockingConnection):
    """A blocking connection as a context manager, with sessions of chosen windows."""

    def __init__(self, url=URL, **options):
        options.setdefault("timeout", TIMEOUT_S)
        super().__init__(url, **options)

    # Proton names a link after its address: two of them to one queue would be one link, stolen.

    def create_sender(self, address, **options):
        options.setdefault("name", fresh("sender"))
        return super().create_sender(address, **options)

    def create_receiver(self, address, **options):
        options.setdefault("name", fresh("receiver"))
        return super().create_receiver(address, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def session(self, incoming_capacity=None):
        session = self.conn.session()
        if incoming_capacity is not None:
            session.incoming_capacity = incoming_capacity
        session.open()
        return session

    def sender_on(self, session, address, name=None, options=None):
        return BlockingSender(
            self, self.container.create_sender(session, address, name=name, options=options))

    def receiver_on(self, session, address, credit=0, **options):
        inbox = Inbox(self)
        options.setdefault("name", fresh("receiver"))
        link = self.container.create_receiver(session, address, handler=inbox, **options)
        return BlockingReceiver(self, link, inbox, credit=credit)

    def receiver(self, address, credit=0, **options):
        """A receiver that gives credit only when told."""
        return self.receiver_on(self.conn, address, credit, **options)

    def until(self, condition, what):
        self.wait(condition, timeout=TIMEOUT_S, msg=what)

    def send(self, address, *bodies, **properties):
        sender = self.create_sender(address)
        for body in bodies:
            sender.send(Message(body=body, **properties))
        sender.close()

    def flush(self):
        """Returns when the broker has handled everything sent before on this connection."""
        self.create_receiver(None, dynamic=True).close()


class Inbox(MessagingHandler):
    """What a blocking receiver has got; like Proton's own, but without credit of its own."""

    def __init__(self, connection):
        super().__init__(prefetch=0, auto_accept=False)
        self.connection, self.incoming = connection, collections.deque()
        self.unsettled = collections.deque()

    def on_message(self, event):
        self.incoming.append((event.message, event.delivery))
        self.connection.container.yield_()

    def on_link_error(self, event):
        if event.link.state & Endpoint.LOCAL_ACTIVE:
            event.link.close()
            if not self.connection.closing:
                raise LinkDetached(event.link)

    def on_connection_error(self, event):
        if not self.connection.closing:
            raise ConnectionClosed(event.connection)

    @property
    def has_message(self):
        return len(self.incoming)

    def pop(self):
        message, delivery = self.incoming.popleft()
        if not delivery.settled:
            self.unsettled.append(delivery)
        return message

    def settle(self, state=None):
        delivery = self.unsettled.popleft()
        if state:
            delivery.update(state)
        delivery.settle()


class Settle(LinkOption):
    """Asks for settle modes."""

    def __init__(self, snd=None, rcv=None):
        self.snd, self.rcv = snd, rcv

    def apply(self, link):
        if self.snd is not None:
            link.snd_settle_mode = self.snd
        if self.rcv is not None:
            link.rcv_settle_mode = self.rcv


def bodies(receiver, count, timeout=TIMEOUT_S):
    """Receives and accepts `count` messages."""
    out = []
    for _ in range(count):
        out.append(receiver.receive(timeout=timeout).body)
        accept(receiver)
    return out


def accept(receiver):
    if receiver.fetcher.unsettled:
        receiver.accept()


def drain(connection, receiver):
    """Gives the credit back: what is there arrives, the rest of the credit is used up."""
    receiver.link.drain(0)
    connection.until(lambda: receiver.link.credit == 0, "drain answered")


def is_empty(connection, address):
    """Whether a drained receiver finds nothing."""
    receiver = connection.receiver(address, credit=1)
    drain(connection, receiver)
    nothing = not receiver.fetcher.has_message
    if not nothing:
        receiver.fetcher.pop()
        receiver.release(delivered=False)
    receiver.close()
    return nothing


def last_delivery(receiver):
    return receiver.fetcher.unsettled[-1]


def equal(actual, expected, what="value"):
    assert actual == expected, f"{what} is {actual!r}, not {expected!r}"



