package mochila;

import static mochila.Suite.check;
import static mochila.Suite.equal;
import static mochila.Suite.expect;
import static mochila.Suite.filled;
import static mochila.Suite.fresh;
import static mochila.Suite.numbers;
import static mochila.Suite.take;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;

/** Transacted sessions. */
final class Transactions {
    private final Suite suite;

    Transactions(Suite suite) {
        this.suite = suite;
        suite.test("transacted: sent with the commit, and not at all with a rollback", this::sent);
        suite.test("transacted: received with the commit", this::received);
        suite.test("transacted: a rollback brings messages again, in order and marked", this::receivedInVain);
        suite.test("transacted: a message moves from queue to queue", this::moved);
        suite.test("transacted: a consumer is closed before the commit", this::closedBefore);
        suite.test("transacted: a session is closed without commit", this::closedWithout);
        suite.test("transacted: a thousand messages in batches", this::batches);
    }

    private static Session transacted(Connection connection) throws JMSException {
        return connection.createSession(true, Session.SESSION_TRANSACTED);
    }

    private static void nothing(Connection connection, Queue queue) throws JMSException {
        try (Session session = Suite.session(connection);
                MessageConsumer consumer = session.createConsumer(queue)) {
            check(consumer.receiveNoWait() == null, "a message is there");
        }
    }

    private void sent() throws JMSException {
        Connection connection = suite.connect();
        Session session = transacted(connection);
        Queue queue = session.createQueue(fresh());
        MessageProducer producer = session.createProducer(queue);
        producer.send(session.createTextMessage("lost"));
        session.rollback();
        producer.send(session.createTextMessage("a"));
        producer.send(session.createTextMessage("b"));
        nothing(connection, queue);
        session.commit();
        expect(Suite.session(connection).createConsumer(queue), "a", "b");
    }

    private void received() throws JMSException {
        Connection connection = suite.connect();
        Session session = transacted(connection);
        Queue queue = filled(Suite.session(connection), "a", "b", "c");
        expect(session.createConsumer(queue), "a", "b");
        session.commit();
        session.close();
        expect(Suite.session(connection).createConsumer(queue), "c");
        nothing(connection, queue);
    }

    private void receivedInVain() throws JMSException {
        Connection connection = suite.connect();
        Session session = transacted(connection);
        Queue queue = filled(Suite.session(connection), "a", "b", "c", "d");
        MessageConsumer consumer = session.createConsumer(queue);
        expect(consumer, "a", "b");
        session.rollback();
        for (String text : new String[] {"a", "b"}) {
            TextMessage message = take(consumer);
            equal(message.getText(), text, "text");
            check(message.getJMSRedelivered(), text + " does not say that it comes again");
            equal(message.getIntProperty("JMSXDeliveryCount"), 2, "delivery count");
        }
        TextMessage message = take(consumer);
        equal(message.getText(), "c", "text");
        session.commit();
        expect(consumer, "d");
        session.commit();
        session.close();
        nothing(connection, queue);
    }

    private void moved() throws JMSException {
        Connection connection = suite.connect();
        Queue from = filled(Suite.session(connection), "a");
        Session session = transacted(connection);
        Queue to = session.createQueue(fresh());
        MessageConsumer consumer = session.createConsumer(from);
        MessageProducer producer = session.createProducer(to);
        producer.send(take(consumer));
        session.rollback();
        nothing(connection, to);
        producer.send(take(consumer));
        session.commit();
        nothing(connection, from);
        expect(Suite.session(connection).createConsumer(to), "a");
    }

    private void closedBefore() throws JMSException {
        Connection connection = suite.connect();
        Session session = transacted(connection);
        Queue queue = filled(Suite.session(connection), "a", "b");
        MessageConsumer consumer = session.createConsumer(queue);
        expect(consumer, "a");
        consumer.close();
        session.commit();
        session.close();
        expect(Suite.session(connection).createConsumer(queue), "b");
    }

    private void closedWithout() throws JMSException {
        Connection connection = suite.connect();
        Session session = transacted(connection);
        Queue queue = filled(Suite.session(connection), "a");
        expect(session.createConsumer(queue), "a");
        session.createProducer(queue).send(session.createTextMessage("b"));
        session.close();
        expect(Suite.session(connection).createConsumer(queue), "a");
        nothing(connection, queue);
    }

    private void batches() throws JMSException {
        Connection connection = suite.connect();
        Session session = transacted(connection);
        Queue queue = session.createQueue(fresh());
        MessageProducer producer = session.createProducer(queue);
        String[] texts = numbers(1000);
        for (int number = 0; number < texts.length; number++) {
            producer.send(session.createTextMessage(texts[number]));
            if (number % 100 == 99) {
                session.commit();
            }
        }
        Session other = transacted(connection);
        MessageConsumer consumer = other.createConsumer(queue);
        for (int number = 0; number < texts.length; number++) {
            equal(take(consumer).getText(), texts[number], "text");
            if (number % 100 == 99) {
                other.commit();
            }
        }
        other.close();
        nothing(connection, queue);
    }
}
