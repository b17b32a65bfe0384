//! State that many threads give work to and one thread at a time works on.

use crate::sync::{Arc, Mutex, lock};

/// State `S` together with the work `W` that was posted for it.
///
/// Whoever posts to an idle inbox is given its [`Turn`] and with it the duty to do the work; posting
/// to a busy one leaves the work to the thread that is busy with it, which looks again before it
/// gives up its turn. So nobody waits for anybody, no two threads work on one state, and no posted
/// work is left lying:
///
/// ```text
///          post: Some(Turn)             run: nothing left
///   Idle ───────────────────▶ Taken ───────────────────────▶ Idle
///                             │   ▲
///                             └───┘ post: None, run: another round
/// ```
///
/// One lock guards both the posted work and the mark that says whether the turn is taken: checking
/// for more work and giving up the turn are one step. Cloning gives another handle to the same inbox.
pub struct Inbox<S, W>(Arc<Shared<S, W>>);

/// What collects items until a turn takes them: a list, or flags that merge equal items.
pub trait Work: Default {
    /// What is posted.
    type Item;

    /// Adds one item.
    fn add(&mut self, item: Self::Item);

    /// Whether there is nothing to do.
    fn is_empty(&self) -> bool;

    /// Forgets everything, but may keep its memory for the next items.
    fn clear(&mut self);
}

impl<T> Work for Vec<T> {
    type Item = T;

    fn add(&mut self, item: T) {
        self.push(item);
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn clear(&mut self) {
        self.clear();
    }
}

/// The right and the duty to work on an inbox; it can be handed to another thread.
///
/// Dropping it gives the right back without doing the duty: what was posted then waits for the next
/// post. That is only meant for a panic in the middle of a visit and for shutting down.
#[must_use = "work that was posted waits for ever if nobody runs the turn"]
pub struct Turn<S, W: Work> {
    inbox: Option<Inbox<S, W>>,
    again: bool,
}

/// What a visit to the state has left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// Nothing, until something is posted.
    Done,
    /// More, although nothing may have been posted: visit again.
    Again,
}

impl<S, W: Work> Inbox<S, W> {
    /// Creates an idle inbox.
    pub fn new(state: S) -> Self {
        let posted = Posted { work: W::default(), taken: false };
        Self(Arc::new(Shared { posted: Mutex::new(posted), state: Mutex::new(state) }))
    }

    /// Leaves an item of work, and takes the turn if nobody has it.
    pub fn post(&self, item: W::Item) -> Option<Turn<S, W>> {
        {
            let mut posted = lock(&self.0.posted);
            posted.work.add(item);
            if posted.taken {
                return None;
            }
            posted.taken = true;
        }
        Some(Turn { inbox: Some(self.clone()), again: false })
    }

    /// Looks at the state between two visits; waits for a visit that is under way.
    pub fn with_state<R>(&self, look: impl FnOnce(&mut S) -> R) -> R {
        look(&mut lock(&self.0.state))
    }
}

impl<S, W> Clone for Inbox<S, W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S, W: Work> Turn<S, W> {
    /// Visits the state until there is nothing left to do, or `rounds` times.
    ///
    /// Each visit gets all work that was posted since the one before; `spare` is an empty collection
    /// that changes places with it, so that no visit allocates. If there is still something to do
    /// after the last round the turn is returned: run it again later, or hand it to another thread.
    pub fn run(
        mut self,
        spare: &mut W,
        rounds: usize,
        mut visit: impl FnMut(&mut S, &mut W) -> Visit,
    ) -> Option<Self> {
        debug_assert!(spare.is_empty(), "what is left in `spare` would be done twice");
        let shared = Arc::clone(&self.inbox.as_ref()?.0);
        for left in (0..=rounds).rev() {
            {
                let mut posted = lock(&shared.posted);
                if posted.work.is_empty() && !self.again {
                    posted.taken = false;
                    self.inbox = None;
                    return None;
                }
                if left == 0 {
                    break;
                }
                std::mem::swap(&mut posted.work, spare);
            }
            self.again = visit(&mut lock(&shared.state), spare) == Visit::Again;
            spare.clear();
        }
        Some(self)
    }

    /// The inbox that this is the turn of.
    pub fn inbox(&self) -> &Inbox<S, W> {
        self.inbox.as_ref().expect("only `run` takes the inbox out, and it consumes the turn")
    }
}

impl<S, W: Work> Drop for Turn<S, W> {
    fn drop(&mut self) {
        if let Some(inbox) = self.inbox.take() {
            lock(&inbox.0.posted).taken = false;
        }
    }
}

struct Shared<S, W> {
    posted: Mutex<Posted<W>>,
    /// Locked by the holder of the turn and by observers only, so it is practically never contended.
    state: Mutex<S>,
}

struct Posted<W> {
    work: W,
    taken: bool,
}
