"""What a connection does: log in, be refused, come back after the broker went away."""

import threading
import time

from proton import ConnectionException, Message
from proton.handlers import MessagingHandler
from proton.reactor import Backoff, Container

from harness import (AUTH_URL, PASSWORD, URL, USER, Connection, bodies, case, equal, fresh,
                     restart_broker)


def login(**options):
    return Connection(AUTH_URL, allow_insecure_mechs=True, **options)


def refused(what, **options):
    try:
        login(timeout=10, **options).close()
    except ConnectionException:
        return
    raise AssertionError(f"{what} was let in")


@case("right credentials are let in")
def right_credentials():
    with login(user=USER, password=PASSWORD, allowed_mechs="PLAIN") as connection:
        queue = fresh()
        connection.send(queue, "x")
        equal(bodies(connection.create_receiver(queue), 1), ["x"], "bodies")


@case("wrong credentials are refused")
def wrong_credentials():
    refused("a wrong password", user=USER, password="wrong")
    refused("an unknown user", user="nobody", password=PASSWORD)
    refused("an empty password", user=USER, password="")


@case("anonymous is refused where a password is asked for")
def anonymous_refused():
    refused("anonymous", allowed_mechs="ANONYMOUS")
    refused("a client without SASL", sasl_enabled=False)


@case("anonymous and plain are let in where no password is asked for")
def open_door():
    for options in ({}, {"allowed_mechs": "ANONYMOUS"}, {"sasl_enabled": False}):
        with Connection(URL, **options) as connection:
            connection.create_sender(fresh()).close()


@case("open properties name the product")
def open_properties():
    with Connection() as connection:
        properties = connection.conn.remote_properties or {}
        assert properties.get("product"), f"properties are {properties}"
        assert properties.get("version"), f"properties are {properties}"
        assert connection.conn.remote_container, "no container-id"


@case("an idle connection is kept alive by heartbeats")
def heartbeats():
    with Connection(heartbeat=1) as connection:
        end = time.monotonic() + 2.5
        receiver = connection.create_receiver(fresh())
        try:
            connection.wait(lambda: time.monotonic() > end, timeout=4)
        finally:
            receiver.close()
        connection.create_sender(fresh()).send(Message(body="still here"))


class Returning(MessagingHandler):
    """Sends one message per connection it gets, and receives it."""

    def __init__(self, queue):
        super().__init__(auto_accept=True)
        self.queue, self.received, self.opened = queue, threading.Semaphore(0), 0
        self.connection = None

    def on_start(self, event):
        # After a close with amqp:connection:forced Proton stops reading and sees that the socket is
        # gone only when a heartbeat is due.
        self.connection = event.container.connect(
            URL, reconnect=Backoff(initial=0.05, max_delay=0.5), heartbeat=1)
        event.container.create_receiver(self.connection, self.queue)
        event.container.create_sender(self.connection, self.queue)

    def on_link_opened(self, event):
        if event.link.is_sender:
            event.link.send(Message(body="hello"))

    def on_message(self, event):
        self.received.release()

    def on_transport_error(self, event):
        pass  # expected: the broker is away


def reconnects(kill):
    handler = Returning(fresh("reconnect"))
    container = Container(handler)
    thread = threading.Thread(target=container.run, daemon=True)
    thread.start()
    for restart in (True, True, False):
        assert handler.received.acquire(timeout=15), "nothing came back"
        if restart:
            restart_broker(kill)
    container.stop()
    thread.join(timeout=5)


@case("reconnects after the broker is restarted")
def reconnects_after_restart():
    reconnects(kill=False)


@case("reconnects after the broker is killed")
def reconnects_after_kill():
    reconnects(kill=True)
