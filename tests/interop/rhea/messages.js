// What a message is made of: bodies, sections, types, sizes, time to live.
'use strict';

const assert = require('assert/strict');
const crypto = require('crypto');
const { setTimeout: sleep } = require('timers/promises');
const {
    test, openSender, openReceiver, send, take, receive, drain, fresh, rhea,
} = require('./harness');

const { types, message } = rhea;
const UUID = Buffer.from('0123456789abcdef0123456789abcdef', 'hex');

// Name, typed value, what rhea decodes it to. Made anew each time: rhea describes values in place.
const simple = () => [
    ['null', null, null],
    ['true', true, true],
    ['false', false, false],
    ['ubyte', types.wrap_ubyte(255), 255],
    ['ushort', types.wrap_ushort(65535), 65535],
    ['uint 0', types.wrap_uint(0), 0],
    ['uint small', types.wrap_uint(200), 200],
    ['uint', types.wrap_uint(4294967295), 4294967295],
    ['ulong 0', types.wrap_ulong(0), 0],
    ['ulong small', types.wrap_ulong(200), 200],
    ['ulong', types.wrap_ulong(Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER],
    ['byte', types.wrap_byte(-128), -128],
    ['short', types.wrap_short(-32768), -32768],
    ['int small', types.wrap_int(-100), -100],
    ['int', types.wrap_int(-2147483648), -2147483648],
    ['long small', types.wrap_long(-100), -100],
    ['long', types.wrap_long(Number.MIN_SAFE_INTEGER), Number.MIN_SAFE_INTEGER],
    ['float', types.wrap_float(1.5), 1.5],
    ['double', types.wrap_double(Math.PI), Math.PI],
    ['char', types.wrap_char('\u{1f40e}'.codePointAt(0)), 0x1f40e],
    ['timestamp', types.wrap_timestamp(1700000000123), new Date(1700000000123)],
    ['uuid', types.wrap_uuid(UUID), UUID],
    ['binary', types.wrap_binary(Buffer.from([0, 1, 254, 255])), Buffer.from([0, 1, 254, 255])],
    ['binary long', types.wrap_binary(Buffer.alloc(1000, 7)), Buffer.alloc(1000, 7)],
    ['string empty', '', ''],
    ['string', 'sëlla \u{1f40e}', 'sëlla \u{1f40e}'],
    ['string long', 'x'.repeat(300), 'x'.repeat(300)],
    ['symbol', types.wrap_symbol('a-symbol'), 'a-symbol'],
];

const compound = () => [
    ['list', types.wrap_list([1, 'two', null, types.wrap_list([])]), [1, 'two', null, []]],
    ['map', types.wrap_map({ a: 1, b: { c: [true] } }), { a: 1, b: { c: [true] } }],
    ['array of ulong', types.wrap_array([1, 2, 300], 0x80), [1, 2, 300]],
    ['array of symbol', types.wrap_array(['a', 'bc'], 0xb3), ['a', 'bc']],
];

async function roundTrip(connection, sent) {
    const queue = fresh('types');
    const sender = await openSender(connection, queue);
    const receiver = await openReceiver(connection, queue);
    assert.deepEqual(await send(sender, sent), ['accepted']);
    receiver.add_credit(1);
    const { message: received, delivery } = await take(receiver);
    delivery.accept();
    sender.close();
    receiver.close();
    return received;
}

test('send and receive', async (connect) => {
    const connection = await connect();
    const queue = fresh();
    const sender = await openSender(connection, queue);
    await send(sender, { body: 'a' }, { body: 'b' }, { body: 'c' });
    assert.deepEqual(await receive(await openReceiver(connection, queue), 3), ['a', 'b', 'c']);
});

test('2,000 messages stay in order, credit renewed by rhea', async (connect) => {
    const connection = await connect();
    const [queue, count] = [fresh(), 2000];
    const sender = await openSender(connection, queue);
    let sent = 0;
    const pump = () => {
        while (sender.sendable() && sent < count) sender.send({ body: sent++ });
    };
    sender.on('sendable', pump);
    sender.on('settled', pump);
    const receiver = await openReceiver(connection, queue, { credit_window: 50, autoaccept: true });
    pump();
    for (let number = 0; number < count; number++) {
        assert.equal((await take(receiver)).message.body, number);
    }
});

test('all primitive types as body', async (connect) => {
    const connection = await connect();
    for (const [name, value, expected] of [...simple(), ...compound()]) {
        const { body } = await roundTrip(connection, { body: value });
        assert.deepEqual(body, expected, name);
    }
});

test('all primitive types in application properties and annotations', async (connect) => {
    const connection = await connect();
    const named = (column) =>
        Object.fromEntries(simple().map((row) => [`x-opt-${row[0]}`, row[column]]));
    const received = await roundTrip(connection, {
        application_properties: named(1), message_annotations: named(1), body: 'x',
    });
    const expected = named(2);
    assert.deepEqual(received.application_properties, expected);
    assert.deepEqual(received.message_annotations, expected);
});

test('properties and header sections', async (connect) => {
    const connection = await connect();
    for (const id of ['id-1', 7, UUID]) {
        const sent = {
            durable: true, priority: 9, message_id: id, user_id: Buffer.from('ann'), to: 'to',
            subject: 'subject', reply_to: 'reply-to', correlation_id: id,
            content_type: 'text/plain', content_encoding: 'gzip',
            absolute_expiry_time: new Date(4102444800500), creation_time: new Date(1700000000250),
            group_id: 'group', group_sequence: 4294967295, reply_to_group_id: 'reply-group',
        };
        const received = await roundTrip(connection, { ...sent, body: 'x' });
        for (const [name, value] of Object.entries(sent)) {
            assert.deepEqual(received[name], value, name);
        }
    }
});

test('several data and sequence sections stay apart', async (connect) => {
    const connection = await connect();
    const data = [Buffer.from('one'), Buffer.alloc(0), Buffer.from('three')];
    let received = await roundTrip(connection, { body: message.data_sections(data) });
    assert.deepEqual(received.body.content, data);
    const lists = [[1, 'a'], [], [2]];
    received = await roundTrip(connection, { body: message.sequence_sections(lists) });
    assert.deepEqual(received.body.content, lists);
});

test('large messages of 10 MB, both ways', async (connect) => {
    const connection = await connect({ max_frame_size: 65536 });
    const queue = fresh('large');
    const body = crypto.randomBytes(10_000_000);
    const digest = (bytes) => crypto.createHash('sha256').update(bytes).digest('hex');
    const sender = await openSender(connection, queue);
    await send(sender, { body: message.data_section(body) });
    const [received] = await receive(await openReceiver(connection, queue), 1);
    assert.equal(digest(received.content), digest(body));
});

test('ttl expires a message that waits', async (connect) => {
    const connection = await connect();
    const queue = fresh('ttl');
    const sender = await openSender(connection, queue);
    await send(sender, { body: 'short', ttl: 200 }, { body: 'long', ttl: 60000 }, { body: 'for ever' });
    await sleep(500);
    const receiver = await openReceiver(connection, queue);
    assert.deepEqual(await receive(receiver, 2), ['long', 'for ever']);
    receiver.add_credit(1);
    await drain(receiver);
    assert.equal(receiver.inbox.length, 0);
});
