// What a connection does: log in, be refused, come back after the broker went away.
'use strict';

const assert = require('assert/strict');
const {
    test, guarded, openSender, openReceiver, send, receive, fresh, restartBroker, next, rhea,
    options, close, USER, PASSWORD,
} = require('./harness');

test('right credentials are let in', async (connect) => {
    const connection = await connect(guarded({ username: USER, password: PASSWORD }));
    const queue = fresh();
    await send(await openSender(connection, queue), { body: 'x' });
    assert.deepEqual(await receive(await openReceiver(connection, queue), 1), ['x']);
});

test('wrong credentials are refused', async (connect) => {
    for (const [username, password] of [[USER, 'wrong'], ['nobody', PASSWORD]]) {
        await assert.rejects(connect(guarded({ username, password })), /refused/);
    }
});

test('anonymous is refused where a password is asked for', async (connect) => {
    await assert.rejects(connect(guarded({ username: 'anonymous' })), /refused/);
    await assert.rejects(connect(guarded({})), /refused/);
});

test('an idle connection is kept alive by heartbeats', async (connect) => {
    const connection = await connect({ idle_time_out: 600 });
    await new Promise((resolve) => setTimeout(resolve, 2000));
    assert.ok(connection.is_open(), 'closed meanwhile');
    await send(await openSender(connection, fresh()), { body: 'still here' });
});

/** rhea's own reconnect attaches the links again. */
async function reconnects(kill) {
    const connection = rhea.create_container().connect(options({
        reconnect: true, initial_reconnect_delay: 50, max_reconnect_delay: 300,
    }));
    const queue = fresh('reconnect');
    const receiver = connection.open_receiver({ source: queue });
    const sender = connection.open_sender({ target: queue });
    sender.on('sender_open', () => sender.send({ body: 'hello' }));
    let message = next(receiver, 'message');
    for (const restart of [true, true, false]) {
        await message;
        if (!restart) break;
        // It may come before it is known here that the broker is there again.
        message = next(receiver, 'message');
        await restartBroker(kill);
    }
    close(connection);
}

test('reconnects after the broker is restarted', () => reconnects(false));

test('reconnects after the broker is killed', () => reconnects(true));
