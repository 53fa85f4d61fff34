//! The links of a shard, consumers first: nothing may be sent before they listen.

use std::ops::{Index, IndexMut};

use weigh_model::protocol::Role;

use crate::link::{Link, LinkId, LinkState};

/// All links of a shard, by [`LinkId`].
pub(super) struct Links {
    all: Vec<Link>,
    consumers: u32,
}

impl Links {
    /// No links yet, with memory for this many.
    pub(super) fn with_room(consumers: usize, producers: usize) -> Links {
        Links { all: Vec::with_capacity(consumers + producers), consumers: 0 }
    }

    /// Adds a link without a connection; consumers come before producers.
    pub(super) fn push(&mut self, state: LinkState) {
        self.consumers += u32::from(state.role == Role::Consumer);
        self.all.push(Link { connection: None, state });
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn ids(&self) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        (0..self.all.len() as u32).map(LinkId)
    }

    pub(super) fn consumers(&self) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        (0..self.consumers).map(LinkId)
    }

    pub(super) fn producers(&self) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        (self.consumers..self.all.len() as u32).map(LinkId)
    }

    #[inline]
    pub(super) fn is_consumer(&self, link: LinkId) -> bool {
        link.0 < self.consumers
    }

    /// The place of a producer's link among the producers of the shard.
    #[inline]
    pub(super) fn place(&self, producer: LinkId) -> usize {
        (producer.0 - self.consumers) as usize
    }

    /// The link of a producer at this place; `None` if there is none.
    #[inline]
    pub(super) fn producer(&self, place: u32) -> Option<LinkId> {
        let link = self.consumers + place;
        ((link as usize) < self.all.len()).then_some(LinkId(link))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Link> {
        self.all.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.all.iter_mut()
    }
}

impl Index<LinkId> for Links {
    type Output = Link;

    #[inline]
    fn index(&self, link: LinkId) -> &Link {
        &self.all[link.0 as usize]
    }
}

impl IndexMut<LinkId> for Links {
    #[inline]
    fn index_mut(&mut self, link: LinkId) -> &mut Link {
        &mut self.all[link.0 as usize]
    }
}
