"""$management with AMQP's own request and response, and the queue settings that it makes possible."""

from proton import Delivery, Message

from harness import Connection, bodies, case, equal, fresh


class Management:
    """Asks $management over one connection."""

    def __init__(self, connection):
        self.replies = connection.create_receiver(None, dynamic=True)
        self.requests = connection.create_sender("$management")

    def ask(self, operation, kind, name=None, body=None, expected=200):
        properties = {"operation": operation, "type": kind}
        if operation == "QUERY":
            properties = {"operation": operation, "entityType": kind}
        if name:
            properties["name"] = name
        self.requests.send(Message(
            reply_to=self.replies.link.remote_source.address, correlation_id=operation,
            properties=properties, body=body or {}))
        reply = self.replies.receive()
        self.replies.accept()
        equal(reply.correlation_id, operation, "correlation-id")
        status = reply.properties["statusCode"]
        assert status == expected, f"{status}: {reply.properties.get('statusDescription')}"
        return reply.body


def results(answer):
    return [dict(zip(answer["attributeNames"], values)) for values in answer["results"]]


@case("management: create, read, update, query, purge and delete a queue")
def life_of_a_queue():
    with Connection() as connection:
        management, queue = Management(connection), fresh("managed")
        management.ask("READ", "queue", queue, expected=404)
        management.ask("CREATE", "queue", queue, {"max-count": 10}, expected=201)
        management.ask("CREATE", "queue", queue, expected=409)
        connection.send(queue, "a", "b", "c")
        read = management.ask("READ", "queue", queue)
        equal((read["max-count"], read["msgDepth"], read["msgTotalEnqueues"]), (10, 3, 3), "read")
        management.ask("UPDATE", "queue", queue, {"max-count": 20})
        queried = management.ask("QUERY", "queue", body={"attributeNames": ["name", "max-count"]})
        assert {"name": queue, "max-count": 20} in results(queried), "not among the queues"
        management.ask("DELETE", "queue", queue, {"if_empty": True}, expected=409)
        equal(management.ask("PURGE", "queue", queue)["purged"], 3, "purged")
        management.ask("DELETE", "queue", queue, expected=204)
        management.ask("DELETE", "queue", queue, expected=404)


@case("management: the connection sees itself among connections, sessions and links")
def itself():
    with Connection(container_id=fresh("container")) as connection:
        management = Management(connection)
        mine = [entity for entity in results(management.ask("QUERY", "connection"))
                if entity["container"] == connection.conn.container]
        equal(len(mine), 1, "connections of this container")
        assert results(management.ask("QUERY", "session")), "no session"
        assert results(management.ask("QUERY", "link")), "no link"
        equal(results(management.ask("QUERY", "broker"))[0]["product"], "mochila", "product")


@case("a queue that rejects at its limit says so, and takes again when there is room")
def limit_rejects():
    with Connection() as connection:
        queue = fresh("limit")
        settings = {"max-count": 3, "flow-stop-count": 0, "limit-policy": "reject"}
        Management(connection).ask("CREATE", "queue", queue, settings, expected=201)
        sender = connection.create_sender(queue)
        outcomes = [sender.send(Message(body=n), error_states=[]).remote_state for n in range(3)]
        equal(outcomes, [Delivery.ACCEPTED] * 3, "outcomes")
        refused = sender.send(Message(body="too many"), error_states=[])
        equal(refused.remote_state, Delivery.REJECTED, "outcome")
        assert "limit" in str(refused.remote.condition), f"condition {refused.remote.condition}"
        receiver = connection.create_receiver(queue)
        equal(bodies(receiver, 1), [0], "bodies")
        connection.flush()  # Proton writes transfers before dispositions
        equal(sender.send(Message(body=3)).remote_state, Delivery.ACCEPTED, "outcome")
        equal(bodies(receiver, 3), [1, 2, 3], "bodies")


@case("a deleted queue detaches its links with an error")
def deleted_under_links():
    with Connection() as connection, Connection() as other:
        queue = fresh("deleted")
        receiver = other.receiver(queue, credit=1)
        Management(connection).ask("DELETE", "queue", queue, expected=204)
        try:
            receiver.receive(timeout=10)
        except Exception as error:  # LinkDetached is not exported by every version
            equal(getattr(error, "condition", None), "amqp:resource-deleted", "condition")
            return
        raise AssertionError("the receiver goes on")
