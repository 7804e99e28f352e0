//! Which server a message of the agent concerns.

use serde_json::{Value, value::RawValue};

use super::{
    Hub,
    hosted::Hosted,
    names::{Tool, exposed, name_of},
};
use crate::message::Object;

/// Members of params that name something of a server.
const NAMING: &[&str] = &["name", "taskId", "uri"];

impl Hub {
    fn usable(&self) -> impl Iterator<Item = (usize, &Hosted)> {
        let servers = self.servers.iter().enumerate();
        servers.filter(|(_, server)| server.is_usable())
    }

    /// Returns the server of a tool, and its name there.
    pub(super) fn find_tool(&self, name: &str) -> Option<(usize, String)> {
        let listed = self.usable().find_map(|(at, server)| {
            let is_it = |tool: &&Tool| tool.offered && tool.exposed == name;
            let tool = server.tools.iter().find(is_it)?;
            Some((at, tool.name.clone()))
        });
        listed.or_else(|| {
            // Servers whose lists are not known yet.
            self.usable().find_map(|(at, server)| {
                let rest = name.strip_prefix(server.server.prefix())?;
                let tool = rest.strip_prefix("__")?;
                let may_have_it = server.lists.is_none() && server.server.entry.tools.offers(tool);
                may_have_it.then(|| (at, tool.to_owned()))
            })
        })
    }

    /// Returns the server of a prompt, and its name there.
    pub(super) fn find_prompt(&self, name: &str) -> Option<(usize, String)> {
        self.usable().find_map(|(at, server)| {
            let lists = server.lists.as_ref()?;
            let mut own = lists.prompts.iter().map(|prompt| name_of(prompt));
            Some((
                at,
                own.find(|own| exposed(server.server.prefix(), own) == name)?,
            ))
        })
    }

    /// Returns the server of a resource, and its URI there.
    pub(super) fn owner_of(&self, uri: &str) -> Option<(usize, String)> {
        if let Some((name, own)) = uri
            .strip_prefix("mcp+")
            .and_then(|rest| rest.split_once(':'))
        {
            let (at, _) = self
                .usable()
                .find(|(_, server)| server.server.name == name)?;
            return Some((at, own.to_owned()));
        }
        let has = |list: &[Box<RawValue>], member: &str, fits: &dyn Fn(&str) -> bool| {
            list.iter().any(|item| {
                let item = Object::parse(item.get()).unwrap_or_default();
                item.text(member).is_some_and(|own| fits(&own))
            })
        };
        let listed = self.usable().find(|(_, server)| {
            let lists = server.lists.as_ref();
            lists.is_some_and(|lists| has(&lists.resources, "uri", &|own| own == uri))
        });
        let templated = || {
            self.usable().find(|(_, server)| {
                let fits = |own: &str| uri.starts_with(own.split('{').next().unwrap_or(own));
                let lists = server.lists.as_ref();
                lists.is_some_and(|lists| has(&lists.templates, "uriTemplate", &fits))
            })
        };
        listed
            .or_else(templated)
            .map(|(at, _)| (at, uri.to_owned()))
    }

    /// Returns the server of a message whose method is not known here, by what its params name, with the value of
    /// that member there. If they name nothing, it is the only server.
    pub(super) fn owner_of_params(
        &self,
        params: &Object<'_>,
    ) -> Option<(usize, Option<(&'static str, Value)>)> {
        let with = |member: &'static str| {
            move |(at, own): (usize, String)| (at, Some((member, own.into())))
        };
        let named = params.text("name").and_then(|name| {
            let found = self.find_tool(&name).or_else(|| self.find_prompt(&name));
            found.map(with("name"))
        });
        let of_uri = || {
            let uri = params.text("uri")?;
            self.owner_of(&uri).map(with("uri"))
        };
        let of_task = || {
            let uid = self.tasks.get(&params.text("taskId")?)?;
            Some((self.position(*uid)?, None))
        };
        let only = || {
            let mut usable = self.usable();
            let (at, _) = usable.next()?;
            let names_nothing = NAMING.iter().all(|member| params.raw(member).is_none());
            (names_nothing && usable.next().is_none()).then_some((at, None))
        };
        named.or_else(of_uri).or_else(of_task).or_else(only)
    }
}
