package mochila;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Cases, connections and queues for the Qpid JMS suite. */
final class Suite {
    static final long TIMEOUT_MS = 15_000;
    static final String USER = System.getenv("AMQP_USER");
    static final String PASSWORD = System.getenv("AMQP_PASSWORD");
    static final String OPEN = "amqp://127.0.0.1:" + System.getenv("AMQP_PORT");
    static final String GUARDED = "amqp://127.0.0.1:" + System.getenv("AMQP_AUTH_PORT");

    private static final BufferedReader ANSWERS = new BufferedReader(new InputStreamReader(System.in));
    private static final AtomicInteger SERIAL = new AtomicInteger();

    private final Map<String, Case> cases = new LinkedHashMap<>();
    private final List<Connection> opened = new ArrayList<>();

    /** What one case does; whatever it throws is its failure. */
    interface Case {
        void run() throws Exception;
    }

    void test(String name, Case run) {
        cases.put(name, run);
    }

    /** Runs every case, or those whose name contains an argument. */
    void runAll(List<String> filters) {
        ExecutorService runner = Executors.newCachedThreadPool(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });
        cases.forEach((name, run) -> {
            if (filters.isEmpty() || filters.stream().anyMatch(name::contains)) {
                System.out.println("case " + name);
                System.out.println(verdict(runner, name, run));
                closeAll();
            }
        });
        System.out.println("done");
        System.exit(0);
    }

    private String verdict(ExecutorService runner, String name, Case run) {
        try {
            runner.submit(() -> {
                run.run();
                return null;
            }).get(60, TimeUnit.SECONDS);
            return "ok " + name;
        } catch (ExecutionException failed) {
            failed.getCause().printStackTrace();
            return "fail " + name + " # " + String.valueOf(failed.getCause()).replaceAll("\\s+", " ");
        } catch (Exception stuck) {
            return "fail " + name + " # nothing within 60 s";
        }
    }

    private void closeAll() {
        for (Connection connection : opened) {
            try {
                connection.close();
            } catch (JMSException alreadyGone) {
                alreadyGone.printStackTrace();
            }
        }
        opened.clear();
    }

    static void restartBroker(boolean kill) throws Exception {
        System.out.println(kill ? "@restart kill" : "@restart");
        equal(ANSWERS.readLine(), "restarted", "answer");
    }

    /** A started connection; `options` is the query part of the URI. */
    Connection connect(String options) throws JMSException {
        return started(new JmsConnectionFactory(OPEN + options).createConnection());
    }

    Connection connect() throws JMSException {
        return connect("");
    }

    Connection started(Connection connection) throws JMSException {
        opened.add(connection);
        connection.start();
        return connection;
    }

    Session session() throws JMSException {
        return session(connect());
    }

    static Session session(Connection connection) throws JMSException {
        return connection.createSession(Session.AUTO_ACKNOWLEDGE);
    }

    static String fresh() {
        return "jms-" + ProcessHandle.current().pid() + "-" + SERIAL.incrementAndGet();
    }

    /** A new queue with these texts in it. */
    static Queue filled(Session session, String... texts) throws JMSException {
        Queue queue = session.createQueue(fresh());
        MessageProducer producer = session.createProducer(queue);
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        producer.close();
        return queue;
    }

    static TextMessage take(MessageConsumer consumer) throws JMSException {
        TextMessage message = (TextMessage) consumer.receive(TIMEOUT_MS);
        check(message != null, "nothing came");
        return message;
    }

    static void expect(MessageConsumer consumer, String... texts) throws JMSException {
        for (String text : texts) {
            equal(take(consumer).getText(), text, "text");
        }
    }

    static String[] numbers(int count) {
        String[] texts = new String[count];
        for (int number = 0; number < count; number++) {
            texts[number] = "message " + number;
        }
        return texts;
    }

    static void equal(Object actual, Object expected, String what) {
        check(Objects.equals(actual, expected), what + " is " + actual + ", not " + expected);
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }
}
