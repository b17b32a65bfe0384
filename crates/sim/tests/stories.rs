//! Stories of a broker and its clients, each with many seeds.

use mochila_sim::{play, stories};

#[test]
fn messages_of_all_sizes_arrive_in_order_and_as_they_were_sent() {
    play(&stories::ARRIVAL, 100);
}
