//! Group identifiers for a stream of messages.

/// What groups are to look like.
#[derive(Clone, Debug)]
pub(crate) struct GroupSettings {
    pub(crate) prefix: String,
    /// Messages in a group, or at most so many when sizes are random.
    pub(crate) size: u32,
    pub(crate) random_size: bool,
    /// How many groups are open at a time, each getting one message in turn.
    pub(crate) interleave: u32,
}

/// Hands out group identifiers, one per message.
#[derive(Debug)]
pub(crate) struct Groups {
    settings: GroupSettings,
    open: Vec<Group>,
    turn: usize,
    next_suffix: u32,
    seed: u64,
}

#[derive(Debug)]
struct Group {
    suffix: u32,
    left: u32,
}

impl Groups {
    /// The same seed gives the same sizes.
    pub(crate) fn new(settings: GroupSettings, seed: u64) -> Self {
        let mut groups = Self { settings, open: Vec::new(), turn: 0, next_suffix: 0, seed };
        for _ in 0..groups.settings.interleave.max(1) {
            let group = groups.new_group();
            groups.open.push(group);
        }
        groups
    }

    /// The number of the next message's group; [`Groups::write_name`] makes the identifier.
    pub(crate) fn next_suffix(&mut self) -> u32 {
        if self.turn >= self.open.len() {
            self.turn = 0;
        }
        let group = &mut self.open[self.turn];
        let suffix = group.suffix;
        group.left = group.left.saturating_sub(1);
        if group.left == 0 {
            // The new group goes to the end of the round, as a queue of open groups would have it.
            let group = self.new_group();
            self.open.push(group);
            self.open.remove(self.turn);
        } else {
            self.turn += 1;
        }
        suffix
    }

    /// Writes the identifier of the group with this number over `name`.
    pub(crate) fn write_name(&self, suffix: u32, name: &mut String) {
        use std::fmt::Write as _;
        name.clear();
        let _ = write!(name, "{}{suffix}", self.settings.prefix);
    }

    fn new_group(&mut self) -> Group {
        let suffix = self.next_suffix;
        self.next_suffix = self.next_suffix.wrapping_add(1);
        let size = self.settings.size.max(1);
        let left = if self.settings.random_size {
            (self.random() % u64::from(size)) as u32 + 1
        } else {
            size
        };
        Group { suffix, left }
    }

    /// xorshift64*: sizes only have to differ, not to be unpredictable.
    fn random(&mut self) -> u64 {
        self.seed |= 1;
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        self.seed.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(size: u32, interleave: u32) -> Groups {
        let prefix = "GROUP-".to_owned();
        Groups::new(GroupSettings { prefix, size, random_size: false, interleave }, 1)
    }

    fn names(groups: &mut Groups, count: usize) -> Vec<u32> {
        (0..count).map(|_| groups.next_suffix()).collect()
    }

    #[test]
    fn a_group_is_filled_before_the_next_one_begins() {
        assert_eq!(names(&mut groups(3, 1), 7), [0, 0, 0, 1, 1, 1, 2]);
    }

    #[test]
    fn interleaved_groups_get_one_message_in_turn() {
        assert_eq!(names(&mut groups(2, 3), 12), [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
    }

    #[test]
    fn random_sizes_stay_within_the_size_asked_for_and_differ() {
        let settings =
            GroupSettings { prefix: String::new(), size: 5, random_size: true, interleave: 1 };
        let mut groups = Groups::new(settings, 42);
        let mut sizes = vec![0_usize; 200];
        for _ in 0..400 {
            let suffix = groups.next_suffix() as usize;
            sizes[suffix] += 1;
        }
        let last = sizes.iter().rposition(|size| *size > 0).unwrap();
        let complete = &sizes[..last];
        assert!(complete.iter().all(|size| (1..=5).contains(size)), "{complete:?}");
        assert!((1..=5).all(|size| complete.contains(&size)), "{complete:?}");
    }

    #[test]
    fn names_are_the_prefix_and_a_number() {
        let mut name = String::new();
        groups(1, 1).write_name(17, &mut name);
        assert_eq!(name, "GROUP-17");
    }
}
