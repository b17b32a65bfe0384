"""Transactions: declared, used and discharged by Proton's reactor."""

from proton import Message
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container

from harness import TIMEOUT_S, URL, Connection, bodies, case, equal, fresh, is_empty


class Script(MessagingHandler, TransactionHandler):
    """One connection; `run` calls the steps one after the other, each when the one before is over.

    A step is a generator that yields what it waits for: the name of an event.
    """

    def __init__(self, steps, settle_before_discharge=False):
        super().__init__(prefetch=0, auto_accept=False, auto_settle=False)
        self.steps, self.settle_before_discharge = steps, settle_before_discharge
        self.transaction, self.inbox, self.outcomes, self.failure = None, [], [], None
        self.waits_for = None

    def run(self):
        container = Container(self)
        container.timeout = TIMEOUT_S
        container.run()
        if self.failure:
            raise self.failure

    def on_start(self, event):
        self.container = event.container
        self.connection = event.container.connect(URL, reconnect=False)
        self.timer = event.container.schedule(TIMEOUT_S, self)
        self.script = self.steps(self)
        self.waits_for = next(self.script)

    def on_connection_opened(self, event):
        self.go_on("opened")

    def on_timer_task(self, event):
        self.stop(AssertionError(f"nothing came of waiting for {self.waits_for}"))

    def go_on(self, happened):
        if self.waits_for != happened:
            return
        try:
            self.waits_for = next(self.script)
        except StopIteration:
            self.stop(None)
        except Exception as error:
            self.stop(error)

    def stop(self, failure):
        self.failure = self.failure or failure
        self.timer.cancel()
        self.connection.close()

    def declare(self):
        self.container.declare_transaction(
            self.connection, handler=self,
            settle_before_discharge=self.settle_before_discharge)
        return "declared"

    def on_transaction_declared(self, event):
        self.transaction = event.transaction
        self.go_on("declared")

    def on_transaction_declare_failed(self, event):
        self.stop(AssertionError("the transaction was not declared"))

    def on_transaction_committed(self, event):
        self.go_on("committed")

    def on_transaction_aborted(self, event):
        self.go_on("aborted")

    def on_transaction_commit_failed(self, event):
        self.go_on("commit failed")

    def on_sendable(self, event):
        self.go_on("sendable")

    def on_message(self, event):
        self.inbox.append((event.message.body, event.delivery))
        self.go_on(f"{len(self.inbox)} messages")

    def on_settled(self, event):
        self.outcomes.append(event.delivery.remote_state)

    def on_link_error(self, event):
        self.stop(AssertionError(f"a link was closed: {event.link.remote_condition}"))


@case("transaction committed: what was sent is there")
def committed():
    queue = fresh("tx")

    def steps(self):
        yield "opened"
        sender = self.container.create_sender(self.connection, queue)
        yield "sendable"
        yield self.declare()
        for body in ("a", "b"):
            self.transaction.send(sender, Message(body=body))
        self.transaction.commit()
        yield "committed"

    Script(steps).run()
    with Connection() as connection:
        equal(bodies(connection.create_receiver(queue), 2), ["a", "b"], "bodies")


@case("transaction aborted: what was sent was never there")
def aborted():
    queue = fresh("tx")

    def steps(self):
        yield "opened"
        sender = self.container.create_sender(self.connection, queue)
        yield "sendable"
        yield self.declare()
        self.transaction.send(sender, Message(body="a"))
        self.transaction.abort()
        yield "aborted"

    Script(steps).run()
    with Connection() as connection:
        assert is_empty(connection, queue), "it is there"


def retire(queue, settle_before_discharge, ending):
    """Accepts three messages in a transaction, and ends it."""
    def steps(self):
        yield "opened"
        receiver = self.container.create_receiver(self.connection, queue)
        receiver.flow(3)
        yield "3 messages"
        yield self.declare()
        for _, delivery in self.inbox:
            self.transaction.accept(delivery)
        if ending == "committed":
            self.transaction.commit()
        else:
            self.transaction.abort()
        yield ending

    Script(steps, settle_before_discharge).run()


@case("transaction committed: what was accepted is gone")
def accepted():
    for settle_before_discharge in (False, True):
        queue = fresh("tx")
        with Connection() as connection:
            connection.send(queue, "a", "b", "c")
            retire(queue, settle_before_discharge, "committed")
            assert is_empty(connection, queue), "a message is left"


@case("transaction aborted: what was accepted is there again, in order")
def accepted_in_vain():
    for settle_before_discharge in (False, True):
        queue = fresh("tx")
        with Connection() as connection:
            connection.send(queue, "a", "b", "c")
            retire(queue, settle_before_discharge, "aborted")
            equal(bodies(connection.create_receiver(queue), 3), ["a", "b", "c"], "bodies")


@case("transaction: a message moves from queue to queue")
def moved():
    source, target = fresh("from"), fresh("to")

    def steps(self):
        yield "opened"
        receiver = self.container.create_receiver(self.connection, source)
        receiver.flow(1)
        yield "1 messages"
        sender = self.container.create_sender(self.connection, target)
        yield "sendable"
        yield self.declare()
        body, delivery = self.inbox[0]
        self.transaction.send(sender, Message(body=body))
        self.transaction.accept(delivery)
        self.transaction.commit()
        yield "committed"

    with Connection() as connection:
        connection.send(source, "x")
        Script(steps).run()
        assert is_empty(connection, source), "it is still there"
        equal(bodies(connection.create_receiver(target), 1), ["x"], "bodies")


@case("transactions follow one another on a connection")
def one_after_the_other():
    queue = fresh("tx")

    def steps(self):
        yield "opened"
        sender = self.container.create_sender(self.connection, queue)
        yield "sendable"
        for number in range(10):
            yield self.declare()
            self.transaction.send(sender, Message(body=number))
            if number % 2:
                self.transaction.abort()
                yield "aborted"
            else:
                self.transaction.commit()
                yield "committed"

    Script(steps).run()
    with Connection() as connection:
        equal(bodies(connection.create_receiver(queue), 5), [0, 2, 4, 6, 8], "bodies")


@case("transaction lost with its connection is rolled back")
def lost():
    queue = fresh("tx")

    def steps(self):
        yield "opened"
        receiver = self.container.create_receiver(self.connection, queue)
        receiver.flow(1)
        yield "1 messages"
        sender = self.container.create_sender(self.connection, queue)
        yield "sendable"
        yield self.declare()
        self.transaction.send(sender, Message(body="y"))
        delivery = self.inbox[0][1]
        self.transaction.accept(delivery)
        equal(delivery.local_state, 0x34, "state")

    with Connection() as connection:
        connection.send(queue, "x")
        Script(steps, settle_before_discharge=True).run()
        receiver = connection.create_receiver(queue)
        equal(bodies(receiver, 1), ["x"], "bodies")
        receiver.close()
        assert is_empty(connection, queue), "what was sent in it is there"
