// Cases, connections and links for the go-amqp suite.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"
)

const timeout = 15 * time.Second

var (
	openURL    = "amqp://127.0.0.1:" + os.Getenv("AMQP_PORT")
	guardedURL = "amqp://127.0.0.1:" + os.Getenv("AMQP_AUTH_PORT")
	user       = os.Getenv("AMQP_USER")
	password   = os.Getenv("AMQP_PASSWORD")
	answers    = bufio.NewReader(os.Stdin)
	serial     atomic.Int64
)

// A testCase panics with a failure when something is not as it should be.
type testCase struct {
	name string
	run  func(t *T)
}

// T is what one case works with; its context ends with the case's time.
type T struct {
	ctx   context.Context
	conns []*amqp.Conn
}

type failure string

func runAll(cases []testCase, filters []string) {
	for _, c := range cases {
		if matches(c.name, filters) {
			fmt.Println("case", c.name)
			if reason := runOne(c); reason != "" {
				fmt.Printf("fail %s # %s\n", c.name, strings.Join(strings.Fields(reason), " "))
			} else {
				fmt.Println("ok", c.name)
			}
		}
	}
	fmt.Println("done")
}

func runOne(c testCase) (reason string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	t := &T{ctx: ctx}
	defer func() {
		for _, conn := range t.conns {
			conn.Close()
		}
		if failed, ok := recover().(failure); ok {
			reason = string(failed)
		}
	}()
	c.run(t)
	return ""
}

func matches(name string, filters []string) bool {
	for _, filter := range filters {
		if strings.Contains(name, filter) {
			return true
		}
	}
	return len(filters) == 0
}

func (t *T) fail(format string, args ...any) {
	panic(failure(fmt.Sprintf(format, args...)))
}

func (t *T) must(err error, what string) {
	if err != nil {
		t.fail("%s: %v", what, err)
	}
}

func (t *T) equal(actual, expected any, what string) {
	if !reflect.DeepEqual(actual, expected) {
		t.fail("%s is %s, not %s", what, show(actual), show(expected))
	}
}

func show(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		text = fmt.Append(nil, value)
	}
	return fmt.Sprintf("%T %.200s", value, text)
}

// soon is a context for a step that must not take long.
func (t *T) soon() context.Context {
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	context.AfterFunc(ctx, cancel)
	return ctx
}

func fresh() string {
	return fmt.Sprintf("go-%d-%d", os.Getpid(), serial.Add(1))
}

func restartBroker(kill bool) {
	if kill {
		fmt.Println("@restart kill")
	} else {
		fmt.Println("@restart")
	}
	answers.ReadString('\n')
}

func (t *T) connect(options *amqp.ConnOptions) *amqp.Conn {
	conn, err := amqp.Dial(t.soon(), openURL, options)
	t.must(err, "connect")
	t.conns = append(t.conns, conn)
	return conn
}

func (t *T) session() *amqp.Session {
	return t.sessionOn(t.connect(nil))
}

func (t *T) sessionOn(conn *amqp.Conn) *amqp.Session {
	session, err := conn.NewSession(t.soon(), nil)
	t.must(err, "begin")
	return session
}

func (t *T) sender(session *amqp.Session, target string, options *amqp.SenderOptions) *amqp.Sender {
	sender, err := session.NewSender(t.soon(), target, options)
	t.must(err, "attach a sender")
	return sender
}

func (t *T) receiver(session *amqp.Session, source string, options *amqp.ReceiverOptions) *amqp.Receiver {
	receiver, err := session.NewReceiver(t.soon(), source, options)
	t.must(err, "attach a receiver")
	return receiver
}

// manual is a receiver that gives credit only when told.
func (t *T) manual(session *amqp.Session, source string) *amqp.Receiver {
	return t.receiver(session, source, &amqp.ReceiverOptions{Credit: -1})
}

func (t *T) send(sender *amqp.Sender, values ...any) {
	for _, value := range values {
		t.must(sender.Send(t.soon(), &amqp.Message{Value: value}, nil), "send")
	}
}

// fill makes a queue with these messages.
func (t *T) fill(session *amqp.Session, values ...any) string {
	queue := fresh()
	sender := t.sender(session, queue, nil)
	t.send(sender, values...)
	t.must(sender.Close(t.soon()), "close the sender")
	return queue
}

func (t *T) take(receiver *amqp.Receiver) *amqp.Message {
	message, err := receiver.Receive(t.soon(), nil)
	t.must(err, "receive")
	return message
}

// expect receives and accepts messages with these bodies.
func (t *T) expect(receiver *amqp.Receiver, values ...any) {
	for _, value := range values {
		message := t.take(receiver)
		t.equal(message.Value, value, "body")
		t.must(receiver.AcceptMessage(t.soon(), message), "accept")
	}
}

// expectEmpty drains a receiver and finds nothing.
func (t *T) expectEmpty(session *amqp.Session, queue string) {
	receiver := t.manual(session, queue)
	t.drain(receiver, 1)
	if message := receiver.Prefetched(); message != nil {
		t.fail("%s still holds %.100v", queue, message.Value)
	}
	t.must(receiver.Close(t.soon()), "close the receiver")
}

// drain gives credit and takes it back. go-amqp drains with a link-credit of 0, and merges the two
// flows into one when they come at once.
func (t *T) drain(receiver *amqp.Receiver, credit uint32) {
	t.must(receiver.IssueCredit(credit), "credit")
	time.Sleep(50 * time.Millisecond)
	t.must(receiver.DrainCredit(t.soon(), nil), "drain")
}

func numbers(count int) []any {
	out := make([]any, count)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

func pointer[V any](value V) *V { return &value }
