// What a connection does: log in, be refused, come back after the broker went away.
package main

import (
	"errors"
	"time"

	"github.com/Azure/go-amqp"
)

var connectionCases = []testCase{
	{"right credentials are let in", rightCredentials},
	{"wrong credentials are refused", wrongCredentials},
	{"anonymous is refused where a password is asked for", anonymousRefused},
	{"an idle connection is kept alive by heartbeats", heartbeats},
	{"connects again after the broker is restarted", func(t *T) { connectsAgain(t, false) }},
	{"connects again after the broker is killed", func(t *T) { connectsAgain(t, true) }},
}

func rightCredentials(t *T) {
	conn, err := amqp.Dial(t.soon(), guardedURL, &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(user, password)})
	t.must(err, "connect")
	t.conns = append(t.conns, conn)
	session := t.sessionOn(conn)
	t.expect(t.receiver(session, t.fill(session, "x"), nil), "x")
}

func wrongCredentials(t *T) {
	t.refused(amqp.SASLTypePlain(user, "wrong"))
	t.refused(amqp.SASLTypePlain("nobody", password))
	t.refused(amqp.SASLTypePlain("", ""))
}

func anonymousRefused(t *T) {
	t.refused(amqp.SASLTypeAnonymous())
	t.refused(nil)
}

func (t *T) refused(sasl amqp.SASLType) {
	conn, err := amqp.Dial(t.soon(), guardedURL, &amqp.ConnOptions{SASLType: sasl})
	if err == nil {
		conn.Close()
		t.fail("let in")
	}
	if errors.Is(err, t.soon().Err()) {
		t.fail("no answer: %v", err)
	}
}

func heartbeats(t *T) {
	session := t.sessionOn(t.connect(&amqp.ConnOptions{IdleTimeout: 600 * time.Millisecond}))
	time.Sleep(2 * time.Second)
	t.expect(t.receiver(session, t.fill(session, "still here"), nil), "still here")
}

// connectsAgain sees the connection end and opens another, as go-amqp leaves to its user.
func connectsAgain(t *T, kill bool) {
	for range 2 {
		conn := t.connect(nil)
		session := t.sessionOn(conn)
		t.expect(t.receiver(session, t.fill(session, "x"), nil), "x")
		restartBroker(kill)
		select {
		case <-conn.Done():
		case <-time.After(timeout):
			t.fail("the client did not see that the broker went away")
		}
	}
	session := t.session()
	t.expect(t.receiver(session, t.fill(session, "x"), nil), "x")
}
