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
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** How messages are taken: drain, prefetch, acknowledgement, browsing, temporary queues. */
final class Consumers {
    private final Suite suite;

    Consumers(Suite suite) {
        this.suite = suite;
        suite.test("receive(timeout) and receiveNoWait on an empty queue", this::drainEmpty);
        suite.test("receiveNoWait finds what is there", this::drainPartly);
        suite.test("prefetch of 0, 1 and 1000", this::prefetch);
        suite.test("presettled in and out", this::presettled);
        suite.test("a listener gets 5,000 messages in order", this::listener);
        suite.test("messages not acknowledged come again", this::redelivery);
        suite.test("recover delivers again", this::recover);
        suite.test("rejected by the redelivery policy", this::rejected);
        suite.test("browsing takes nothing", this::browse);
        suite.test("anonymous producer", this::anonymous);
        suite.test("request and response over a temporary queue", this::requestResponse);
        suite.test("a temporary queue is used, deleted, and left to its end", this::temporary);
        suite.test("100 consumers and producers on one session", this::manyLinks);
        suite.test("competing consumers share", this::competing);
    }

    private void drainEmpty() throws JMSException {
        Session session = suite.session();
        Queue queue = session.createQueue(fresh());
        MessageConsumer consumer = session.createConsumer(queue);
        for (int round = 0; round < 3; round++) {
            equal(consumer.receive(100), null, "received");
            equal(consumer.receiveNoWait(), null, "received");
        }
        session.createProducer(queue).send(session.createTextMessage("late"));
        expect(consumer, "late");
    }

    private void drainPartly() throws JMSException {
        Session session = suite.session();
        MessageConsumer consumer = session.createConsumer(filled(session, "a", "b"));
        for (String text : new String[] {"a", "b"}) {
            TextMessage message = (TextMessage) consumer.receiveNoWait();
            check(message != null, "nothing came, though " + text + " is there");
            equal(message.getText(), text, "text");
        }
        equal(consumer.receiveNoWait(), null, "what is left");
    }

    private void prefetch() throws JMSException {
        for (int credit : new int[] {0, 1, 1000}) {
            Session session = Suite.session(suite.connect("?jms.prefetchPolicy.all=" + credit));
            MessageConsumer consumer = session.createConsumer(filled(session, numbers(100)));
            expect(consumer, numbers(100));
            equal(consumer.receiveNoWait(), null, "what is left");
            consumer.close();
        }
    }

    private void presettled() throws JMSException {
        Session session = Suite.session(suite.connect("?jms.presettlePolicy.presettleAll=true"));
        Queue queue = filled(session, numbers(50));
        MessageConsumer consumer = session.createConsumer(queue);
        expect(consumer, numbers(50));
        consumer.close();
        equal(session.createConsumer(queue).receiveNoWait(), null, "what is left");
    }

    private void listener() throws Exception {
        int count = 5000;
        Session session = suite.session();
        Queue queue = session.createQueue(fresh());
        List<String> received = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch all = new CountDownLatch(count);
        session.createConsumer(queue).setMessageListener(message -> {
            try {
                received.add(((TextMessage) message).getText());
            } catch (JMSException unreadable) {
                received.add(unreadable.toString());
            }
            all.countDown();
        });
        Session sending = Suite.session(suite.connect("?jms.forceAsyncSend=true"));
        MessageProducer producer = sending.createProducer(queue);
        for (String text : numbers(count)) {
            producer.send(sending.createTextMessage(text));
        }
        check(all.await(30, TimeUnit.SECONDS), received.size() + " of " + count + " came");
        equal(received, Arrays.asList(numbers(count)), "texts");
    }

    private void redelivery() throws JMSException {
        Connection connection = suite.connect();
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = filled(session, "a", "b", "c");
        MessageConsumer consumer = session.createConsumer(queue);
        expect(consumer, "a", "b");
        connection.close();
        Session next = suite.connect().createSession(Session.CLIENT_ACKNOWLEDGE);
        consumer = next.createConsumer(queue);
        TextMessage last = null;
        for (String text : new String[] {"a", "b", "c"}) {
            last = take(consumer);
            equal(last.getText(), text, "text");
        }
        last.acknowledge();
        next.close();
        equal(suite.session().createConsumer(queue).receiveNoWait(), null, "what is left");
    }

    private void recover() throws JMSException {
        Session session = suite.connect().createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(filled(session, "a", "b"));
        expect(consumer, "a", "b");
        session.recover();
        TextMessage again = take(consumer);
        equal(again.getText(), "a", "text");
        check(again.getJMSRedelivered(), "not marked as redelivered");
        equal(again.getIntProperty("JMSXDeliveryCount"), 2, "delivery count");
        take(consumer).acknowledge();
        equal(consumer.receiveNoWait(), null, "what is left");
    }

    private void rejected() throws JMSException {
        Connection connection = suite.connect(
                "?jms.redeliveryPolicy.maxRedeliveries=1&jms.redeliveryPolicy.outcome=REJECTED");
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = filled(session, "bad");
        MessageConsumer consumer = session.createConsumer(queue);
        for (int round = 0; round < 2; round++) {
            expect(consumer, "bad");
            session.recover();
        }
        equal(consumer.receive(300), null, "received after the last try");
        connection.close();
        equal(suite.session().createConsumer(queue).receiveNoWait(), null, "what is left");
    }

    private void browse() throws JMSException {
        Session session = suite.session();
        Queue queue = filled(session, numbers(30));
        for (int round = 0; round < 2; round++) {
            QueueBrowser browser = session.createBrowser(queue);
            List<String> seen = new ArrayList<>();
            for (Object message : Collections.list(browser.getEnumeration())) {
                seen.add(((TextMessage) message).getText());
            }
            equal(seen, Arrays.asList(numbers(30)), "browsed");
            browser.close();
        }
        expect(session.createConsumer(queue), numbers(30));
    }

    private void anonymous() throws JMSException {
        Session session = suite.session();
        MessageProducer producer = session.createProducer(null);
        Queue[] queues = {session.createQueue(fresh()), session.createQueue(fresh())};
        for (int number = 0; number < 4; number++) {
            producer.send(queues[number % 2], session.createTextMessage("message " + number));
        }
        expect(session.createConsumer(queues[0]), "message 0", "message 2");
        expect(session.createConsumer(queues[1]), "message 1", "message 3");
    }

    private void requestResponse() throws JMSException {
        Session client = suite.session();
        Session server = suite.session();
        Queue requests = client.createQueue(fresh());
        MessageConsumer serving = server.createConsumer(requests);
        MessageProducer answers = server.createProducer(null);
        TemporaryQueue replies = client.createTemporaryQueue();
        MessageConsumer replied = client.createConsumer(replies);
        MessageProducer producer = client.createProducer(requests);
        for (String text : numbers(10)) {
            TextMessage sent = client.createTextMessage(text);
            sent.setJMSReplyTo(replies);
            producer.send(sent);
            TextMessage request = take(serving);
            TextMessage answer = server.createTextMessage(request.getText().toUpperCase());
            answer.setJMSCorrelationID(request.getJMSMessageID());
            answers.send(request.getJMSReplyTo(), answer);
            TextMessage reply = take(replied);
            equal(reply.getText(), text.toUpperCase(), "reply");
            equal(reply.getJMSCorrelationID(), sent.getJMSMessageID(), "correlation id");
        }
    }

    private void temporary() throws JMSException {
        Connection owner = suite.connect();
        Session session = Suite.session(owner);
        TemporaryQueue deleted = session.createTemporaryQueue();
        TemporaryQueue closed = session.createTemporaryQueue();
        check(!deleted.getQueueName().equals(closed.getQueueName()), "two queues of one name");
        MessageConsumer consumer = session.createConsumer(deleted);
        session.createProducer(deleted).send(session.createTextMessage("x"));
        expect(consumer, "x");
        consumer.close();
        deleted.delete();
        Session other = suite.session();
        other.createProducer(closed).send(other.createTextMessage("y"));
        owner.close();
        equal(other.createConsumer(filled(other)).receiveNoWait(), null, "received");
    }

    private void manyLinks() throws JMSException {
        Session session = suite.session();
        List<MessageConsumer> consumers = new ArrayList<>();
        for (int number = 0; number < 100; number++) {
            Queue queue = session.createQueue(fresh());
            session.createProducer(queue).send(session.createTextMessage("message " + number));
            consumers.add(session.createConsumer(queue));
        }
        for (int number = 0; number < 100; number++) {
            expect(consumers.get(number), "message " + number);
        }
    }

    private void competing() throws JMSException {
        Connection connection = suite.connect("?jms.prefetchPolicy.all=5");
        Session session = Suite.session(connection);
        Queue queue = session.createQueue(fresh());
        MessageConsumer[] consumers = new MessageConsumer[3];
        for (int index = 0; index < consumers.length; index++) {
            consumers[index] = Suite.session(connection).createConsumer(queue);
        }
        MessageProducer producer = session.createProducer(queue);
        for (String text : numbers(90)) {
            producer.send(session.createTextMessage(text));
        }
        List<String> received = new ArrayList<>();
        long end = System.currentTimeMillis() + Suite.TIMEOUT_MS;
        while (received.size() < 90 && System.currentTimeMillis() < end) {
            for (MessageConsumer consumer : consumers) {
                Message message = consumer.receive(50);
                if (message != null) {
                    received.add(((TextMessage) message).getText());
                }
            }
        }
        Collections.sort(received);
        List<String> expected = new ArrayList<>(Arrays.asList(numbers(90)));
        Collections.sort(expected);
        equal(received, expected, "texts");
    }
}
