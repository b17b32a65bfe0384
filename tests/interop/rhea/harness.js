// Cases, connections and links for the rhea suite: rhea's events as promises.
'use strict';

const readline = require('readline');
const rhea = require('rhea');

const TIMEOUT_MS = 15000;
const HOST = '127.0.0.1';
const { AMQP_PORT, AMQP_AUTH_PORT, AMQP_USER, AMQP_PASSWORD } = process.env;
const cases = [];
const answers = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

function test(name, run) {
    cases.push({ name, run });
}

async function runAll(filters) {
    for (const { name, run } of cases) {
        if (filters.length && !filters.some((part) => name.includes(part))) continue;
        console.log(`case ${name}`);
        const opened = [];
        try {
            await within(run((options) => connect(options, opened)), name, 60000);
            console.log(`ok ${name}`);
        } catch (error) {
            console.error(error);
            console.log(`fail ${name} # ${String(error && error.message || error).replace(/\s+/g, ' ')}`);
        }
        for (const connection of opened) close(connection);
    }
    console.log('done');
    setTimeout(() => process.exit(0), 200);
}

async function restartBroker(kill) {
    console.log(kill ? '@restart kill' : '@restart');
    await answers.next();
}

/** Rejects when the promise has not been kept in time. */
function within(promise, what, ms = TIMEOUT_MS) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`${what}: nothing within ${ms} ms`)), ms);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** The next event of one of these names. */
function next(emitter, ...names) {
    return within(new Promise((resolve) => {
        const listeners = names.map((name) => {
            const listener = (context) => {
                names.forEach((other, index) => emitter.removeListener(other, listeners[index]));
                resolve({ name, ...context });
            };
            emitter.on(name, listener);
            return listener;
        });
    }), `event ${names.join(' or ')}`);
}

function options(extra) {
    return { host: HOST, port: Number(AMQP_PORT), reconnect: false, ...extra };
}

function guarded(extra) {
    return options({ port: Number(AMQP_AUTH_PORT), ...extra });
}

async function connect(extra, opened) {
    const container = rhea.create_container();
    container.on('error', (error) => console.error(error));
    container.on('disconnected', () => {});
    const connection = container.connect(options(extra));
    opened.push(connection);
    const event = await next(connection, 'connection_open', 'connection_error', 'disconnected');
    if (event.name !== 'connection_open') {
        throw new Error(`refused: ${connection.error || event.error || event.name}`);
    }
    return connection;
}

function close(connection) {
    connection.on('error', () => {});
    connection.set_reconnect(false);
    connection.close();
}

async function openSender(parent, target, extra) {
    const sender = parent.open_sender({ target, ...extra });
    const opened = await next(sender, 'sendable', 'sender_error', 'sender_close');
    if (opened.name !== 'sendable') throw new Error(`sender refused: ${sender.error}`);
    return sender;
}

/** A receiver that gives credit only when told, and keeps what comes in `inbox`. */
async function openReceiver(parent, source, extra) {
    const receiver = parent.open_receiver({ source, credit_window: 0, autoaccept: false, ...extra });
    receiver.inbox = [];
    receiver.on('message', (context) => {
        receiver.inbox.push(context);
        receiver.emit('got');
    });
    const opened = await next(receiver, 'receiver_open', 'receiver_error');
    if (opened.name !== 'receiver_open') throw new Error(`receiver refused: ${receiver.error}`);
    return receiver;
}

/** Sends messages one after the other and returns their outcomes. */
async function send(sender, ...messages) {
    const outcomes = [];
    for (const message of messages) {
        const delivery = sender.send(message);
        if (sender.local.attach.snd_settle_mode === 1) continue;
        while (!delivery.remote_settled) {
            const event = await next(sender, 'accepted', 'rejected', 'released', 'modified', 'sender_error');
            if (event.name === 'sender_error') throw new Error(`sender detached: ${sender.error}`);
            outcomes.push(event.name);
        }
    }
    return outcomes;
}

/** Takes the next message in, without settling it. */
async function take(receiver) {
    while (!receiver.inbox.length) await next(receiver, 'got');
    return receiver.inbox.shift();
}

/** Gives credit for `count` messages, receives and accepts them. */
async function receive(receiver, count) {
    receiver.add_credit(count);
    const bodies = [];
    while (bodies.length < count) {
        const { message, delivery } = await take(receiver);
        delivery.accept();
        bodies.push(message.body);
    }
    return bodies;
}

async function drain(receiver) {
    receiver.drain_credit();
    await next(receiver, 'receiver_drained');
    receiver.drain = false;  // rhea leaves it set, and would drain every later credit too
}

let serial = 0;

function fresh(name = 'q') {
    return `rhea-${name}-${process.pid}-${serial++}`;
}

module.exports = {
    test, runAll, restartBroker, within, next, options, guarded, connect, close,
    openSender, openReceiver, send, take, receive, drain, fresh, rhea,
    USER: AMQP_USER, PASSWORD: AMQP_PASSWORD,
};
