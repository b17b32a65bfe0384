"""What a link does: settlement, credit, outcomes, termini."""

import time

from proton import ConnectionException, Delivery, Link, LinkException, Message, Timeout, symbol
from proton.reactor import AtLeastOnce, AtMostOnce, Copy
from proton.utils import SendException

from harness import (Connection, Settle, accept, bodies, case, drain, equal, fresh, is_empty,
                     last_delivery)


@case("presettled in and out")
def presettled():
    with Connection() as connection:
        queue = fresh("presettled")
        sender = connection.create_sender(queue, options=AtMostOnce())
        for number in range(100):
            sender.send(Message(body=number))
        receiver = connection.create_receiver(queue, credit=10, options=AtMostOnce())
        for number in range(100):
            equal(receiver.receive().body, number, "body")
        assert not receiver.fetcher.unsettled, "a delivery was not presettled"
        receiver.close()
        assert is_empty(connection, queue), "presettled messages are gone once sent"


@case("settle mode first")
def settle_first():
    with Connection() as connection:
        queue = fresh("first")
        sender = connection.create_sender(queue, options=AtLeastOnce())
        delivery = sender.send(Message(body="x"))
        equal(delivery.remote_state, Delivery.ACCEPTED, "outcome")
        receiver = connection.create_receiver(queue, options=AtLeastOnce())
        receiver.receive()
        equal(receiver.link.remote_rcv_settle_mode, Link.RCV_FIRST, "rcv-settle-mode")
        assert not last_delivery(receiver).settled, "settled before it was accepted"
        receiver.accept()


@case("settle mode second, receiving")
def settle_second_receiving():
    with Connection() as connection:
        queue = fresh("second")
        connection.send(queue, "x")
        receiver = connection.create_receiver(
            queue, options=Settle(Link.SND_UNSETTLED, Link.RCV_SECOND))
        receiver.receive()
        equal(receiver.link.remote_rcv_settle_mode, Link.RCV_SECOND, "rcv-settle-mode")
        delivery = last_delivery(receiver)
        delivery.update(Delivery.ACCEPTED)
        connection.until(lambda: delivery.settled, "the broker settles first")
        delivery.settle()
        receiver.fetcher.unsettled.clear()
        receiver.close()
        assert is_empty(connection, queue), "the message is still there"


@case("settle mode second, sending")
def settle_second_sending():
    with Connection() as connection:
        queue = fresh("second")
        sender = connection.create_sender(
            queue, options=Settle(Link.SND_UNSETTLED, Link.RCV_SECOND))
        delivery = sender.link.send(Message(body="x"))
        connection.until(lambda: delivery.remote_state == Delivery.ACCEPTED, "accepted")
        delivery.settle()
        sender.close()
        equal(bodies(connection.create_receiver(queue), 1), ["x"], "bodies")


@case("credit is kept to, one at a time and in lots")
def credit():
    with Connection() as connection:
        queue = fresh("credit")
        connection.send(queue, *range(30))
        receiver = connection.receiver(queue)
        got = 0
        for lot in (1, 1, 3, 10, 5):
            receiver.link.flow(lot)
            got += lot
            connection.until(lambda: receiver.fetcher.has_message == got, f"{got} messages")
            connection.flush()
            equal(receiver.fetcher.has_message, got, "messages received")


@case("drain of an empty queue is answered at once, and credit works afterwards")
def drain_empty():
    with Connection() as connection:
        queue = fresh("drain")
        receiver = connection.receiver(queue, credit=10)
        for _ in range(3):
            started = time.monotonic()
            drain(connection, receiver)
            assert time.monotonic() - started < 2, "the answer took too long"
            equal(receiver.fetcher.has_message, 0, "messages")
            receiver.link.flow(10)
        connection.send(queue, "late")
        equal(bodies(receiver, 1), ["late"], "bodies")


@case("drain delivers what is there and uses up the rest of the credit")
def drain_partly():
    with Connection() as connection:
        queue = fresh("drain")
        connection.send(queue, "a", "b", "c")
        receiver = connection.receiver(queue)
        receiver.link.drain(10)
        connection.until(lambda: receiver.link.credit == 0, "drain answered")
        equal(receiver.fetcher.has_message, 3, "messages")
        equal(bodies(receiver, 3), ["a", "b", "c"], "bodies")
        connection.send(queue, "d")
        receiver.link.flow(1)
        equal(bodies(receiver, 1), ["d"], "bodies")


@case("receive with a timeout on an empty queue")
def receive_timeout():
    with Connection() as connection:
        receiver = connection.create_receiver(fresh())
        try:
            receiver.receive(timeout=0.2)
            raise AssertionError("something came")
        except Timeout:
            pass


@case("released messages come again, in their old place, not counted as failed")
def released():
    with Connection() as connection:
        queue = fresh("released")
        connection.send(queue, "a", "b", "c")
        receiver = connection.receiver(queue, credit=2)
        equal([receiver.receive().body for _ in range(2)], ["a", "b"], "first deliveries")
        for delivery in list(receiver.fetcher.unsettled):
            delivery.update(Delivery.RELEASED)
            delivery.settle()
        receiver.fetcher.unsettled.clear()
        receiver.close()
        receiver = connection.create_receiver(queue)
        for body in ("a", "b", "c"):
            message = receiver.receive()
            equal((message.body, message.delivery_count), (body, 0), "body, delivery-count")
            accept(receiver)


@case("modified with delivery-failed counts, and annotations are merged")
def modified():
    with Connection() as connection:
        queue = fresh("modified")
        sender = connection.create_sender(queue)
        sender.send(Message(body="a", annotations={symbol("x-opt-kept"): 1, symbol("x-opt-old"): 1}))
        receiver = connection.create_receiver(queue)
        for count in range(3):
            message = receiver.receive()
            equal(message.delivery_count, count, "delivery-count")
            assert count == 0 or not message.first_acquirer, "first-acquirer on a redelivery"
            delivery = last_delivery(receiver)
            delivery.local.failed = True
            delivery.local.annotations = {symbol("x-opt-old"): 2, symbol("x-opt-new"): "n"}
            delivery.update(Delivery.MODIFIED)
            delivery.settle()
            receiver.fetcher.unsettled.clear()
        message = receiver.receive()
        equal(message.body, "a", "body")
        equal(message.annotations, {"x-opt-kept": 1, "x-opt-old": 2, "x-opt-new": "n"},
              "annotations")
        receiver.accept()


@case("modified with undeliverable-here goes to another consumer")
def undeliverable_here():
    with Connection() as connection:
        queue = fresh("undeliverable")
        connection.send(queue, "a")
        picky = connection.receiver(queue, credit=5)
        picky.receive()
        delivery = last_delivery(picky)
        delivery.local.undeliverable = True
        delivery.update(Delivery.MODIFIED)
        delivery.settle()
        picky.fetcher.unsettled.clear()
        drain(connection, picky)
        equal(picky.fetcher.has_message, 0, "messages that came back to the same consumer")
        equal(bodies(connection.create_receiver(queue), 1), ["a"], "bodies")


@case("rejected messages do not come again")
def rejected():
    with Connection() as connection:
        queue = fresh("rejected")
        connection.send(queue, "bad", "good")
        receiver = connection.create_receiver(queue)
        equal(receiver.receive().body, "bad", "body")
        receiver.reject()
        equal(bodies(receiver, 1), ["good"], "bodies")
        receiver.close()
        assert is_empty(connection, queue), "the rejected message is still there"


@case("unsettled messages of a closed link and of a lost connection come again")
def requeued():
    queue = fresh("requeue")
    with Connection() as connection:
        connection.send(queue, "a", "b")
        receiver = connection.receiver(queue, credit=2)
        equal([receiver.receive().body for _ in range(2)], ["a", "b"], "bodies")
        receiver.close()
        receiver = connection.receiver(queue, credit=2)
        equal([receiver.receive().body for _ in range(2)], ["a", "b"], "bodies")
    with Connection() as connection:
        equal(bodies(connection.create_receiver(queue), 2), ["a", "b"], "bodies")


@case("browsing copies and takes nothing")
def browse():
    with Connection() as connection:
        queue = fresh("browse")
        connection.send(queue, *range(20))
        for _ in range(2):
            browser = connection.receiver(queue, credit=30, options=Copy())
            drain(connection, browser)
            equal([browser.receive(timeout=1).body for _ in range(20)], list(range(20)), "browsed")
            browser.close()
        equal(bodies(connection.create_receiver(queue), 20), list(range(20)), "consumed")


@case("anonymous relay")
def anonymous_relay():
    with Connection() as connection:
        assert symbol("ANONYMOUS-RELAY") in (connection.conn.remote_offered_capabilities or []), \
            "ANONYMOUS-RELAY is not offered"
        queues = [fresh("relay") for _ in range(3)]
        receivers = [connection.create_receiver(queue) for queue in queues]
        sender = connection.create_sender(None)
        for number in range(9):
            sender.send(Message(address=queues[number % 3], body=number))
        for index, receiver in enumerate(receivers):
            equal(bodies(receiver, 3), [index, index + 3, index + 6], "bodies")
        try:
            sender.send(Message(body="no address"), timeout=5)
            raise AssertionError("a message without an address was taken")
        except (SendException, LinkException, ConnectionException):
            pass


@case("request and response over a dynamic reply queue")
def request_response():
    with Connection() as client, Connection() as server:
        requests = fresh("requests")
        serving = server.create_receiver(requests)
        answers = server.create_sender(None)
        replies = client.create_receiver(None, dynamic=True)
        reply_to = replies.link.remote_source.address
        assert reply_to, "the dynamic source has no address"
        sender = client.create_sender(requests)
        for number in range(10):
            sender.send(Message(body=f"request {number}", reply_to=reply_to, correlation_id=number))
            request = serving.receive()
            serving.accept()
            answers.send(Message(address=request.reply_to, body=request.body.upper(),
                                 correlation_id=request.correlation_id))
            reply = replies.receive()
            replies.accept()
            equal((reply.body, reply.correlation_id), (f"REQUEST {number}", number), "reply")
        replies.close()


@case("sender and receiver with the same link name")
def same_name():
    with Connection() as connection:
        queue, session = fresh("name"), connection.session()
        receiver = connection.receiver_on(session, queue, credit=1, name="same")
        sender = connection.sender_on(session, queue, name="same")
        sender.send(Message(body="x"))
        equal(bodies(receiver, 1), ["x"], "bodies")


@case("an aborted delivery is forgotten")
def aborted():
    with Connection() as connection:
        queue = fresh("aborted")
        sender = connection.create_sender(queue)
        connection.until(lambda: sender.link.credit > 0, "credit")
        half = sender.link.delivery("half")
        sender.link.stream(Message(body=b"x" * 400_000, inferred=True).encode()[:300_000])
        connection.flush()
        half.abort()
        sender.send(Message(body="whole"))
        equal(bodies(connection.create_receiver(queue), 1), ["whole"], "bodies")


@case("a client that vanishes in the middle of a message leaves nothing of it")
def vanished():
    queue = fresh("vanished")
    with Connection() as connection:
        lost = Connection()
        sender = lost.create_sender(queue)
        lost.until(lambda: sender.link.credit > 0, "credit")
        sender.link.delivery("half")
        sender.link.stream(Message(body=b"x" * 400_000, inferred=True).encode()[:300_000])
        lost.flush()
        lost.conn.transport.close_tail()
        lost.conn.transport.close_head()
        connection.send(queue, "whole")
        equal(bodies(connection.create_receiver(queue), 1), ["whole"], "bodies")
        assert is_empty(connection, queue), "half a message is in the queue"


@case("session windows of 1, 2, 7 and 2048 frames, and credit of 1")
def small_windows():
    frame = 1024
    with Connection(max_frame_size=frame) as connection:
        for window in (1, 2, 7, 2048):
            queue = fresh("window")
            session = connection.session(incoming_capacity=window * frame)
            for credit in (1, 10):
                # Proton holds its window until a message is complete: a large one needs room.
                sent = [*range(50), "x" * (20_000 if window * frame > 20_000 else 700)]
                connection.send(queue, *sent)
                receiver = connection.receiver_on(session, queue, credit=credit)
                for body in sent:
                    equal(receiver.receive().body, body, "body")
                    receiver.accept()
                    if not receiver.link.credit:
                        receiver.link.flow(credit)
                receiver.close()


@case("200 links on one session")
def many_links():
    with Connection() as connection:
        session = connection.session()
        names = [fresh("link") for _ in range(100)]
        senders = [connection.sender_on(session, name) for name in names]
        receivers = [connection.receiver_on(session, name, credit=1) for name in names]
        for name, sender in zip(names, senders):
            sender.send(Message(body=name))
        for name, receiver in zip(names, receivers):
            equal(bodies(receiver, 1), [name], "bodies")


@case("competing consumers share, and each message goes to one")
def competing():
    with Connection() as connection:
        queue, count = fresh("compete"), 300
        receivers = [connection.create_receiver(queue, credit=10) for _ in range(3)]
        connection.send(queue, *range(count))
        got = [[] for _ in receivers]
        while sum(map(len, got)) < count:
            connection.until(lambda: any(r.fetcher.has_message for r in receivers), "a message")
            for receiver, mine in zip(receivers, got):
                while receiver.fetcher.has_message:
                    mine.extend(bodies(receiver, 1))
        equal(sorted(sum(got, [])), list(range(count)), "all bodies")
        assert all(len(mine) > count / 10 for mine in got), f"shares are {[len(m) for m in got]}"
        assert all(mine == sorted(mine) for mine in got), "a consumer saw messages out of order"
