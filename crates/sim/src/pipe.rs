//! One direction of a cable.

use std::collections::VecDeque;

use mochila_engine::pair::Random;

use crate::weather::Weather;

/// Bytes on their way from one end of a connection to the other.
///
/// Like a socket it takes what it has room for, tears it into pieces, delivers them late, and hands
/// out what has arrived in pieces of other sizes.
#[derive(Debug)]
pub(crate) struct Pipe {
    under_way: VecDeque<Parcel>,
    arrived: VecDeque<u8>,
    /// Bytes under way and arrived.
    held: usize,
    weather: Weather,
    end: End,
    /// Nothing arrives any more, and nobody is told.
    silent: bool,
}

#[derive(Debug)]
struct Parcel {
    arrival_ms: u64,
    bytes: Vec<u8>,
}

/// Whether more can come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    /// The writer has hung up: what it wrote still arrives.
    HungUp,
    /// The connection was reset: nothing arrives.
    Lost,
}

/// What came of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// There may be more.
    Some,
    /// Nothing has arrived yet.
    Nothing,
    /// Nothing will arrive any more.
    End,
}

impl Pipe {
    pub(crate) fn new(weather: Weather) -> Pipe {
        Pipe {
            under_way: VecDeque::new(),
            arrived: VecDeque::new(),
            held: 0,
            weather,
            end: End::Open,
            silent: false,
        }
    }

    /// How many bytes it takes now.
    pub(crate) fn room(&self) -> usize {
        match self.end {
            End::Open => self.weather.socket_bytes.saturating_sub(self.held),
            End::HungUp | End::Lost => 0,
        }
    }

    /// Takes bytes out of `from`, as many as there is room for.
    pub(crate) fn write(&mut self, now_ms: u64, random: &mut Random, from: &mut VecDeque<u8>) {
        let mut room = self.room().min(from.len());
        while room > 0 {
            let is_torn = random.chance(50);
            let len = if is_torn { random.between(1, room as u64) as usize } else { room };
            let delay_ms = random.between(0, self.weather.delay_ms);
            let last_ms = self.under_way.back().map_or(0, |last| last.arrival_ms);
            let arrival_ms = match self.silent {
                true => NEVER,
                false => last_ms.max(now_ms + delay_ms),
            };
            let mut bytes = Vec::with_capacity(len);
            move_front(from, len, &mut bytes);
            self.under_way.push_back(Parcel { arrival_ms, bytes });
            self.held += len;
            room -= len;
        }
    }

    /// Whether a piece arrives now.
    pub(crate) fn is_due(&self, now_ms: u64) -> bool {
        self.under_way.front().is_some_and(|parcel| parcel.arrival_ms <= now_ms)
    }

    /// When the next piece arrives.
    pub(crate) fn next_arrival_ms(&self) -> Option<u64> {
        self.under_way.front().map(|parcel| parcel.arrival_ms).filter(|ms| *ms != NEVER)
    }

    /// Lets one piece arrive if it is time; true if it did.
    pub(crate) fn arrive(&mut self, now_ms: u64) -> bool {
        match self.under_way.pop_front_if(|parcel| parcel.arrival_ms <= now_ms) {
            Some(parcel) => {
                self.arrived.extend(parcel.bytes);
                true
            }
            None => false,
        }
    }

    /// Whether reading would not say [`Read::Nothing`].
    pub(crate) fn is_readable(&self) -> bool {
        !self.arrived.is_empty() || self.is_at_end()
    }

    /// Reads at most `most` of what has arrived, usually less.
    pub(crate) fn read(&mut self, random: &mut Random, most: usize, into: &mut Vec<u8>) -> Read {
        let most = most.min(self.arrived.len());
        if most == 0 {
            return if self.is_at_end() { Read::End } else { Read::Nothing };
        }
        let len = if random.chance(50) { most } else { random.between(1, most as u64) as usize };
        move_front(&mut self.arrived, len, into);
        self.held -= len;
        Read::Some
    }

    /// The writer hangs up.
    pub(crate) fn hang_up(&mut self) {
        if self.end == End::Open {
            self.end = End::HungUp;
        }
    }

    /// The connection is reset: what has not been read is lost.
    pub(crate) fn lose(&mut self) {
        self.end = End::Lost;
        self.silent = false;
        self.under_way.clear();
        self.arrived.clear();
        self.held = 0;
    }

    /// From now on nothing arrives.
    pub(crate) fn silence(&mut self) {
        self.silent = true;
        for parcel in &mut self.under_way {
            parcel.arrival_ms = NEVER;
        }
    }

    /// Whether the connection was reset.
    pub(crate) fn is_lost(&self) -> bool {
        self.end == End::Lost
    }

    /// Whether reading says [`Read::End`], now or when all has been read.
    pub(crate) fn is_ended(&self) -> bool {
        self.end == End::Lost || (self.end == End::HungUp && !self.silent)
    }

    fn is_at_end(&self) -> bool {
        match self.end {
            End::Open => false,
            End::HungUp => !self.silent && self.under_way.is_empty() && self.arrived.is_empty(),
            End::Lost => true,
        }
    }
}

/// Moves the first `len` bytes, not one by one.
fn move_front(from: &mut VecDeque<u8>, len: usize, into: &mut Vec<u8>) {
    let (first, second) = from.as_slices();
    let split = len.min(first.len());
    into.extend_from_slice(&first[..split]);
    into.extend_from_slice(&second[..len - split]);
    from.drain(..len);
}

const NEVER: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe(socket_bytes: usize) -> (Pipe, Random) {
        (Pipe::new(Weather { delay_ms: 5, socket_bytes }), Random::new(1))
    }

    fn drain(pipe: &mut Pipe, random: &mut Random, now_ms: u64) -> (Vec<u8>, Read) {
        while pipe.arrive(now_ms) {}
        let mut bytes = Vec::new();
        loop {
            match pipe.read(random, usize::MAX, &mut bytes) {
                Read::Some => {}
                end => return (bytes, end),
            }
        }
    }

    #[test]
    fn what_goes_in_comes_out_in_order_and_not_before_its_time() {
        let (mut pipe, mut random) = pipe(1000);
        let mut bytes: VecDeque<u8> = (0..=255).collect();
        pipe.write(100, &mut random, &mut bytes);
        assert!(bytes.is_empty());
        assert!(pipe.next_arrival_ms().is_some_and(|ms| ms >= 100));
        let (read, end) = drain(&mut pipe, &mut random, 105);
        assert_eq!((read, end), ((0..=255).collect(), Read::Nothing));
    }

    #[test]
    fn a_pipe_takes_no_more_than_it_has_room_for_until_something_is_read() {
        let (mut pipe, mut random) = pipe(10);
        let mut bytes: VecDeque<u8> = (0..15).collect();
        pipe.write(0, &mut random, &mut bytes);
        assert_eq!((bytes.len(), pipe.room()), (5, 0));
        drain(&mut pipe, &mut random, 5);
        assert_eq!(pipe.room(), 10);
    }

    #[test]
    fn who_hangs_up_is_heard_to_the_end_and_who_resets_is_not() {
        for reset in [false, true] {
            let (mut pipe, mut random) = pipe(10);
            pipe.write(0, &mut random, &mut VecDeque::from([1, 2, 3]));
            pipe.hang_up();
            if reset {
                pipe.lose();
            }
            let (read, end) = drain(&mut pipe, &mut random, 5);
            assert_eq!((read.len(), end), (if reset { 0 } else { 3 }, Read::End));
        }
    }

    #[test]
    fn in_silence_nothing_arrives_and_the_room_runs_out() {
        let (mut pipe, mut random) = pipe(4);
        pipe.silence();
        let mut bytes: VecDeque<u8> = (0..10).collect();
        pipe.write(0, &mut random, &mut bytes);
        let (read, end) = drain(&mut pipe, &mut random, u64::MAX - 1);
        assert_eq!((read.len(), end, pipe.room()), (0, Read::Nothing, 0));
    }
}
