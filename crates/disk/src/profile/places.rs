//! Where a profile's figures are in its file.

use std::collections::BTreeMap;

use super::fault::At;
#[cfg(feature = "toml")]
use super::table::Item;

/// Locations of a profile's parts in its file, for messages.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The file, when no better location is known.
    pub whole: At,
    /// Each zone.
    pub zones: Vec<At>,
    /// Each point of the seek table.
    pub seek: Vec<At>,
    /// Each point of the write seek table.
    pub write_seek: Vec<At>,
    /// Each remap.
    pub remaps: Vec<At>,
    /// Single keys, by path.
    pub keyed: BTreeMap<String, At>,
    /// Ranges of cylinders that the file declares empty.
    pub unused: Vec<(u32, u32)>,
    /// The seek tables are DiskSim's: oddities are warnings, not errors.
    pub odd_seeks: bool,
}

impl Places {
    /// Creates locations that only know the file.
    pub(super) fn new(whole: At) -> Places {
        Places {
            whole,
            zones: Vec::new(),
            seek: Vec::new(),
            write_seek: Vec::new(),
            remaps: Vec::new(),
            keyed: BTreeMap::new(),
            unused: Vec::new(),
            odd_seeks: false,
        }
    }

    /// Records the location of a key.
    #[cfg(feature = "toml")]
    pub(super) fn remember(&mut self, path: &str, item: Option<Item>) {
        if let Some(item) = item {
            self.keyed.insert(path.into(), item.at);
        }
    }

    /// Records the location of an item that stands for a key of a profile file.
    #[cfg(feature = "disksim")]
    pub(super) fn remember_at(&mut self, path: &str, at: &At) {
        self.keyed.insert(path.into(), at.clone());
    }

    pub(super) fn key(&self, path: &str) -> &At {
        self.keyed.get(path).unwrap_or(&self.whole)
    }

    pub(super) fn nth<'a>(&'a self, list: &'a [At], i: usize) -> &'a At {
        list.get(i).unwrap_or(&self.whole)
    }
}
