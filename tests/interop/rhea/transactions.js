// Transactions. rhea has no coordinator, but its links may have any target and its deliveries any
// state, so the controller is made here. Only the state of a transfer has to be put in on its way
// out, since rhea writes none.
'use strict';

const assert = require('assert/strict');
const { setImmediate: turn } = require('timers/promises');
const {
    test, next, openSender, openReceiver, send, take, receive, drain, fresh, rhea,
} = require('./harness');

const { types } = rhea;
const [COORDINATOR, DECLARE, DISCHARGE, DECLARED, TRANSACTIONAL, ACCEPTED] =
    [0x30, 0x31, 0x32, 0x33, 0x34, 0x24];
const STATE = 7;  // which field of a transfer it is; rhea has no writer for it
const AMQP_VALUE = Buffer.from([0x00, 0x53, 0x77]);

const composite = (code, ...fields) => types.wrap_described(types.wrap_list(fields), code);
const accepted = () => composite(ACCEPTED);

class Transaction {
    constructor(controller, id) {
        Object.assign(this, { controller, id });
    }

    /** The state of a delivery in this transaction. */
    state(...outcome) {
        return composite(TRANSACTIONAL, types.wrap_binary(this.id), ...outcome);
    }

    /** What the sender sends in `during` belongs to the transaction. */
    async within(sender, during) {
        const session = sender.session;
        session.output = (frame, payload) => {
            if (payload && frame.handle === sender.local.handle) frame.value[STATE] = this.state();
            return Object.getPrototypeOf(session).output.call(session, frame, payload);
        };
        try {
            return await during();
        } finally {
            delete session.output;
        }
    }

    /** Sends messages, and returns the states that the broker tells. */
    send(sender, ...bodies) {
        return this.within(sender, async () => {
            const deliveries = bodies.map((body) => sender.send({ body }));
            for (const delivery of deliveries) {
                while (!delivery.remote_settled) await next(sender, 'settled', 'rejected');
            }
            return deliveries.map((delivery) => delivery.remote_state);
        });
    }

    accept({ delivery }, settled = true) {
        delivery.update(settled, this.state(accepted()));
    }

    commit() {
        return this.controller.ask(DISCHARGE, types.wrap_binary(this.id), false);
    }

    rollback() {
        return this.controller.ask(DISCHARGE, types.wrap_binary(this.id), true);
    }
}

class Controller {
    /** A link to the coordinator. */
    static async open(connection) {
        const controller = new Controller();
        controller.sender = connection.open_sender({ name: fresh('controller') });
        controller.sender.local.attach.target = composite(COORDINATOR);
        const { name } = await next(controller.sender, 'sendable', 'sender_error', 'sender_close');
        assert.equal(name, 'sendable', String(controller.sender.error));
        return controller;
    }

    /** Asks for something, and returns the outcome: 'accepted', 'rejected' or what was declared. */
    async ask(code, ...fields) {
        // In a turn rhea writes transfers first, and outcomes would come after their discharge.
        await turn();
        const writer = new types.Writer();
        writer.write(composite(code, ...fields));
        // As bytes: rhea does not put what has a descriptor into a section, which has one too.
        const message = Buffer.concat([AMQP_VALUE, writer.toBuffer()]);
        const delivery = this.sender.send(message, undefined, 0);
        while (!delivery.remote_settled) await next(this.sender, 'settled', 'rejected');
        const state = delivery.remote_state;
        return state.constructor.composite_type || state;
    }

    async declare() {
        const declared = await this.ask(DECLARE);
        assert.equal(Number(declared.descriptor.value), DECLARED);
        return new Transaction(this, Buffer.from(declared.value[0].value || declared.value[0]));
    }
}

async function left(connection, queue) {
    const receiver = await openReceiver(connection, queue);
    receiver.add_credit(10);
    await drain(receiver);
    const bodies = receiver.inbox.map((context) => context.message.body);
    receiver.inbox.forEach(({ delivery }) => delivery.release());
    receiver.close();
    return bodies;
}

test('transaction committed: what was sent is there, and not before', async (connect) => {
    const connection = await connect();
    const [queue, controller] = [fresh('tx'), await Controller.open(connection)];
    const sender = await openSender(connection, queue);
    const transaction = await controller.declare();
    for (const state of await transaction.send(sender, 'a', 'b')) {
        assert.equal(Number(state.descriptor.value), TRANSACTIONAL);
    }
    assert.deepEqual(await left(connection, queue), []);
    assert.equal(await transaction.commit(), 'accepted');
    assert.deepEqual(await left(connection, queue), ['a', 'b']);
});

test('transaction rolled back: what was sent was never there', async (connect) => {
    const connection = await connect();
    const [queue, controller] = [fresh('tx'), await Controller.open(connection)];
    const sender = await openSender(connection, queue);
    const transaction = await controller.declare();
    await transaction.send(sender, 'a', 'b');
    assert.equal(await transaction.rollback(), 'accepted');
    await send(sender, { body: 'outside' });
    assert.deepEqual(await left(connection, queue), ['outside']);
});

test('transaction: what was accepted is gone, or is there again in order', async (connect) => {
    const connection = await connect();
    const controller = await Controller.open(connection);
    for (const settled of [true, false]) {
        const queue = fresh('tx');
        await send(await openSender(connection, queue), { body: 'a' }, { body: 'b' }, { body: 'c' });
        for (const ending of ['rollback', 'commit']) {
            const receiver = await openReceiver(connection, queue);
            receiver.add_credit(3);
            const transaction = await controller.declare();
            for (let count = 0; count < 3; count++) transaction.accept(await take(receiver), settled);
            assert.equal(await transaction[ending](), 'accepted');
            receiver.close();
            await next(receiver, 'receiver_close');
            const expected = ending === 'rollback' ? ['a', 'b', 'c'] : [];
            assert.deepEqual(await left(connection, queue), expected, `${ending}, settled ${settled}`);
        }
    }
});

test('transaction: a message moves from queue to queue', async (connect) => {
    const connection = await connect();
    const [source, target] = [fresh('from'), fresh('to')];
    await send(await openSender(connection, source), { body: 'x' });
    const controller = await Controller.open(connection);
    const [receiver, sender] = [await openReceiver(connection, source), await openSender(connection, target)];
    receiver.add_credit(1);
    const transaction = await controller.declare();
    const got = await take(receiver);
    await transaction.send(sender, got.message.body);
    transaction.accept(got);
    assert.equal(await transaction.commit(), 'accepted');
    assert.deepEqual(await left(connection, source), []);
    assert.deepEqual(await receive(await openReceiver(connection, target), 1), ['x']);
});

test('a transaction that is over cannot be ended again', async (connect) => {
    const connection = await connect();
    const controller = await Controller.open(connection);
    const transaction = await controller.declare();
    assert.equal(await transaction.commit(), 'accepted');
    assert.equal(await transaction.commit(), 'rejected');
    assert.equal(await (await controller.declare()).rollback(), 'accepted');
});

test('a transaction is lost with its connection', async (connect) => {
    const connection = await connect();
    const queue = fresh('tx');
    const doomed = await connect();
    const sender = await openSender(doomed, queue);
    await (await (await Controller.open(doomed)).declare()).send(sender, 'a');
    doomed.close();
    await next(doomed, 'connection_close');
    assert.deepEqual(await left(connection, queue), []);
});
