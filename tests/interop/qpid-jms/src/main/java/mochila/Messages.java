package mochila;

import static mochila.Suite.check;
import static mochila.Suite.equal;
import static mochila.Suite.expect;
import static mochila.Suite.filled;
import static mochila.Suite.fresh;
import static mochila.Suite.numbers;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/** What a message is made of: kinds, headers, properties, sizes, time to live. */
final class Messages {
    private final Suite suite;

    Messages(Suite suite) {
        this.suite = suite;
        suite.test("send and receive", this::sendAndReceive);
        suite.test("every kind of message", this::kinds);
        suite.test("all primitive types as properties, stream and map", this::types);
        suite.test("headers", this::headers);
        suite.test("large messages of 10 MB, both ways", this::large);
        suite.test("frames of 512 bytes", this::smallFrames);
        suite.test("ttl expires a message that waits", this::timeToLive);
    }

    @SuppressWarnings("unchecked")
    private static <M extends Message> M roundTrip(Session session, M message) throws JMSException {
        Queue queue = session.createQueue(fresh());
        try (MessageProducer producer = session.createProducer(queue);
                MessageConsumer consumer = session.createConsumer(queue)) {
            producer.send(message);
            Message received = consumer.receive(Suite.TIMEOUT_MS);
            check(received != null, "nothing came");
            return (M) received;
        }
    }

    private void sendAndReceive() throws JMSException {
        Session session = suite.session();
        expect(session.createConsumer(filled(session, "a", "b", "c")), "a", "b", "c");
    }

    private void kinds() throws JMSException {
        Session session = suite.session();
        check(roundTrip(session, session.createMessage()) instanceof Message, "message");
        for (String text : new String[] {"", "sëlla \uD83D\uDC0E", "x".repeat(100_000), null}) {
            equal(roundTrip(session, session.createTextMessage(text)).getText(), text, "text");
        }
        ArrayList<String> object = new ArrayList<>(List.of("one", "two"));
        ObjectMessage received = roundTrip(session, session.createObjectMessage(object));
        equal(received.getObject(), object, "object");
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(new byte[] {0, 1, -1});
        BytesMessage back = roundTrip(session, bytes);
        equal(back.getBodyLength(), 3L, "length");
        back.readByte();
        back.readByte();
        equal(back.readByte(), (byte) -1, "byte");
    }

    private void types() throws JMSException {
        Session session = suite.session();
        List<Object> values = Arrays.asList(true, false, Byte.MIN_VALUE, Short.MIN_VALUE,
                Integer.MIN_VALUE, -1, 0, 1, 300, Long.MIN_VALUE, -1L, 0L, 1L, 300L, 1.5f, Math.PI,
                "", "text", "x".repeat(300));
        Message sent = session.createMessage();
        MapMessage map = session.createMapMessage();
        StreamMessage stream = session.createStreamMessage();
        for (int index = 0; index < values.size(); index++) {
            sent.setObjectProperty("p" + index, values.get(index));
            map.setObject("p" + index, values.get(index));
            stream.writeObject(values.get(index));
        }
        map.setChar("char", 'c');
        map.setBytes("bytes", new byte[] {1, 2, 3});
        Message received = roundTrip(session, sent);
        MapMessage receivedMap = roundTrip(session, map);
        StreamMessage receivedStream = roundTrip(session, stream);
        for (int index = 0; index < values.size(); index++) {
            equal(received.getObjectProperty("p" + index), values.get(index), "property");
            equal(receivedMap.getObject("p" + index), values.get(index), "map entry");
            equal(receivedStream.readObject(), values.get(index), "stream element");
        }
        equal(receivedMap.getChar("char"), 'c', "char");
        check(Arrays.equals(receivedMap.getBytes("bytes"), new byte[] {1, 2, 3}), "bytes");
    }

    private void headers() throws JMSException {
        Session session = suite.session();
        Queue queue = session.createQueue(fresh());
        Queue replies = session.createQueue(fresh());
        TextMessage sent = session.createTextMessage("x");
        sent.setJMSCorrelationID("correlation");
        sent.setJMSType("type");
        sent.setJMSReplyTo(replies);
        sent.setStringProperty("JMSXGroupID", "group");
        sent.setIntProperty("JMSXGroupSeq", 7);
        long before = System.currentTimeMillis();
        session.createProducer(queue).send(sent, DeliveryMode.NON_PERSISTENT, 9, 60_000);
        Message received = session.createConsumer(queue).receive(Suite.TIMEOUT_MS);
        equal(received.getJMSMessageID(), sent.getJMSMessageID(), "message id");
        equal(received.getJMSCorrelationID(), "correlation", "correlation id");
        equal(received.getJMSType(), "type", "type");
        equal(received.getJMSReplyTo(), replies, "reply to");
        equal(received.getJMSDestination(), queue, "destination");
        equal(received.getJMSPriority(), 9, "priority");
        equal(received.getJMSDeliveryMode(), DeliveryMode.NON_PERSISTENT, "delivery mode");
        equal(received.getJMSRedelivered(), false, "redelivered");
        equal(received.getIntProperty("JMSXDeliveryCount"), 1, "delivery count");
        equal(received.getStringProperty("JMSXGroupID"), "group", "group");
        equal(received.getIntProperty("JMSXGroupSeq"), 7, "group sequence");
        long expires = received.getJMSExpiration() - before;
        check(expires >= 60_000 && expires < 90_000, "expires in " + expires + " ms");
        Message lasting = roundTrip(session, session.createTextMessage("x"));
        equal(lasting.getJMSDeliveryMode(), DeliveryMode.PERSISTENT, "delivery mode");
        equal(lasting.getJMSExpiration(), 0L, "expiration");
        equal(lasting.getJMSPriority(), 4, "priority");
    }

    private void large() throws Exception {
        byte[] body = new byte[10_000_000];
        new Random(1).nextBytes(body);
        Session session = suite.session();
        BytesMessage sent = session.createBytesMessage();
        sent.writeBytes(body);
        BytesMessage received = roundTrip(session, sent);
        byte[] back = new byte[(int) received.getBodyLength()];
        received.readBytes(back);
        check(MessageDigest.isEqual(digest(back), digest(body)), "the digests differ");
    }

    private static byte[] digest(byte[] bytes) throws Exception {
        return MessageDigest.getInstance("SHA-256").digest(bytes);
    }

    private void smallFrames() throws JMSException {
        Session session = Suite.session(suite.connect("?amqp.maxFrameSize=512"));
        for (int size : new int[] {0, 1, 300, 350, 400, 450, 500, 512, 1024, 100_000}) {
            String text = String.join("", Collections.nCopies(size, "x"));
            equal(roundTrip(session, session.createTextMessage(text)).getText(), text, "text");
        }
    }

    private void timeToLive() throws Exception {
        Session session = suite.session();
        Queue queue = session.createQueue(fresh());
        MessageProducer producer = session.createProducer(queue);
        producer.setTimeToLive(300);
        producer.send(session.createTextMessage("short"));
        producer.setTimeToLive(60_000);
        producer.send(session.createTextMessage("long"));
        Thread.sleep(800);
        MessageConsumer consumer = session.createConsumer(queue);
        expect(consumer, "long");
        equal(consumer.receiveNoWait(), null, "what is left");
        expect(session.createConsumer(filled(session, numbers(3))), numbers(3));
    }
}
