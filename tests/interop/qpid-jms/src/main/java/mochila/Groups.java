package mochila;

import static mochila.Suite.equal;
import static mochila.Suite.expect;
import static mochila.Suite.fresh;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Message groups on a queue that has them, and who looks at it. */
final class Groups {
    private final Suite suite;

    Groups(Suite suite) {
        this.suite = suite;
        suite.test("a group is with one consumer at a time", this::oneConsumer);
        suite.test("a group goes on in order where its consumer went", this::inheritance);
        suite.test("browsing groups takes none", this::browse);
        suite.test("browsing with a selector", this::browseSelected);
    }

    private void oneConsumer() throws JMSException {
        Queue queue = grouped("a0", "b0", "a1", "b1");
        Session first = holder();
        Session second = holder();
        MessageConsumer one = first.createConsumer(queue);
        MessageConsumer other = second.createConsumer(queue);
        expect(one, "a0");
        expect(other, "b0");
        expect(one, "a1");
        equal(one.receiveNoWait(), null, "what the one gets while the other has group b");
        expect(other, "b1");
        send(queue, "a2");
        equal(other.receiveNoWait(), null, "what the other gets while the one has group a");
        Message last = Suite.take(one);
        equal(((TextMessage) last).getText(), "a2", "text");
        last.acknowledge();
        // Nobody holds any of it: it is anybody's.
        send(queue, "a3");
        expect(other, "a3");
    }

    private void inheritance() throws JMSException {
        Queue queue = grouped("a0", "a1", "b0", "a2");
        Connection leaving = suite.connect("?jms.prefetchPolicy.all=0");
        MessageConsumer one = holder(leaving).createConsumer(queue);
        MessageConsumer other = holder().createConsumer(queue);
        expect(one, "a0", "a1");
        expect(other, "b0");
        equal(other.receiveNoWait(), null, "what the other gets while the one has group a");
        leaving.close();
        for (String text : List.of("a0", "a1", "a2")) {
            TextMessage message = Suite.take(other);
            equal(message.getText(), text, "text");
            equal(message.getStringProperty("JMSXGroupID"), "a", "group");
        }
    }

    private void browse() throws JMSException {
        Queue queue = grouped("a0", "b0", "a1");
        Session session = suite.session();
        equal(browsed(session.createBrowser(queue)), List.of("a0", "b0", "a1"), "browsed");
        MessageConsumer one = holder().createConsumer(queue);
        MessageConsumer other = holder().createConsumer(queue);
        expect(one, "a0");
        expect(other, "b0");
        expect(one, "a1");
    }

    private void browseSelected() throws JMSException {
        Queue queue = grouped("a0", "b0", "a1", "b1");
        Session session = suite.session();
        QueueBrowser browser = session.createBrowser(queue, "JMSXGroupID = 'b'");
        equal(browsed(browser), List.of("b0", "b1"), "browsed");
        expect(session.createConsumer(queue), "a0", "b0", "a1", "b1");
    }

    private static List<String> browsed(QueueBrowser browser) throws JMSException {
        List<String> seen = new ArrayList<>();
        for (Object message : Collections.list(browser.getEnumeration())) {
            seen.add(((TextMessage) message).getText());
        }
        browser.close();
        return seen;
    }

    /** A session of its own connection that takes what it asks for and settles when it says so. */
    private Session holder() throws JMSException {
        return holder(suite.connect("?jms.prefetchPolicy.all=0"));
    }

    private static Session holder(Connection connection) throws JMSException {
        return connection.createSession(Session.CLIENT_ACKNOWLEDGE);
    }

    /** A new queue with groups, and these texts in it; their first letters are their groups. */
    private Queue grouped(String... texts) throws JMSException {
        Session session = suite.session();
        String name = fresh();
        TemporaryQueue replies = session.createTemporaryQueue();
        MessageConsumer answers = session.createConsumer(replies);
        MapMessage request = session.createMapMessage();
        request.setStringProperty("operation", "CREATE");
        request.setStringProperty("type", "queue");
        request.setStringProperty("name", name);
        request.setJMSReplyTo(replies);
        request.setBoolean("shared-msg-group", true);
        session.createProducer(session.createQueue("$management")).send(request);
        Message answer = answers.receive(Suite.TIMEOUT_MS);
        Suite.check(answer != null, "$management did not answer");
        equal(answer.getIntProperty("statusCode"), 201, "status");
        Queue queue = session.createQueue(name);
        send(queue, texts);
        return queue;
    }

    private void send(Queue queue, String... texts) throws JMSException {
        Session session = suite.session();
        MessageProducer producer = session.createProducer(queue);
        for (String text : texts) {
            Message message = session.createTextMessage(text);
            message.setStringProperty("JMSXGroupID", text.substring(0, 1));
            producer.send(message);
        }
    }
}
