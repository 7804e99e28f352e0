//! The lists of a server: what it sends, and what is kept of earlier starts.

use serde_json::{json, value::RawValue};
use sightline_agents::servers::store::Lists;

use super::{
    super::names::{Tool, hash, name_of, tools},
    Hosted, LISTS, Purpose,
};
use crate::message::Object;

fn list_mut(lists: &mut Lists, kind: usize) -> &mut Vec<Box<RawValue>> {
    [
        &mut lists.tools,
        &mut lists.prompts,
        &mut lists.resources,
        &mut lists.templates,
    ][kind]
}

impl Hosted {
    /// Ignores the answers to requests for lists.
    pub(super) fn drop_lists(&mut self) {
        for request in self.in_flight.values_mut() {
            if matches!(request.purpose, Purpose::List { .. }) {
                request.purpose = Purpose::Dropped;
            }
        }
    }

    /// Notes a page of a list. Returns whether all lists are there.
    pub(in crate::hub) fn listed(
        &mut self,
        kind: usize,
        mut items: Vec<Box<RawValue>>,
        result: &Object<'_>,
    ) -> bool {
        let (_, method, member) = LISTS[kind];
        let page = result
            .raw(member)
            .and_then(|raw| serde_json::from_str::<Vec<Box<RawValue>>>(raw.get()).ok());
        items.extend(page.unwrap_or_default());
        if let Some(cursor) = result.text("nextCursor") {
            self.request(
                method,
                &json!({ "cursor": cursor }),
                Purpose::List { kind, items },
            );
            return false;
        }
        *list_mut(&mut self.fetched, kind) = items;
        !self.awaits_lists()
    }

    /// Keeps a list of an earlier start.
    pub(in crate::hub) fn keep_list(&mut self, kind: usize) {
        if let Some(old) = &mut self.lists {
            list_mut(&mut self.fetched, kind).clone_from(list_mut(old, kind));
        }
    }

    /// Uses the lists that came. Returns the numbers of those that differ.
    pub(in crate::hub) fn use_lists(&mut self, accepted: i64) -> Vec<usize> {
        let mut new = std::mem::take(&mut self.fetched);
        let mut old = self.lists.take().unwrap_or_default();
        let of = |lists: &mut Lists, kind: usize| {
            list_mut(lists, kind)
                .iter()
                .map(|item| item.get().to_owned())
                .collect::<Vec<_>>()
        };
        let changed: Vec<usize> = (0..LISTS.len())
            .filter(|kind| of(&mut old, *kind) != of(&mut new, *kind))
            .collect();
        let definitions: Vec<(String, String)> = new
            .tools
            .iter()
            .map(|tool| (name_of(tool), hash(tool.get())))
            .collect();
        if accepted > old.pinned_at {
            new.pinned_at = accepted;
        } else {
            new.pinned_at = old.pinned_at;
            new.pins = old.pins;
        }
        for (name, definition) in definitions {
            let pin = new
                .pins
                .entry(name.clone())
                .or_insert_with(|| definition.clone());
            if *pin != definition && changed.contains(&0) {
                self.log(&format!(
                    "--- the definition of the tool {name} has changed"
                ));
            }
        }
        self.write_lists(&new);
        self.lists = Some(new);
        self.note_tools();
        let tools = self.tools.iter().map(Tool::report).collect();
        if let Err(error) = self.store.write_seen_tools(&self.server, tools) {
            tracing::warn!(%error, "cannot store the tools of a server");
        }
        changed
    }

    pub(super) fn note_tools(&mut self) {
        let lists = self.lists.iter();
        self.tools = lists.flat_map(|lists| tools(&self.server, lists)).collect();
    }
}
