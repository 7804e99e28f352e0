//! Adds entries to JSON and JSONC files, and removes them. Everything else keeps its bytes: an
//! entry that is added is only inserted.

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{Array, Value as Node},
    parse_to_ast,
};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::{
    EditError,
    json_text::{Container, cut, has_comment, insert, replace},
    program::{self, Program},
};
use crate::Agent;

/// An entry of a configuration file. `parent` are the names of the objects above it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Names of the objects above the entry.
    pub parent: Vec<&'static str>,
    /// Where the entry is in its parent.
    pub slot: Slot,
    /// The value.
    pub value: Value,
    /// The program that the entry starts. Other versions of the entry are recognized by it.
    pub program: Program,
}

impl Entry {
    /// Returns the names above the entry with its own.
    fn path(&self) -> Vec<&'static str> {
        let name = match self.slot {
            Slot::Member(name) => name,
            Slot::Element { array, .. } => array,
        };
        [&*self.parent, &[name]].concat()
    }

    /// Returns the path of the entry, such as `mcpServers.sightline` and `hooks.PreToolUse`.
    pub(super) fn name(&self) -> String {
        self.path().join(".")
    }

    /// Returns whether the entry is an element of this array.
    pub(super) fn is_in_array(&self, name: &str) -> bool {
        matches!(&self.slot, Slot::Element { array, .. } if *array == name)
    }
}

/// Where an entry is in its parent.
#[derive(Clone, Debug, PartialEq)]
pub enum Slot {
    /// A member of an object, by its name.
    Member(&'static str),
    /// An element of the array `array`: a group with one hook, which runs this program with
    /// `words`.
    Element {
        /// Name of the array.
        array: &'static str,
        /// The first arguments of the hook.
        words: Vec<String>,
    },
}

/// Adds the entries that are missing and updates outdated ones. An empty text is an empty file.
///
/// # Errors
/// If the text is not JSON, a parent has another type or is written twice, or a member of this name
/// starts another program.
pub fn add(text: &str, entries: &[Entry]) -> Result<String, EditError> {
    let (mark, json) = split_mark(text);
    let mut json = or_empty_object(json)?;
    for entry in entries {
        json = add_entry(&json, entry)?;
        if !find(&json, entry)?.is_some_and(|found| found.is_current) {
            return Err(EditError::OtherChange);
        }
    }
    Ok(format!("{mark}{json}"))
}

fn add_entry(text: &str, entry: &Entry) -> Result<String, EditError> {
    let (root, path) = (parse(text)?, entry.path());
    let found = at(root.as_ref(), &path)?;
    Ok(match (&entry.slot, found) {
        (Slot::Member(_), None) => with(text, &path, &entry.value)?,
        (Slot::Member(_), Some(node)) => {
            let found = Value::from(node.clone());
            if program_of_server(&found, &entry.program).is_none() {
                return Err(EditError::NotOurs(entry.name()));
            }
            replace(text, node, &updated(&found, &entry.value))
        }
        (Slot::Element { .. }, None) => with(text, &path, &json!([entry.value]))?,
        (Slot::Element { words, .. }, Some(Node::Array(list))) => {
            match our_hooks(list, words, &entry.program).first() {
                Some(hook) => replace(text, hook.node, hook.wanted(entry)),
                None => insert(text, &Container::of_array(list), &entry.value, ""),
            }
        }
        (Slot::Element { array, .. }, Some(_)) => return Err(EditError::NotAnArray(array)),
    })
}

/// Sets a value at a path, such as a server in `mcpServers`. Missing objects are added. A number is a place in an array.
/// An empty text is an empty file.
///
/// # Errors
/// If the text is not JSON, or something above the value has another type or is written twice.
pub fn set(text: &str, path: &[impl AsRef<str>], value: &Value) -> Result<String, EditError> {
    let (mark, json) = split_mark(text);
    let json = with(&or_empty_object(json)?, path, value)?;
    Ok(format!("{mark}{json}"))
}

fn with(text: &str, path: &[impl AsRef<str>], value: &Value) -> Result<String, EditError> {
    let Some(root) = parse(text)? else {
        return Err(EditError::NotAnObject(Vec::new()));
    };
    let (steps, node) = follow(&root, path)?;
    let (known, missing) = path.split_at(steps.len());
    Ok(match (missing, node) {
        ([], node) => replace(text, node, value),
        ([name, below @ ..], Node::Object(object)) => {
            let names = below.iter().rev().map(AsRef::as_ref);
            let value = names.fold(value.clone(), |value, name| json!({ name: value }));
            let key = format!("{}: ", Value::from(name.as_ref()));
            insert(text, &Container::of_object(object), &value, &key)
        }
        _ => {
            let names = known.iter().map(|name| name.as_ref().to_owned());
            return Err(EditError::NotAnObject(names.collect()));
        }
    })
}

/// Removes what is at a path, and objects that become empty. Returns `None` if nothing is there.
///
/// # Errors
/// If the text is not JSON, or something on the path is written twice.
pub fn remove_at(text: &str, path: &[impl AsRef<str>]) -> Result<Option<String>, EditError> {
    let (mark, json) = split_mark(text);
    let Some(root) = parse(json)? else {
        return Ok(None);
    };
    let (steps, _) = follow(&root, path)?;
    let is_there = steps.len() == path.len();
    Ok(is_there.then(|| format!("{mark}{}", cut_with_empty(json, steps))))
}

/// Removes the entries, in any version, and objects and arrays that become empty. What is not
/// ours stays.
///
/// # Errors
/// If the text is not JSON, or a parent is written twice.
pub fn remove(text: &str, entries: &[Entry]) -> Result<String, EditError> {
    let (mark, json) = split_mark(text);
    let mut json = json.to_owned();
    for entry in entries {
        while let Some(edited) = without(&json, entry)? {
            json = edited;
        }
    }
    Ok(format!("{mark}{json}"))
}

/// Removes one entry. Returns `None` if there is none.
fn without(text: &str, entry: &Entry) -> Result<Option<String>, EditError> {
    let (Some(root), path) = (parse(text)?, entry.path()) else {
        return Ok(None);
    };
    let (mut steps, node) = follow(&root, &path)?;
    if steps.len() < path.len() {
        return Ok(None);
    }
    let is_ours = match (&entry.slot, node) {
        (Slot::Member(_), node) => {
            program_of_server(&Value::from(node.clone()), &entry.program).is_some()
        }
        (Slot::Element { words, .. }, Node::Array(list)) => {
            match our_hooks(list, words, &entry.program).first() {
                Some(hook) if !hook.is_alone => {
                    let hooks = Container::of_array(hook.hooks);
                    return Ok(Some(cut(text, &hooks, hook.index)));
                }
                Some(hook) => {
                    steps.push((Container::of_array(list), hook.group));
                    true
                }
                None => false,
            }
        }
        _ => false,
    };
    Ok(is_ours.then(|| cut_with_empty(text, steps)))
}

/// Removes the last of some steps, with the objects and arrays that would be empty without it and have no comments.
fn cut_with_empty(text: &str, mut steps: Vec<Step>) -> String {
    while let [.., (above, _), (container, _)] = &*steps
        && above.is_object(text)
        && container.children.len() == 1
        && !has_comment(text, container)
    {
        steps.pop();
    }
    let last = steps.last();
    last.map_or_else(
        || text.to_owned(),
        |(container, index)| cut(text, container, *index),
    )
}

/// Returns whether nothing but empty objects and arrays is left.
pub fn is_empty(text: &str) -> bool {
    fn empty(value: &Value) -> bool {
        match value {
            Value::Object(members) => members.values().all(empty),
            Value::Array(elements) => elements.iter().all(empty),
            _ => false,
        }
    }
    let has_comments = text.contains("//") || text.contains("/*");
    let root = parse(split_mark(text).1);
    !has_comments && root.is_ok_and(|root| root.is_none_or(|root| empty(&root.into())))
}

/// An entry as a file has it.
pub(super) struct Found {
    /// The program as written.
    pub(super) program: String,
    /// Whether the entry is as it would be added, possibly with more members.
    pub(super) is_current: bool,
}

/// Looks up an entry in any version. Returns `None` if there is none of ours.
///
/// # Errors
/// If the text is not JSON, or a parent is written twice.
pub(super) fn find(text: &str, entry: &Entry) -> Result<Option<Found>, EditError> {
    let root = parse(split_mark(text).1)?;
    let Some(node) = at(root.as_ref(), &entry.path())? else {
        return Ok(None);
    };
    Ok(match (&entry.slot, node) {
        (Slot::Member(_), node) => {
            let found = Value::from(node.clone());
            program_of_server(&found, &entry.program).map(|program| Found {
                program,
                is_current: updated(&found, &entry.value) == found,
            })
        }
        (Slot::Element { words, .. }, Node::Array(list)) => {
            let hook = our_hooks(list, words, &entry.program).into_iter().next();
            hook.map(|hook| Found {
                is_current: Value::from(hook.node.clone()) == *hook.wanted(entry),
                program: hook.program,
            })
        }
        _ => None,
    })
}

/// Checks that an agent does not ignore a text because of comments or trailing commas.
///
/// # Errors
/// [`EditError::Ignored`] if it does.
pub(super) fn check(text: &str, agent: Agent) -> Result<(), EditError> {
    let reads_comments = match agent {
        Agent::Claude | Agent::Codex | Agent::Cline => false,
        Agent::Gemini | Agent::Qwen | Agent::Copilot | Agent::Opencode => true,
    };
    let json = split_mark(text).1;
    if reads_comments || json.trim().is_empty() {
        return Ok(());
    }
    // Accepts what `JSON.parse` does, also numbers and depths that a `Value` cannot have.
    serde_json::from_str::<IgnoredAny>(json)
        .map(drop)
        .map_err(|error| EditError::Ignored {
            agent: agent.title(),
            line: error.line(),
        })
}

/// Returns the value of a text as an agent reads it. `None` if it ignores the text.
pub(super) fn value_for(text: &str, agent: Agent) -> Option<Value> {
    check(text, agent).ok().and_then(|()| value(text))
}

/// Returns the value of a text. `None` if it is not JSON.
pub(crate) fn value(text: &str) -> Option<Value> {
    parse(split_mark(text).1).ok()?.map(Value::from)
}

/// Returns our hooks of an entry, each with the pattern of the tools that it concerns.
pub(super) fn hooks(text: &str, entry: &Entry) -> Vec<(Option<String>, Value)> {
    let Slot::Element { words, .. } = &entry.slot else {
        return Vec::new();
    };
    let root = parse(split_mark(text).1).ok().flatten();
    let Ok(Some(Node::Array(list))) = at(root.as_ref(), &entry.path()) else {
        return Vec::new();
    };
    let hooks = our_hooks(list, words, &entry.program);
    let found = hooks.iter().map(|hook| {
        let group = Value::from(list.elements[hook.group].clone());
        let matcher = group["matcher"].as_str().map(str::to_owned);
        (matcher, group["hooks"][hook.index].clone())
    });
    found.collect()
}

/// Splits off a byte order mark.
pub(super) fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { 3 } else { 0 })
}

/// Parses what agents accept as JSON.
///
/// # Errors
/// If it is something else.
pub(crate) fn parse(text: &str) -> Result<Option<Node<'_>>, EditError> {
    // What agents accept besides JSON: comments and trailing commas.
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_extended_string_escapes: false,
        allow_non_finite_numbers: false,
    };
    parse_to_ast(text, &CollectOptions::default(), &options)
        .map(|parsed| parsed.value)
        .map_err(|error| EditError::Syntax {
            format: "JSON",
            line: error.line_display(),
            message: error.kind().to_string(),
        })
}

/// An object or array, and the index of a child.
type Step = (Container, usize);

/// Follows the names of members and places in arrays as far as they are there. Returns the steps, and where they end.
///
/// # Errors
/// If a name is written twice: readers disagree on which one counts.
fn follow<'a, 'b>(
    root: &'b Node<'a>,
    path: &[impl AsRef<str>],
) -> Result<(Vec<Step>, &'b Node<'a>), EditError> {
    let (mut steps, mut node) = (Vec::new(), root);
    for name in path.iter().map(AsRef::as_ref) {
        let (container, place) = match node {
            Node::Object(object) => {
                let members = object.properties.iter().enumerate();
                let mut named = members.filter(|(_, member)| member.name.as_str() == name);
                let place = named.next();
                if named.next().is_some() {
                    return Err(EditError::DuplicateName(name.to_owned()));
                }
                let place = place.map(|(index, member)| (index, &member.value));
                (Container::of_object(object), place)
            }
            Node::Array(array) => {
                let index = name.parse().ok();
                let place =
                    index.and_then(|index: usize| Some((index, array.elements.get(index)?)));
                (Container::of_array(array), place)
            }
            _ => break,
        };
        let Some((index, below)) = place else { break };
        steps.push((container, index));
        node = below;
    }
    Ok((steps, node))
}

/// Returns what is at a path.
///
/// # Errors
/// If something on it is written twice.
fn at<'a, 'b>(
    root: Option<&'b Node<'a>>,
    path: &[impl AsRef<str>],
) -> Result<Option<&'b Node<'a>>, EditError> {
    let Some(root) = root else { return Ok(None) };
    let (steps, node) = follow(root, path)?;
    Ok((steps.len() == path.len()).then_some(node))
}

/// Returns an empty object in place of a text without a value.
fn or_empty_object(json: &str) -> Result<String, EditError> {
    Ok(match parse(json)? {
        Some(_) => json.to_owned(),
        None => format!("{{}}{json}"),
    })
}

/// Returns the program of a server that starts `sightline mcp`.
fn program_of_server(server: &Value, program: &Program) -> Option<String> {
    // A program without arguments.
    if let Value::String(word) = server {
        return program.is_named(word).then(|| word.clone());
    }
    let (word, argument) = match &server["command"] {
        Value::String(word) => (Some(word.as_str()), &server["args"][0]),
        // opencode
        Value::Array(words) => (words.first()?.as_str(), words.get(1)?),
        _ => return None,
    };
    word.filter(|word| program.is_named(word) && argument == "mcp")
        .map(str::to_owned)
}

/// Returns `found` with the command of `wanted`, and the members it lacks. The user's arguments and
/// other members, such as `env` and `enabled`, stay.
fn updated(found: &Value, wanted: &Value) -> Value {
    let (Value::Object(found), Value::Object(wanted)) = (found, wanted) else {
        return wanted.clone();
    };
    let mut all = found.clone();
    for (name, value) in wanted {
        let value = match (found.get(name), value) {
            // opencode: the command with its arguments, which begin with `mcp`
            (Some(Value::Array(found)), Value::Array(wanted)) if name == "command" => wanted
                .iter()
                .chain(found.iter().skip(wanted.len()))
                .cloned()
                .collect(),
            (Some(found), _) if name != "command" => found.clone(),
            _ => value.clone(),
        };
        all.insert(name.clone(), value);
    }
    Value::Object(all)
}

/// One of our hooks in a list of groups.
struct OurHook<'a, 'b> {
    /// The program as written.
    program: String,
    /// Index of the group.
    group: usize,
    /// The hooks of the group.
    hooks: &'b Array<'a>,
    /// Index in `hooks`.
    index: usize,
    /// The group if it has nothing else, else the hook.
    node: &'b Node<'a>,
    is_alone: bool,
}

impl OurHook<'_, '_> {
    /// Returns what an entry has in place of the node.
    fn wanted<'a>(&self, entry: &'a Entry) -> &'a Value {
        match self.is_alone {
            true => &entry.value,
            // The user has moved it into another group.
            false => &entry.value["hooks"][0],
        }
    }
}

/// Returns our hooks with these arguments.
fn our_hooks<'a, 'b>(
    list: &'b Array<'a>,
    words: &[String],
    program: &Program,
) -> Vec<OurHook<'a, 'b>> {
    let mut found = Vec::new();
    for (group, element) in list.elements.iter().enumerate() {
        let Some(object) = element.as_object() else {
            continue;
        };
        let Some(hooks) = object.get_array("hooks") else {
            continue;
        };
        let mut names = object.properties.iter().map(|member| member.name.as_str());
        let is_alone =
            names.all(|name| matches!(name, "matcher" | "hooks")) && hooks.elements.len() == 1;
        for (index, node) in hooks.elements.iter().enumerate() {
            let hook = Value::from(node.clone());
            if let Some(program) = program_of_hook(&hook, words, program) {
                found.push(OurHook {
                    program,
                    group,
                    hooks,
                    index,
                    node: if is_alone { element } else { node },
                    is_alone,
                });
            }
        }
    }
    found
}

/// Returns the program of a hook that runs this program with arguments that begin with `words`.
fn program_of_hook(hook: &Value, words: &[String], program: &Program) -> Option<String> {
    let command = hook["command"].as_str()?;
    match hook["args"].as_array() {
        Some(arguments) => {
            let is_ours = program.is_named(command)
                && arguments.len() >= words.len()
                && arguments.iter().zip(words).all(|(a, b)| a == b);
            is_ours.then(|| command.to_owned())
        }
        None => program::program_of(program, command, words),
    }
}
