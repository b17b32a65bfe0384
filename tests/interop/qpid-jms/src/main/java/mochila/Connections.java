package mochila;

import static mochila.Suite.check;
import static mochila.Suite.equal;
import static mochila.Suite.expect;
import static mochila.Suite.filled;
import static mochila.Suite.fresh;

import jakarta.jms.Connection;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import org.apache.qpid.jms.JmsConnectionFactory;

/** What a connection does: log in, be refused, come back after the broker went away. */
final class Connections {
    private final Suite suite;

    Connections(Suite suite) {
        this.suite = suite;
        suite.test("right credentials are let in", this::rightCredentials);
        suite.test("wrong credentials are refused", this::wrongCredentials);
        suite.test("anonymous is refused where a password is asked for", this::anonymousRefused);
        suite.test("a second connection with the same client id is refused", this::clientId);
        suite.test("an idle connection is kept alive by heartbeats", this::heartbeats);
        suite.test("fails over after the broker is restarted", () -> failover(false));
        suite.test("fails over after the broker is killed", () -> failover(true));
    }

    private static Connection login(String user, String password) throws JMSException {
        return new JmsConnectionFactory(Suite.GUARDED).createConnection(user, password);
    }

    private void rightCredentials() throws JMSException {
        Session session = Suite.session(suite.started(login(Suite.USER, Suite.PASSWORD)));
        expect(session.createConsumer(filled(session, "x")), "x");
    }

    private void wrongCredentials() throws JMSException {
        refused(Suite.USER, "wrong");
        refused("nobody", Suite.PASSWORD);
    }

    private void anonymousRefused() throws JMSException {
        refused(null, null);
    }

    private void refused(String user, String password) throws JMSException {
        try {
            suite.started(login(user, password));
        } catch (JMSSecurityException expected) {
            return;
        }
        throw new AssertionError(user + " was let in");
    }

    private void clientId() throws JMSException {
        String id = fresh();
        Connection first = suite.connect("?jms.clientID=" + id);
        try {
            suite.connect("?jms.clientID=" + id);
            throw new AssertionError("the second was let in");
        } catch (InvalidClientIDException expected) {
            check(expected.getMessage() != null, "no reason given");
        }
        Session session = Suite.session(first);
        expect(session.createConsumer(filled(session, "undisturbed")), "undisturbed");
        first.close();
        suite.connect("?jms.clientID=" + id).close();
    }

    private void heartbeats() throws Exception {
        Connection connection = suite.connect("?amqp.idleTimeout=1000");
        Thread.sleep(2500);
        Session session = Suite.session(connection);
        expect(session.createConsumer(filled(session, "still here")), "still here");
    }

    private void failover(boolean kill) throws Exception {
        String uri = "failover:(" + Suite.OPEN + ")?failover.initialReconnectDelay=50"
                + "&failover.reconnectDelay=100&failover.maxReconnectAttempts=100";
        Connection connection = suite.started(new JmsConnectionFactory(uri).createConnection());
        Session session = Suite.session(connection);
        Queue queue = session.createQueue(fresh());
        MessageConsumer consumer = session.createConsumer(queue);
        MessageProducer producer = session.createProducer(queue);
        for (boolean restart : new boolean[] {true, true, false}) {
            producer.send(session.createTextMessage("x"));
            expect(consumer, "x");
            if (restart) {
                Suite.restartBroker(kill);
            }
        }
        equal(consumer.receive(100), null, "what is left");
    }
}
