// What a message is made of: bodies, sections, types, sizes, time to live.
package main

import (
	"crypto/rand"
	"crypto/sha256"
	"math"
	"strings"
	"time"

	"github.com/Azure/go-amqp"
)

var messageCases = []testCase{
	{"send and receive", sendAndReceive},
	{"all primitive types as body", typesAsBody},
	{"all primitive types in application properties and annotations", typesInMaps},
	{"properties and header sections", sections},
	{"several data and sequence sections stay apart", severalSections},
	{"large messages of 10 MB, both ways", largeMessages},
	{"sizes around the frame size, frames of 512 bytes", aroundTheFrameSize},
	{"ttl expires a message that waits", timeToLive},
}

var id = amqp.UUID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

// Every type that go-amqp tells apart.
var everyType = map[string]any{
	"true": true, "false": false,
	"ubyte": uint8(255), "ushort": uint16(65535),
	"uint 0": uint32(0), "uint small": uint32(200), "uint": uint32(math.MaxUint32),
	"ulong 0": uint64(0), "ulong small": uint64(200), "ulong": uint64(math.MaxUint64),
	"byte": int8(-128), "short": int16(-32768),
	"int small": int32(-100), "int": int32(math.MinInt32),
	"long small": int64(-100), "long": int64(math.MinInt64),
	"float": float32(1.5), "double": math.Pi,
	"timestamp": time.UnixMilli(1700000000123), "uuid": id,
	"binary": []byte{0, 1, 254, 255}, "binary long": make([]byte, 1000),
	"string empty": "", "string": "sëlla \U0001f40e", "string long": strings.Repeat("x", 300),
	"symbol": amqp.Symbol("a-symbol"), "symbol long": amqp.Symbol(strings.Repeat("s", 300)),
}

var compound = map[string]any{
	"list":            []any{int64(1), "two", []any{uint64(3)}},
	"map":             map[string]any{"a": int64(1), "b": "two"},
	"array of int":    []int32{1, -2, 300000},
	"array of string": []string{"a", "bb", strings.Repeat("c", 300)},
	"array of symbol": []amqp.Symbol{"a", "bb"},
	"array of uuid":   []amqp.UUID{id, {}},
}

// decoded is what go-amqp makes of a value: symbols and strings come out alike.
func decoded(value any) any {
	if symbol, ok := value.(amqp.Symbol); ok {
		return string(symbol)
	}
	return value
}

func (t *T) roundTrip(session *amqp.Session, message *amqp.Message) *amqp.Message {
	queue := fresh()
	sender, receiver := t.sender(session, queue, nil), t.receiver(session, queue, nil)
	t.must(sender.Send(t.soon(), message, nil), "send")
	received := t.take(receiver)
	t.must(receiver.AcceptMessage(t.soon(), received), "accept")
	t.must(sender.Close(t.soon()), "close the sender")
	t.must(receiver.Close(t.soon()), "close the receiver")
	return received
}

func sendAndReceive(t *T) {
	session := t.session()
	queue := t.fill(session, "a", "b", "c")
	t.expect(t.receiver(session, queue, nil), "a", "b", "c")
}

func typesAsBody(t *T) {
	session := t.session()
	for _, values := range []map[string]any{everyType, compound} {
		for name, value := range values {
			received := t.roundTrip(session, &amqp.Message{Value: value})
			t.equal(received.Value, decoded(value), name)
		}
	}
	received := t.roundTrip(session, &amqp.Message{Value: amqp.Null{}})
	t.equal(received.Value, nil, "null")
}

func typesInMaps(t *T) {
	annotations := amqp.Annotations{}
	for name, value := range everyType {
		annotations["x-opt-"+name] = value
	}
	received := t.roundTrip(t.session(), &amqp.Message{
		Annotations: annotations, ApplicationProperties: everyType, Value: "x",
	})
	for name, value := range everyType {
		t.equal(received.ApplicationProperties[name], decoded(value), "property "+name)
		t.equal(received.Annotations["x-opt-"+name], decoded(value), "annotation "+name)
	}
}

func sections(t *T) {
	session := t.session()
	for _, messageID := range []any{"id-1", uint64(7), id, []byte{0, 1}} {
		at := time.UnixMilli(1700000000250)
		properties := &amqp.MessageProperties{
			MessageID: messageID, UserID: []byte("ann"), To: pointer("to"), Subject: pointer("subject"),
			ReplyTo: pointer("reply-to"), CorrelationID: messageID, ContentType: pointer("text/plain"),
			ContentEncoding: pointer("gzip"), AbsoluteExpiryTime: pointer(at.AddDate(50, 0, 0)),
			CreationTime: &at, GroupID: pointer("group"), GroupSequence: pointer(uint32(math.MaxUint32)),
			ReplyToGroupID: pointer("reply-group"),
		}
		received := t.roundTrip(session, &amqp.Message{
			Header: &amqp.MessageHeader{Durable: true, Priority: 9}, Properties: properties, Value: "x",
			Footer: amqp.Annotations{"x-opt-foot": int64(1)},
		})
		t.equal(received.Properties, properties, "properties")
		t.equal(received.Header.Durable, true, "durable")
		t.equal(received.Header.Priority, uint8(9), "priority")
		t.equal(received.Footer, amqp.Annotations{"x-opt-foot": int64(1)}, "footer")
	}
}

func severalSections(t *T) {
	session := t.session()
	data := [][]byte{[]byte("one"), {}, []byte("three")}
	t.equal(t.roundTrip(session, &amqp.Message{Data: data}).Data, data, "data sections")
	lists := [][]any{{int64(1), "a"}, {int64(2)}}
	t.equal(t.roundTrip(session, &amqp.Message{Sequence: lists}).Sequence, lists, "sequence sections")
}

func largeMessages(t *T) {
	session, body := t.session(), make([]byte, 10_000_000)
	rand.Read(body)
	received := t.roundTrip(session, amqp.NewMessage(body))
	t.equal(sha256.Sum256(received.GetData()), sha256.Sum256(body), "digest")
}

func aroundTheFrameSize(t *T) {
	small := t.sessionOn(t.connect(&amqp.ConnOptions{MaxFrameSize: 512}))
	queue := fresh()
	sender, receiver := t.sender(small, queue, nil), t.receiver(small, queue, nil)
	for _, size := range []int{0, 1, 400, 450, 470, 480, 490, 500, 510, 512, 1024, 65536, 300_000} {
		t.must(sender.Send(t.soon(), amqp.NewMessage(make([]byte, size)), nil), "send")
		message := t.take(receiver)
		t.equal(len(message.GetData()), size, "size")
		t.must(receiver.AcceptMessage(t.soon(), message), "accept")
	}
}

func timeToLive(t *T) {
	session, queue := t.session(), fresh()
	sender := t.sender(session, queue, nil)
	for _, ttl := range []time.Duration{200 * time.Millisecond, time.Minute, 0} {
		message := &amqp.Message{Header: &amqp.MessageHeader{TTL: ttl}, Value: ttl.String()}
		t.must(sender.Send(t.soon(), message, nil), "send")
	}
	time.Sleep(500 * time.Millisecond)
	t.expect(t.receiver(session, queue, nil), "1m0s", "0s")
	t.expectEmpty(session, queue)
}
