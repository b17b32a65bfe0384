// What a link does: settlement, credit, outcomes, termini.
package main

import (
	"fmt"
	"time"

	"github.com/Azure/go-amqp"
)

var linkCases = []testCase{
	{"presettled in and out", presettled},
	{"settle mode second, receiving", secondReceiving},
	{"settle mode second, sending", secondSending},
	{"credit is kept to, one at a time and in lots", credit},
	{"drain of an empty queue is answered, and credit works afterwards", drainEmpty},
	{"drain delivers what is there first", drainPartly},
	{"released messages come again in their old place, not counted", released},
	{"modified counts as failed and merges annotations", modified},
	{"modified with undeliverable-here goes to another consumer", undeliverableHere},
	{"rejected messages do not come again", rejected},
	{"browsing copies and takes nothing", browse},
	{"anonymous relay", anonymousRelay},
	{"request and response over a dynamic reply queue", requestResponse},
	{"sender and receiver with the same link name", sameName},
	{"2,000 messages with credit 1 and credit 100", longRuns},
	{"200 links on one session", manyLinks},
	{"70,000 messages through one session", manyMessages},
	{"100 messages of 1 MB through one session", manyLargeMessages},
	{"a full queue holds its sender back and lets it go on", fullQueue},
}

func presettled(t *T) {
	session, queue := t.session(), fresh()
	settled := &amqp.SenderOptions{SettlementMode: pointer(amqp.SenderSettleModeSettled)}
	t.send(t.sender(session, queue, settled), numbers(50)...)
	receiver := t.receiver(session, queue, &amqp.ReceiverOptions{
		Credit: 10, RequestedSenderSettleMode: pointer(amqp.SenderSettleModeSettled),
	})
	for _, number := range numbers(50) {
		t.equal(t.take(receiver).Value, number, "body")
	}
	t.must(receiver.Close(t.soon()), "close the receiver")
	t.expectEmpty(session, queue)
}

func secondReceiving(t *T) {
	session := t.session()
	queue := t.fill(session, "a", "b")
	receiver := t.receiver(session, queue, &amqp.ReceiverOptions{
		SettlementMode: pointer(amqp.ReceiverSettleModeSecond),
	})
	t.expect(receiver, "a", "b") // each accept waits for the broker to settle
	t.must(receiver.Close(t.soon()), "close the receiver")
	t.expectEmpty(session, queue)
}

func secondSending(t *T) {
	session, queue := t.session(), fresh()
	sender := t.sender(session, queue, &amqp.SenderOptions{
		RequestedReceiverSettleMode: pointer(amqp.ReceiverSettleModeSecond),
	})
	t.send(sender, "a", "b")
	t.expect(t.receiver(session, queue, nil), "a", "b")
}

func credit(t *T) {
	session := t.session()
	receiver := t.manual(session, t.fill(session, numbers(20)...))
	got := int64(0)
	for _, lot := range []int64{1, 1, 3, 10} {
		t.must(receiver.IssueCredit(uint32(lot)), "credit")
		for range lot {
			t.expect(receiver, got)
			got++
		}
		time.Sleep(30 * time.Millisecond)
		if receiver.Prefetched() != nil {
			t.fail("more than the credit of %d came", got)
		}
	}
}

func drainEmpty(t *T) {
	session, queue := t.session(), fresh()
	receiver := t.manual(session, queue)
	for range 3 {
		t.drain(receiver, 10)
	}
	t.send(t.sender(session, queue, nil), "late")
	t.must(receiver.IssueCredit(1), "credit")
	t.expect(receiver, "late")
}

func drainPartly(t *T) {
	session := t.session()
	receiver := t.manual(session, t.fill(session, "a", "b", "c"))
	t.must(receiver.IssueCredit(10), "credit")
	t.expect(receiver, "a") // the credit has arrived
	t.must(receiver.DrainCredit(t.soon(), nil), "drain")
	for _, body := range []any{"b", "c"} {
		message := receiver.Prefetched()
		if message == nil {
			t.fail("the drain was answered before %v came", body)
		}
		t.equal(message.Value, body, "body")
		t.must(receiver.AcceptMessage(t.soon(), message), "accept")
	}
}

func released(t *T) {
	session := t.session()
	queue := t.fill(session, "a", "b", "c")
	receiver := t.receiver(session, queue, &amqp.ReceiverOptions{Credit: 2})
	first, second := t.take(receiver), t.take(receiver)
	t.must(receiver.ReleaseMessage(t.soon(), first), "release")
	t.must(receiver.ReleaseMessage(t.soon(), second), "release")
	t.must(receiver.Close(t.soon()), "close the receiver")
	receiver = t.receiver(session, queue, nil)
	for _, body := range []any{"a", "b", "c"} {
		message := t.take(receiver)
		t.equal(message.Value, body, "body")
		if message.Header != nil {
			t.equal(message.Header.DeliveryCount, uint32(0), "delivery-count")
		}
		t.must(receiver.AcceptMessage(t.soon(), message), "accept")
	}
}

func modified(t *T) {
	session, queue := t.session(), fresh()
	sender := t.sender(session, queue, nil)
	annotated := amqp.Annotations{"x-opt-kept": int64(1), "x-opt-old": int64(1)}
	t.must(sender.Send(t.soon(), &amqp.Message{Annotations: annotated, Value: "a"}, nil), "send")
	receiver := t.receiver(session, queue, nil)
	changes := amqp.Annotations{"x-opt-old": int64(2), "x-opt-new": "n"}
	for count := range uint32(3) {
		message := t.take(receiver)
		if count > 0 {
			t.equal(message.Header.DeliveryCount, count, "delivery-count")
		}
		t.must(receiver.ModifyMessage(t.soon(), message, &amqp.ModifyMessageOptions{
			DeliveryFailed: true, Annotations: changes,
		}), "modify")
	}
	message := t.take(receiver)
	t.equal(message.Annotations, amqp.Annotations{
		"x-opt-kept": int64(1), "x-opt-old": int64(2), "x-opt-new": "n",
	}, "annotations")
	t.must(receiver.AcceptMessage(t.soon(), message), "accept")
}

func undeliverableHere(t *T) {
	session := t.session()
	queue := t.fill(session, "a")
	picky := t.manual(session, queue)
	t.must(picky.IssueCredit(1), "credit")
	message := t.take(picky)
	t.must(picky.ModifyMessage(t.soon(), message, &amqp.ModifyMessageOptions{UndeliverableHere: true}), "modify")
	t.drain(picky, 1)
	if picky.Prefetched() != nil {
		t.fail("the message came back to the consumer that cannot take it")
	}
	t.expect(t.receiver(session, queue, nil), "a")
}

func rejected(t *T) {
	session := t.session()
	queue := t.fill(session, "bad", "good")
	receiver := t.receiver(session, queue, nil)
	t.must(receiver.RejectMessage(t.soon(), t.take(receiver), &amqp.Error{
		Condition: amqp.ErrCondPreconditionFailed, Description: "bad",
	}), "reject")
	t.expect(receiver, "good")
	t.must(receiver.Close(t.soon()), "close the receiver")
	t.expectEmpty(session, queue)
}

func browse(t *T) {
	session := t.session()
	queue := t.fill(session, "a", "b", "c")
	for range 2 {
		browser := t.receiver(session, queue, &amqp.ReceiverOptions{
			Credit: 10, SourceDistributionMode: amqp.SourceDistributionModeCopy,
		})
		t.expect(browser, "a", "b", "c")
		t.must(browser.Close(t.soon()), "close the browser")
	}
	t.expect(t.receiver(session, queue, nil), "a", "b", "c")
}

func anonymousRelay(t *T) {
	session := t.session()
	sender, queues := t.sender(session, "", nil), []string{fresh(), fresh()}
	for number := range int64(4) {
		t.must(sender.Send(t.soon(), &amqp.Message{
			Properties: &amqp.MessageProperties{To: &queues[number%2]}, Value: number,
		}, nil), "send")
	}
	t.expect(t.receiver(session, queues[0], nil), int64(0), int64(2))
	t.expect(t.receiver(session, queues[1], nil), int64(1), int64(3))
}

func requestResponse(t *T) {
	client, server := t.session(), t.session()
	requests := fresh()
	serving, answers := t.receiver(server, requests, nil), t.sender(server, "", nil)
	replies := t.receiver(client, "", &amqp.ReceiverOptions{DynamicAddress: true})
	if replies.Address() == "" {
		t.fail("the dynamic source has no address")
	}
	sender := t.sender(client, requests, nil)
	for number := range uint64(10) {
		t.must(sender.Send(t.soon(), &amqp.Message{
			Properties: &amqp.MessageProperties{ReplyTo: pointer(replies.Address()), CorrelationID: number},
			Value:      number,
		}, nil), "send a request")
		request := t.take(serving)
		t.must(serving.AcceptMessage(t.soon(), request), "accept")
		t.must(answers.Send(t.soon(), &amqp.Message{
			Properties: &amqp.MessageProperties{
				To: request.Properties.ReplyTo, CorrelationID: request.Properties.CorrelationID,
			},
			Value: request.Value.(uint64) * 2,
		}, nil), "send a reply")
		reply := t.take(replies)
		t.equal(reply.Properties.CorrelationID, number, "correlation-id")
		t.equal(reply.Value, number*2, "reply")
		t.must(replies.AcceptMessage(t.soon(), reply), "accept")
	}
}

func sameName(t *T) {
	session, queue := t.session(), fresh()
	receiver := t.receiver(session, queue, &amqp.ReceiverOptions{Name: "same"})
	t.send(t.sender(session, queue, &amqp.SenderOptions{Name: "same"}), "x")
	t.expect(receiver, "x")
}

func longRuns(t *T) {
	session := t.session()
	for _, credit := range []int32{1, 100} {
		queue, bodies := fresh(), numbers(2000)
		sender := t.sender(session, queue, nil)
		receipts := make([]amqp.SendReceipt, len(bodies))
		for index, body := range bodies {
			receipt, err := sender.SendWithReceipt(t.soon(), &amqp.Message{Value: body}, nil)
			t.must(err, "send")
			receipts[index] = receipt
		}
		for _, receipt := range receipts {
			state, err := receipt.Wait(t.soon())
			t.must(err, "wait for the outcome")
			t.equal(state, &amqp.StateAccepted{}, "outcome")
		}
		t.expect(t.receiver(session, queue, &amqp.ReceiverOptions{Credit: credit}), bodies...)
	}
}

func manyLinks(t *T) {
	session := t.session()
	var queues []string
	for range 100 {
		queues = append(queues, t.fill(session, "x"))
	}
	receivers := make([]*amqp.Receiver, len(queues))
	senders := make([]*amqp.Sender, len(queues))
	for index, queue := range queues {
		receivers[index], senders[index] = t.receiver(session, queue, nil), t.sender(session, queue, nil)
	}
	for index, receiver := range receivers {
		t.expect(receiver, "x")
		t.send(senders[index], "y")
		t.expect(receiver, "y")
	}
}

// sendAll sends count messages of this size, not waiting for one before sending the next; the
// channel tells when all are accepted.
func (t *T) sendAll(session *amqp.Session, queue string, count, size int) <-chan error {
	sender, done := t.sender(session, queue, nil), make(chan error, 1)
	go func() {
		receipts := make([]amqp.SendReceipt, count)
		for index := range receipts {
			receipt, err := sender.SendWithReceipt(t.ctx, amqp.NewMessage(make([]byte, size)), nil)
			if err != nil {
				done <- err
				return
			}
			receipts[index] = receipt
		}
		for _, receipt := range receipts {
			state, err := receipt.Wait(t.ctx)
			if _, accepted := state.(*amqp.StateAccepted); err == nil && !accepted {
				err = fmt.Errorf("the outcome is %T", state)
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return done
}

func (t *T) receiveAll(session *amqp.Session, queue string, count, size int) {
	receiver := t.receiver(session, queue, &amqp.ReceiverOptions{Credit: 100})
	for range count {
		message := t.take(receiver)
		t.equal(len(message.GetData()), size, "size")
		t.must(receiver.AcceptMessage(t.soon(), message), "accept")
	}
}

func manyMessages(t *T) {
	session, queue := t.session(), fresh()
	sent := t.sendAll(session, queue, 70_000, 10)
	t.receiveAll(session, queue, 70_000, 10)
	t.must(<-sent, "send")
}

func manyLargeMessages(t *T) {
	session, queue := t.session(), fresh()
	sent := t.sendAll(session, queue, 100, 1_000_000)
	t.receiveAll(session, queue, 100, 1_000_000)
	t.must(<-sent, "send")
}

// fullQueue relies on the size limit that queues have when nothing else is said: 100 MiB, of which
// the last fifth is for messages that are under way when the sender is stopped.
func fullQueue(t *T) {
	sending, receiving := t.session(), t.session()
	queue := fresh()
	sent := t.sendAll(sending, queue, 12_000, 10_000)
	select {
	case err := <-sent:
		t.fail("120 MB went into a queue of 100 MiB (%v)", err)
	case <-time.After(2 * time.Second):
	}
	t.receiveAll(receiving, queue, 12_000, 10_000)
	t.must(<-sent, "send")
}
