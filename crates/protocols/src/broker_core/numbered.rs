//! Queues and consumers by their numbers, and which consumer is next.

use std::collections::VecDeque;

use super::place::{Place, Turn};

/// Things by numbers that are not used again.
#[derive(Debug)]
pub(crate) struct Numbered<T>(Vec<Option<Box<T>>>);

/// A consumer of a queue.
pub(crate) trait Consuming {
    fn place(&self) -> Place;

    /// True if it may get another message.
    fn takes_more(&self) -> bool;

    /// Messages that its shard has to send.
    fn left(&self) -> usize;
}

impl<T> Numbered<T> {
    pub(crate) fn new() -> Numbered<T> {
        Numbered(Vec::new())
    }

    /// Adds one; returns its number.
    pub(crate) fn add(&mut self, own: T) -> u32 {
        self.0.push(Some(Box::new(own)));
        self.0.len() as u32 - 1
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.0.get(number as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.0.get_mut(number as usize)?.as_deref_mut()
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Box<T>> {
        self.0.get_mut(number as usize)?.take()
    }

    /// Removes those of which this is true.
    pub(crate) fn remove_if(&mut self, is_over: impl Fn(&T) -> bool) -> Vec<Box<T>> {
        let places = self.0.iter_mut();
        places.filter_map(|place| place.take_if(|own| is_over(own))).collect()
    }

    /// How many there were so far.
    pub(crate) fn made(&self) -> usize {
        self.0.len()
    }

    /// Those that are there.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten().map(|own| &**own)
    }
}

impl<C: Consuming> Numbered<C> {
    /// The next of the consumers of a queue that can take a message. It is the last one of them
    /// then.
    pub(crate) fn next(&self, of_queue: &mut VecDeque<u32>, turn: &mut Turn<'_>) -> Option<u32> {
        for _ in 0..of_queue.len() {
            of_queue.rotate_left(1);
            let last = *of_queue.back()?;
            let Some(consumer) = self.get(last).filter(|own| own.takes_more()) else { continue };
            let Place { shard, connection, .. } = consumer.place();
            if shard != turn.shard {
                if consumer.left() < INBOX_MAX {
                    return Some(last);
                }
                continue;
            }
            if turn.out.pending_bytes(connection) < PENDING_BYTES_MAX {
                return Some(last);
            }
            turn.out.notify_drained(connection);
        }
        None
    }
}

/// Takes the oldest message of a queue.
pub(crate) fn take_first<M>(ready: &mut VecDeque<M>) -> Option<M> {
    let first = ready.pop_front();
    if ready.is_empty() && ready.capacity() > KEPT {
        *ready = VecDeque::new();
    }
    first
}

/// A consumer with this much in its socket's way gets no more until the socket took it.
const PENDING_BYTES_MAX: usize = 64 * 1024;

/// Messages that another shard may leave for a consumer at once.
const INBOX_MAX: usize = 1000;

/// Room for this many messages is kept in a queue that ran empty.
const KEPT: usize = 1024;
