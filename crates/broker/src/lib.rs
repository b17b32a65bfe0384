//! Messages, queues and the memory budget: pure machines and the locks around them.
