//! Scenario: a closed loop. So many messages are in flight, and each one that arrives is replaced
//! by a new one; what is measured is the time from one end of the broker to the other.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mochila_client::driver::{Driver, Wait};
use mochila_engine::{Event, LinkId};
use mochila_wire::message::Body;
use mochila_wire::performative::Role;
use mochila_wire::{DeliveryState, Encode};

use super::figures::{Figures, row};
use super::flow::Flow;
use super::queues::Queues;
use super::{Broker, Options};
use crate::address::Address;
use crate::attachment::{Attachment, failure};
use crate::connection_options::ConnectionFlags;
use crate::failure::{Failure, Outcome};
use crate::output::show;
use crate::usage::Usage;

/// Measures each number of messages in flight as often as asked.
pub(super) fn run(options: &Options) -> Outcome<Figures> {
    let mut figures = Figures::default();
    show(&row(&["in-flight", "msg/s", "p50-us", "p99-us", "max-us", "broker-us", "client-us"]))?;
    for in_flight in &options.scenario_flags.in_flight {
        for _ in 0..options.repeat() {
            measure(options, *in_flight, &mut figures)?;
        }
    }
    Ok(figures)
}

fn measure(options: &Options, in_flight: u32, figures: &mut Figures) -> Outcome {
    let broker = Broker::start(options)?;
    let timeout = Duration::try_from_secs_f64(options.timeout).map_err(Failure::option)?;
    Queues::new(broker.address(), "", timeout)?
        .clear(&Flow::new(1, 1).address(&options.queue_name))?;
    let mut circle = Circle::connect(&broker, options, in_flight)?;
    circle.run_for(WARM_UP)?;
    circle.times.reset();
    let (before, own_before, start) = (broker.usage()?, Usage::own(), Instant::now());
    circle.run_for(DURATION)?;
    let (after, own_after, elapsed) = (broker.usage()?, Usage::own(), start.elapsed());
    let times = &circle.times;
    let messages = times.len() as f64;
    let us = |ns: u64| ns as f64 / 1_000.0;
    let (p50, p99) = (us(times.value_at_quantile(0.5)), us(times.value_at_quantile(0.99)));
    let per_second = messages / elapsed.as_secs_f64();
    let broker_us = us(after.cpu_ns - before.cpu_ns) / messages;
    let client_us = us(own_after.cpu_ns - own_before.cpu_ns) / messages;
    show(&row(&[
        in_flight.to_string(),
        format!("{per_second:.0}"),
        format!("{p50:.1}"),
        format!("{p99:.1}"),
        format!("{:.0}", us(times.max())),
        format!("{broker_us:.2}"),
        format!("{client_us:.2}"),
    ]))?;
    figures.add(&format!("{in_flight} in flight: msg/s"), per_second);
    figures.add(&format!("{in_flight} in flight: round trip p50 us"), p50);
    figures.add(&format!("{in_flight} in flight: round trip p99 us"), p99);
    figures.add(&format!("{in_flight} in flight: broker CPU us/msg"), broker_us);
    figures.add(&format!("{in_flight} in flight: client CPU us/msg"), client_us);
    Ok(())
}

/// Two connections, one that sends and one that receives, served by one thread.
struct Circle {
    out: Driver,
    out_link: LinkId,
    back: Driver,
    back_link: LinkId,
    message: Vec<u8>,
    in_flight: u32,
    /// When the messages in flight were sent, the oldest first.
    sent: VecDeque<Instant>,
    times: Histogram<u64>,
}

impl Circle {
    fn connect(broker: &Broker, options: &Options, in_flight: u32) -> Outcome<Self> {
        let connect = ConnectionFlags {
            broker: broker.address().to_owned(),
            connection_options: String::new(),
        }
        .connect()?;
        let address = Address { name: options.queue_name.clone(), ..Address::default() };
        let attach = |role| Attachment::make(&connect, &address.plan(role)?, role);
        let (out, back) = (attach(Role::Sender)?, attach(Role::Receiver)?);
        let message = Body::Value("X".repeat(options.content_size()).into()).to_bytes();
        // Three digits are more than the clock is worth; the longest time is a minute.
        let times = Histogram::new_with_bounds(1, 60_000_000_000, 3)
            .map_err(|error| Failure::new("Histogram", format!("{error:?}")))?;
        let mut circle = Self {
            out: out.driver,
            out_link: out.link,
            back: back.driver,
            back_link: back.link,
            message,
            in_flight: in_flight.max(1),
            sent: VecDeque::new(),
            times,
        };
        let credit = circle.credit();
        circle.back.engine().grant(circle.back_link, credit);
        circle.back.flush().map_err(failure)?;
        Ok(circle)
    }

    fn run_for(&mut self, time: Duration) -> Outcome {
        let deadline = Instant::now() + time;
        while Instant::now() < deadline {
            self.send().map_err(failure)?;
            if self.sent.len() < self.in_flight as usize {
                // Without credit there is nothing else to wait for.
                self.turn_out(Wait::Until(Instant::now() + Duration::from_millis(1)))?;
            }
            self.receive()?;
            self.turn_out(Wait::Poll)?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), mochila_client::Error> {
        let Some(mut outgoing) = self.out.engine().outgoing(self.out_link) else { return Ok(()) };
        while self.sent.len() < self.in_flight as usize && outgoing.fits(self.message.len()) {
            self.sent.push_back(Instant::now());
            outgoing.send(0, false, 0, &[&self.message]);
        }
        self.out.flush()
    }

    fn receive(&mut self) -> Outcome {
        let credit = self.credit();
        let Self { back, back_link, sent, times, .. } = self;
        let back_link = *back_link;
        let turned = back.turn(Wait::Forever, |engine, event, _| {
            if let Event::Transfer(transfer) = event
                && !transfer.more
            {
                let (session, id) = (transfer.session, transfer.delivery_id);
                engine.settle_incoming(session, id, id, DeliveryState::Accepted, true);
                if let Some(start) = sent.pop_front() {
                    // Longer than a minute is as good as a minute.
                    times.saturating_record(start.elapsed().as_nanos() as u64);
                }
            }
            if engine.link(back_link).is_some_and(|link| link.credit() < credit / 2) {
                engine.grant(back_link, credit);
            }
            Ok(())
        });
        turned.map_err(failure)?;
        back.flush().map_err(failure)
    }

    fn turn_out(&mut self, wait: Wait) -> Outcome {
        let turned = self.out.turn(wait, |engine, event, _| {
            if let Event::Disposition { session, first, last, .. } = event {
                engine.resolve_outgoing(session, first, last, true, &mut |_, _, _| {});
            }
            Ok(())
        });
        turned.map_err(failure)
    }

    fn credit(&self) -> u32 {
        self.in_flight.saturating_mul(2).max(100)
    }
}

const WARM_UP: Duration = Duration::from_millis(300);
const DURATION: Duration = Duration::from_secs(3);
