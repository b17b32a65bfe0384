//! Stories of a broker and its clients, each with many seeds.

use mochila_sim::{play, stories};

/// Makes a test of every story; a test that no story is left out of is below.
macro_rules! tests {
    ($($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                let (story, seeds) = stories::named(stringify!($name));
                play(&story, seeds);
            }
        )+

        #[test]
        fn every_story_is_a_test() {
            let tested = [$(stringify!($name)),+];
            let told: Vec<_> = stories::ALL.iter().map(|(story, _)| story.name).collect();
            assert_eq!(tested[..], told[..]);
        }
    };
}

tests! {
    messages_of_all_sizes_arrive_in_order_and_as_they_were_sent
    small_windows_and_a_credit_of_one_do_not_stall_anybody
    one_link_may_send_to_many_queues_and_order_is_kept_in_each
    every_drain_is_answered_and_credit_after_it_works
    browsers_see_every_message_once_and_take_none
    what_one_consumer_does_not_want_another_gets_unless_it_was_rejected
    what_a_consumer_holds_goes_to_others_when_its_link_goes
    only_one_consumer_is_alone_at_a_time_and_browsers_do_not_count
    who_selects_gets_what_he_wants_in_order_and_does_not_wait_for_it
    urgent_messages_go_first_and_those_of_one_level_in_order
    a_message_group_is_with_one_consumer_at_a_time_and_in_order
    the_last_value_of_each_key_is_never_lost_and_is_the_only_one
    who_selects_from_a_queue_of_any_kind_gets_what_he_wants_and_browses_it
    connections_that_break_in_the_middle_of_messages_lose_nothing_that_was_accepted
    who_falls_silent_is_given_up_and_what_he_holds_goes_to_others
    who_does_not_read_holds_nobody_up_and_gets_no_endless_output
    aborted_messages_are_not_delivered_and_cost_no_credit
    who_shows_a_wrong_password_is_not_let_in_and_may_try_again
    a_full_queue_refuses_or_holds_back_and_goes_on_when_there_is_room
    a_ring_drops_the_oldest_that_nobody_holds_and_counts_them
    the_nodes_memory_is_never_exceeded_and_all_of_it_comes_back
    who_respects_his_credit_is_not_refused_for_want_of_memory_and_gets_more_in_the_end
    who_sends_too_large_a_message_loses_his_link_and_nothing_that_was_accepted
    a_few_messages_that_stay_do_not_hold_the_memory_of_those_that_are_gone
    messages_expire_wherever_they_stand_and_are_counted
    large_messages_that_the_disk_has_no_room_for_are_refused_and_the_others_arrive
    whoever_uses_transactions_gets_all_of_each_or_nothing_whatever_happens_to_him
    queues_may_be_changed_purged_and_deleted_while_they_are_used
    a_connection_that_an_operator_closes_gives_everything_back_and_may_come_again
    a_dynamic_queue_goes_with_its_link_however_that_goes
    queues_that_nobody_uses_any_more_go_and_come_back_when_somebody_does
    everything_at_once
}
