//! Adds entries to JSON and JSONC files, and removes them. Everything else keeps its bytes: an
//! entry that is added is only inserted.

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{Array, Object, ObjectProp, Value as Node},
    parse_to_ast,
};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::{
    EditError,
    json_text::{Container, cut, has_comment, insert, insert_member, replace},
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
    /// Returns the names above the entry with its own, such as `mcpServers.sightline` and `hooks.PreToolUse`.
    pub(super) fn name(&self) -> String {
        let name = match &self.slot {
            Slot::Member(name) => name,
            Slot::Element { array, .. } => array,
        };
        let names = self.parent.iter().chain([name]);
        names.copied().collect::<Vec<_>>().join(".")
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
    let mut json = match parse(json)? {
        Some(_) => json.to_owned(),
        None => format!("{{}}{json}"),
    };
    for entry in entries {
        // Each insertion changes the positions. There is one for each name, and one for the entry.
        for _ in 0..=entry.parent.len() + 2 {
            match add_step(&json, entry)? {
                Some(edited) => json = edited,
                None => break,
            }
        }
        if !find(&json, entry)?.is_some_and(|found| found.is_current) {
            return Err(EditError::OtherChange);
        }
    }
    Ok(format!("{mark}{json}"))
}

/// Sets a member of the object below `parents`, such as a server in `mcpServers`. Missing objects are added. A number is
/// a place in an array. An empty text is an empty file.
///
/// # Errors
/// If the text is not JSON, or one of them has another type or is written twice.
pub fn set_member(
    text: &str,
    parents: &[impl AsRef<str>],
    name: &str,
    value: &Value,
) -> Result<String, EditError> {
    let (mark, json) = split_mark(text);
    let json = match parse(json)? {
        Some(_) => json.to_owned(),
        None => format!("{{}}{json}"),
    };
    let root = parse(&json)?;
    let mut node = root.as_ref();
    for (depth, parent) in parents.iter().map(AsRef::as_ref).enumerate() {
        let object = match node {
            Some(Node::Object(object)) => object,
            Some(Node::Array(_)) => {
                node = node.map_or(Ok(None), |node| child(node, parent))?;
                continue;
            }
            _ => return Err(not_an_object(&parents[..depth])),
        };
        node = match member(object, parent)? {
            Some(found) => Some(&found.value),
            None => {
                let below = parents[depth + 1..].iter().map(AsRef::as_ref);
                let nested = [name]
                    .into_iter()
                    .chain(below.rev())
                    .fold(value.clone(), |value, name| json!({ name: value }));
                let edited = insert_member(&json, object, parent, &nested);
                return Ok(format!("{mark}{edited}"));
            }
        };
    }
    let Some(Node::Object(object)) = node else {
        return Err(not_an_object(parents));
    };
    let edited = match member(object, name)? {
        Some(known) => replace(&json, &known.value, value).unwrap_or_else(|| json.clone()),
        None => insert_member(&json, object, name, value),
    };
    Ok(format!("{mark}{edited}"))
}

/// Returns what has this name in an object, or this place in an array.
fn child<'a, 'b>(node: &'b Node<'a>, name: &str) -> Result<Option<&'b Node<'a>>, EditError> {
    Ok(match node {
        Node::Object(object) => member(object, name)?.map(|member| &member.value),
        Node::Array(array) => name
            .parse()
            .ok()
            .and_then(|at: usize| array.elements.get(at)),
        _ => None,
    })
}

/// Removes a member of the object below `parents`. Returns `None` if there is none.
///
/// # Errors
/// If the text is not JSON, or one of them is written twice.
pub fn remove_member(
    text: &str,
    parents: &[impl AsRef<str>],
    name: &str,
) -> Result<Option<String>, EditError> {
    let (mark, json) = split_mark(text);
    let root = parse(json)?;
    let mut node = root.as_ref();
    for parent in parents {
        node = node.map_or(Ok(None), |node| child(node, parent.as_ref()))?;
    }
    let Some(Node::Object(object)) = node else {
        return Ok(None);
    };
    if member(object, name)?.is_none() {
        return Ok(None);
    }
    let edited = cut(json, &Container::of_object(object), index_of(object, name));
    Ok(Some(format!("{mark}{edited}")))
}

fn not_an_object(names: &[impl AsRef<str>]) -> EditError {
    EditError::NotAnObject(names.iter().map(|name| name.as_ref().to_owned()).collect())
}

/// Makes one edit towards an entry: adds an object or array above it, or the entry. Returns
/// `None` if the entry is there.
fn add_step(text: &str, entry: &Entry) -> Result<Option<String>, EditError> {
    let root = parse(text)?;
    let Some(Node::Object(top)) = &root else {
        return Err(EditError::NotAnObject(Vec::new()));
    };
    let mut object = top;
    for (depth, name) in entry.parent.iter().enumerate() {
        object = match member(object, name)?.map(|member| &member.value) {
            Some(Node::Object(below)) => below,
            Some(_) => return Err(not_an_object(&entry.parent[..=depth])),
            None => return Ok(Some(insert_member(text, object, name, &json!({})))),
        };
    }
    let (array, words) = match &entry.slot {
        Slot::Member(name) => {
            let Some(member) = member(object, name)? else {
                return Ok(Some(insert_member(text, object, name, &entry.value)));
            };
            let found = Value::from(member.value.clone());
            if !is_our_server(&found, &entry.program) {
                return Err(EditError::NotOurs(entry.name()));
            }
            let updated = updated(&found, &entry.value);
            return Ok(replace(text, &member.value, &updated));
        }
        Slot::Element { array, words } => (array, words),
    };
    Ok(match member(object, array)?.map(|member| &member.value) {
        Some(Node::Array(list)) => match our_hooks(list, words, &entry.program).first() {
            Some(hook) if hook.is_alone => replace(text, &list.elements[hook.group], &entry.value),
            // The user has moved it into another group.
            Some(hook) => replace(text, hook.node, &entry.value["hooks"][0]),
            None => Some(insert(text, &Container::of_array(list), &entry.value, "")),
        },
        Some(_) => return Err(EditError::NotAnArray(array)),
        None => Some(insert_member(text, object, array, &json!([]))),
    })
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
        while let Some(edited) = remove_step(&json, entry)? {
            json = edited;
        }
    }
    Ok(format!("{mark}{json}"))
}

/// Removes one entry. Returns `None` if there is none.
fn remove_step(text: &str, entry: &Entry) -> Result<Option<String>, EditError> {
    let root = parse(text)?;
    let Some(top) = root.as_ref().and_then(Node::as_object) else {
        return Ok(None);
    };
    // The objects above the entry, and the index of the next one in each.
    let mut above: Vec<(&Object<'_>, usize)> = Vec::new();
    let mut object = top;
    for name in &entry.parent {
        let Some(below) = member(object, name)?.and_then(|member| member.value.as_object()) else {
            return Ok(None);
        };
        above.push((object, index_of(object, name)));
        object = below;
    }
    let (mut container, mut index) = match &entry.slot {
        Slot::Member(name) => match member(object, name)? {
            Some(member) if is_our_server(&Value::from(member.value.clone()), &entry.program) => {
                (Container::of_object(object), index_of(object, name))
            }
            _ => return Ok(None),
        },
        Slot::Element { array, words } => {
            let list = member(object, array)?.and_then(|member| member.value.as_array());
            let Some(list) = list else { return Ok(None) };
            let hooks = our_hooks(list, words, &entry.program);
            let Some(hook) = hooks.first() else {
                return Ok(None);
            };
            if !hook.is_alone {
                return Ok(Some(cut(
                    text,
                    &Container::of_array(hook.hooks),
                    hook.index,
                )));
            }
            above.push((object, index_of(object, array)));
            (Container::of_array(list), hook.group)
        }
    };
    // What would be empty without comments is removed too.
    while container.children.len() == 1
        && !has_comment(text, &container)
        && let Some((object, next)) = above.pop()
    {
        (container, index) = (Container::of_object(object), next);
    }
    Ok(Some(cut(text, &container, index)))
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
    let Some(mut object) = root.as_ref().and_then(Node::as_object) else {
        return Ok(None);
    };
    for name in &entry.parent {
        let Some(below) = member(object, name)?.and_then(|member| member.value.as_object()) else {
            return Ok(None);
        };
        object = below;
    }
    Ok(match &entry.slot {
        Slot::Member(name) => member(object, name)?.and_then(|member| {
            let found = Value::from(member.value.clone());
            Some(Found {
                program: program_of_server(&found, &entry.program)?,
                is_current: updated(&found, &entry.value) == found,
            })
        }),
        Slot::Element { array, words } => member(object, array)?
            .and_then(|member| member.value.as_array())
            .and_then(|list| {
                let hook = our_hooks(list, words, &entry.program).into_iter().next()?;
                let is_current = if hook.is_alone {
                    Value::from(list.elements[hook.group].clone()) == entry.value
                } else {
                    Value::from(hook.node.clone()) == entry.value["hooks"][0]
                };
                Some(Found {
                    program: hook.program,
                    is_current,
                })
            }),
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
    let (Some(file), Slot::Element { array, words }) = (value(text), &entry.slot) else {
        return Vec::new();
    };
    let above = entry
        .parent
        .iter()
        .try_fold(&file, |value, name| value.get(name));
    let groups = above.and_then(|above| above.get(array)?.as_array());
    let mut found = Vec::new();
    for group in groups.into_iter().flatten() {
        for hook in group["hooks"].as_array().into_iter().flatten() {
            if program_of_hook(hook, words, &entry.program).is_some() {
                found.push((group["matcher"].as_str().map(str::to_owned), hook.clone()));
            }
        }
    }
    found
}

/// Splits off a byte order mark.
fn split_mark(text: &str) -> (&str, &str) {
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

/// Returns a member of an object.
///
/// # Errors
/// If the name is written twice: readers disagree on which one counts.
fn member<'a, 'b>(
    object: &'b Object<'a>,
    name: &str,
) -> Result<Option<&'b ObjectProp<'a>>, EditError> {
    let mut found = object
        .properties
        .iter()
        .filter(|member| member.name.as_str() == name);
    let first = found.next();
    match found.next() {
        Some(_) => Err(EditError::DuplicateName(name.to_owned())),
        None => Ok(first),
    }
}

/// Returns the index of a member that exists.
fn index_of(object: &Object<'_>, name: &str) -> usize {
    let mut members = object.properties.iter();
    members
        .position(|member| member.name.as_str() == name)
        .unwrap_or_default()
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

fn is_our_server(server: &Value, program: &Program) -> bool {
    program_of_server(server, program).is_some()
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
    node: &'b Node<'a>,
    /// Whether the group has nothing else.
    is_alone: bool,
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
        let Some(hooks) = object
            .get("hooks")
            .and_then(|member| member.value.as_array())
        else {
            continue;
        };
        let members = object.properties.iter();
        let is_plain = members.map(|member| member.name.as_str());
        let is_plain = is_plain
            .into_iter()
            .all(|name| matches!(name, "matcher" | "hooks"));
        for (index, node) in hooks.elements.iter().enumerate() {
            let hook = Value::from(node.clone());
            if let Some(program) = program_of_hook(&hook, words, program) {
                found.push(OurHook {
                    program,
                    group,
                    hooks,
                    index,
                    node,
                    is_alone: is_plain && hooks.elements.len() == 1,
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
