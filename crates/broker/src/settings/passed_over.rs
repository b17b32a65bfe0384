//! Arguments that are not understood and yet no error, of queues and of exchanges.

/// Whether an argument that nobody here understands changes nothing about messages, or its name
/// says that it may be passed over (part 3, 3.2.10).
pub(crate) fn is_passed_over(name: &str) -> bool {
    let is_passed_over = name.starts_with(OPTIONAL) || ELSEWHERE.contains(&name);
    if is_passed_over {
        tracing::debug!(argument = name, "this argument changes nothing here");
    }
    is_passed_over
}

/// Names that begin like this are of what may be ignored.
const OPTIONAL: &str = "x-opt-";
/// What changes nothing about the messages that a queue holds: how the store of an older broker
/// keeps them, how it takes part in a cluster, and what it tells of groups. Not among them are
/// `qpid.trace.id` and `qpid.trace.exclude`: who asks for those counts on them to end loops.
const ELSEWHERE: &[&str] = &[
    "qpid.file_count",
    "qpid.file_size",
    "qpid.efp_partition_num",
    "qpid.efp_pool_file_size",
    "qpid.wcache-page-size",
    "qpid.wcache-num-pages",
    "qpid.paging",
    "qpid.max_pages_loaded",
    "qpid.page_factor",
    "qpid.group_timestamp",
    "qpid.replicate",
];
