// What a link does: settlement, credit, outcomes, termini.
'use strict';

const assert = require('assert/strict');
const { setTimeout: sleep } = require('timers/promises');
const {
    test, next, openSender, openReceiver, send, take, receive, drain, fresh,
} = require('./harness');

async function filled(connection, ...bodies) {
    const queue = fresh();
    const sender = await openSender(connection, queue);
    await send(sender, ...bodies.map((body) => ({ body })));
    sender.close();
    return queue;
}

async function takeAll(receiver, count) {
    receiver.add_credit(count);
    const taken = [];
    while (taken.length < count) taken.push(await take(receiver));
    return taken;
}

async function assertEmpty(connection, queue) {
    const receiver = await openReceiver(connection, queue);
    receiver.add_credit(1);
    await drain(receiver);
    assert.deepEqual(receiver.inbox.map((context) => context.message.body), [], 'left in the queue');
    receiver.close();
}

test('presettled in and out', async (connect) => {
    const connection = await connect();
    const queue = fresh();
    const sender = await openSender(connection, queue, { snd_settle_mode: 1 });
    for (let number = 0; number < 50; number++) sender.send({ body: number });
    const receiver = await openReceiver(connection, queue, { snd_settle_mode: 1 });
    assert.equal(receiver.snd_settle_mode, 1);
    for (const [number, { message, delivery }] of (await takeAll(receiver, 50)).entries()) {
        assert.equal(message.body, number);
        assert.ok(delivery.remote_settled, 'not presettled');
    }
    receiver.close();
    await assertEmpty(connection, queue);
});

test('settle mode second, receiving', async (connect) => {
    const connection = await connect();
    const queue = await filled(connection, 'x');
    const receiver = await openReceiver(connection, queue, { rcv_settle_mode: 1, snd_settle_mode: 0 });
    assert.equal(receiver.rcv_settle_mode, 1);
    const [{ delivery }] = await takeAll(receiver, 1);
    delivery.accept();
    await next(receiver, 'settled');
    receiver.close();
    await assertEmpty(connection, queue);
});

test('settle mode second, sending', async (connect) => {
    const connection = await connect();
    const queue = fresh();
    const sender = await openSender(connection, queue, { rcv_settle_mode: 1, autosettle: false });
    const delivery = sender.send({ body: 'x' });
    await next(sender, 'accepted');
    delivery.update(true);
    const receiver = await openReceiver(connection, queue);
    assert.deepEqual(await receive(receiver, 1), ['x']);
});

test('credit is kept to, one at a time and in lots', async (connect) => {
    const connection = await connect();
    const queue = await filled(connection, ...Array(20).keys());
    const receiver = await openReceiver(connection, queue);
    let got = 0;
    for (const lot of [1, 1, 3, 10]) {
        got += lot;
        receiver.add_credit(lot);
        while (receiver.inbox.length < got) await next(receiver, 'got');
        await sleep(30);
        assert.equal(receiver.inbox.length, got);
    }
});

test('drain of an empty queue is answered, and credit works afterwards', async (connect) => {
    const connection = await connect();
    const queue = fresh('drain');
    const receiver = await openReceiver(connection, queue);
    for (let round = 0; round < 3; round++) {
        receiver.add_credit(10);
        await drain(receiver);
        assert.equal(receiver.credit, 0);
    }
    await send(await openSender(connection, queue), { body: 'late' });
    assert.deepEqual(await receive(receiver, 1), ['late']);
});

test('drain delivers what is there first', async (connect) => {
    const connection = await connect();
    const receiver = await openReceiver(connection, await filled(connection, 'a', 'b', 'c'));
    receiver.add_credit(10);
    await drain(receiver);
    assert.deepEqual(receiver.inbox.map((context) => context.message.body), ['a', 'b', 'c']);
});

test('released messages come again in their old place, not counted', async (connect) => {
    const connection = await connect();
    const queue = await filled(connection, 'a', 'b', 'c');
    let receiver = await openReceiver(connection, queue);
    for (const { delivery } of await takeAll(receiver, 2)) delivery.release();
    receiver.close();
    receiver = await openReceiver(connection, queue);
    const again = await takeAll(receiver, 3);
    assert.deepEqual(again.map((context) => context.message.body), ['a', 'b', 'c']);
    assert.deepEqual(again.map((context) => context.message.delivery_count || 0), [0, 0, 0]);
});

test('modified counts as failed and merges annotations', async (connect) => {
    const connection = await connect();
    const queue = fresh();
    const sender = await openSender(connection, queue);
    await send(sender, { body: 'a', message_annotations: { 'x-opt-kept': 1, 'x-opt-old': 1 } });
    const receiver = await openReceiver(connection, queue);
    const [{ delivery }] = await takeAll(receiver, 1);
    delivery.modified({
        delivery_failed: true, message_annotations: { 'x-opt-old': 2, 'x-opt-new': 'n' },
    });
    const [{ message }] = await takeAll(receiver, 1);
    assert.equal(message.delivery_count, 1);
    assert.deepEqual(message.message_annotations, { 'x-opt-kept': 1, 'x-opt-old': 2, 'x-opt-new': 'n' });
});

test('modified with undeliverable-here goes to another consumer', async (connect) => {
    const connection = await connect();
    const queue = await filled(connection, 'a');
    const picky = await openReceiver(connection, queue);
    const [{ delivery }] = await takeAll(picky, 1);
    delivery.modified({ undeliverable_here: true });
    picky.add_credit(1);
    await drain(picky);
    assert.equal(picky.inbox.length, 0);
    assert.deepEqual(await receive(await openReceiver(connection, queue), 1), ['a']);
});

test('rejected messages do not come again', async (connect) => {
    const connection = await connect();
    const queue = await filled(connection, 'bad', 'good');
    const receiver = await openReceiver(connection, queue);
    const [{ delivery }] = await takeAll(receiver, 1);
    delivery.reject({ condition: 'amqp:precondition-failed', description: 'bad' });
    assert.deepEqual(await receive(receiver, 1), ['good']);
    receiver.close();
    await assertEmpty(connection, queue);
});

test('browsing copies and takes nothing', async (connect) => {
    const connection = await connect();
    const queue = await filled(connection, 'a', 'b', 'c');
    for (let round = 0; round < 2; round++) {
        const browser = await openReceiver(connection, { address: queue, distribution_mode: 'copy' });
        const seen = (await takeAll(browser, 3)).map((context) => context.message.body);
        assert.deepEqual(seen, ['a', 'b', 'c']);
        browser.close();
    }
    assert.deepEqual(await receive(await openReceiver(connection, queue), 3), ['a', 'b', 'c']);
});

test('anonymous relay', async (connect) => {
    const connection = await connect();
    assert.ok([].concat(connection.offered_capabilities).includes('ANONYMOUS-RELAY'));
    const queues = [fresh(), fresh()];
    const sender = await openSender(connection, {});
    await send(sender, ...[0, 1, 2, 3].map((number) => ({ to: queues[number % 2], body: number })));
    assert.deepEqual(await receive(await openReceiver(connection, queues[0]), 2), [0, 2]);
    assert.deepEqual(await receive(await openReceiver(connection, queues[1]), 2), [1, 3]);
});

test('request and response over a dynamic reply queue', async (connect) => {
    const [client, server] = [await connect(), await connect()];
    const requests = fresh('requests');
    const serving = await openReceiver(server, requests, { credit_window: 10, autoaccept: true });
    const answers = await openSender(server, {});
    serving.on('message', ({ message }) => answers.send({
        to: message.reply_to, correlation_id: message.correlation_id, body: message.body.toUpperCase(),
    }));
    const replies = await openReceiver(client, { dynamic: true }, { autoaccept: true });
    const sender = await openSender(client, requests);
    for (let number = 0; number < 10; number++) {
        const id = `id-${number}`;
        await send(sender, { reply_to: replies.source.address, correlation_id: id, body: id });
        replies.add_credit(1);
        const { message } = await take(replies);
        assert.deepEqual([message.correlation_id, message.body], [id, id.toUpperCase()]);
    }
});

test('session windows of 1, 2, 7 and 2048 deliveries, and credit of 1', async (connect) => {
    for (const size of [1, 2, 7, 2048]) {
        const connection = await connect({ session_buffer_size: { incoming: size, outgoing: 100 } });
        for (const credit of [1, 10]) {
            const queue = await filled(connection, ...Array(40).keys());
            const receiver = await openReceiver(connection, queue, { credit_window: credit, autoaccept: true });
            for (let number = 0; number < 40; number++) {
                assert.equal((await take(receiver)).message.body, number);
            }
            receiver.close();
        }
    }
});

test('100 links on one session', async (connect) => {
    const connection = await connect();
    const queues = Array.from({ length: 50 }, () => fresh('link'));
    for (const queue of queues) await send(await openSender(connection, queue), { body: queue });
    for (const queue of queues) {
        assert.deepEqual(await receive(await openReceiver(connection, queue), 1), [queue]);
    }
});

test('50 sessions on one connection', async (connect) => {
    const connection = await connect();
    const queue = fresh('sessions');
    for (let number = 0; number < 50; number++) {
        const session = connection.create_session();
        session.begin();
        await send(await openSender(session, queue), { body: number });
    }
    const receiver = await openReceiver(connection, queue);
    assert.deepEqual(await receive(receiver, 50), [...Array(50).keys()]);
});
