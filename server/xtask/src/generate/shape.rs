//! Intermediate representation of wire types, parsed from their JSON Schema.
//!
//! The language writers support only these forms. Any other schema keyword is an error
//! that names the keyword and its location, so that unsupported types are never written
//! incorrectly.

use serde_json::{Map, Value};

use super::GenerateError;
use super::schema::Definitions;

/// A named type.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) doc: String,
    pub(super) body: Body,
}

/// Body of a named type.
#[derive(Debug)]
pub(super) enum Body {
    /// An object. An open object may have additional keys.
    Record {
        fields: Vec<Field>,
        open: bool,
    },
    Choice(Vec<Choice>),
    Alias(Shape),
}

/// A field of a record.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    /// Description and default.
    pub(super) doc: String,
    pub(super) required: bool,
    pub(super) shape: Shape,
}

/// A value of a string enumeration.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) doc: String,
}

/// Type of a value.
#[derive(Debug, PartialEq)]
pub(super) enum Shape {
    Boolean,
    Integer,
    Number,
    Text,
    Reference(String),
    List(Box<Shape>),
    Map {
        key: Box<Shape>,
        value: Box<Shape>,
    },
    Union(Vec<Shape>),
    /// Arbitrary JSON.
    Any,
}

/// Returns every definition, sorted by name.
pub(super) fn all(definitions: &Definitions) -> Result<Vec<Definition>, GenerateError> {
    definitions
        .iter()
        .map(|(name, schema)| {
            let mut keywords = Keywords::of(schema, name)?;
            Ok(Definition {
                name: name.clone(),
                doc: keywords.text("description"),
                body: body(keywords)?,
            })
        })
        .collect()
}

fn body(mut keywords: Keywords) -> Result<Body, GenerateError> {
    if let Some(properties) = keywords.take("properties") {
        return record(keywords, &properties);
    }
    let Some(forms) = keywords.take("oneOf") else {
        return Ok(Body::Alias(shape(keywords)?));
    };
    let choices = keywords.list(&forms, choice)?;
    keywords.finish()?;
    Ok(Body::Choice(choices))
}

fn choice(mut keywords: Keywords) -> Result<Choice, GenerateError> {
    keywords.require("type", "string")?;
    let value = keywords.text("const");
    let doc = keywords.text("description");
    keywords.finish()?;
    Ok(Choice { value, doc })
}

fn record(mut keywords: Keywords, properties: &Value) -> Result<Body, GenerateError> {
    keywords.require("type", "object")?;
    // `false` (settings reject unknown keys) and absent (methods ignore them) give the
    // same client type. `true` allows additional keys.
    let open = match keywords.take("additionalProperties") {
        None => false,
        Some(Value::Bool(open)) => open,
        Some(_) => return Err(keywords.error("`additionalProperties` beside `properties`")),
    };
    let required = keywords.take("required").unwrap_or_default();
    let is_required = |name: &str| {
        required
            .as_array()
            .is_some_and(|names| names.iter().any(|known| known == name))
    };
    let fields = properties
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            let mut keywords = Keywords::of(schema, &format!("{}.{name}", keywords.place))?;
            let mut doc = keywords.text("description");
            if let Some(default) = keywords.take("default") {
                doc.push_str(&format!("\nDefault: `{default}`."));
            }
            Ok(Field {
                name: name.clone(),
                doc,
                required: is_required(name),
                shape: shape(keywords)?,
            })
        })
        .collect::<Result<_, _>>()?;
    keywords.finish()?;
    Ok(Body::Record { fields, open })
}

fn shape(mut keywords: Keywords) -> Result<Shape, GenerateError> {
    // The client types cannot hold the documentation of a part, such as a union
    // variant.
    keywords.take("description");
    let shape = if let Some(target) = keywords.take("$ref") {
        let name = target
            .as_str()
            .and_then(|t| t.strip_prefix("#/definitions/"));
        match name {
            Some(name) => Shape::Reference(name.to_owned()),
            None => return Err(keywords.error(&format!("the reference {target}"))),
        }
    } else if let Some(forms) = keywords.take("allOf") {
        match <[Shape; 1]>::try_from(keywords.list(&forms, shape)?) {
            Ok([only]) => only,
            Err(_) => return Err(keywords.error("`allOf` of several forms")),
        }
    } else if let Some(forms) = keywords.take("anyOf") {
        Shape::Union(keywords.list(&forms, shape)?)
    } else if keywords.left.is_empty() {
        Shape::Any
    } else {
        typed(&mut keywords)?
    };
    keywords.finish()?;
    Ok(shape)
}

fn typed(keywords: &mut Keywords) -> Result<Shape, GenerateError> {
    let name = keywords.text("type");
    match name.as_str() {
        "boolean" => Ok(Shape::Boolean),
        "string" => Ok(Shape::Text),
        "integer" | "number" => {
            keywords.take("minimum");
            keywords.take("maximum");
            Ok(if name == "integer" {
                Shape::Integer
            } else {
                Shape::Number
            })
        }
        "array" => Ok(Shape::List(Box::new(keywords.part("items")?))),
        "object" => {
            let key = match keywords.has("propertyNames") {
                true => keywords.part("propertyNames")?,
                false => Shape::Text,
            };
            Ok(Shape::Map {
                key: Box::new(key),
                value: Box::new(keywords.part("additionalProperties")?),
            })
        }
        other => Err(keywords.error(&format!("the type `{other}`"))),
    }
}

/// Keywords of a schema that are not parsed yet.
struct Keywords {
    place: String,
    left: Map<String, Value>,
}

impl Keywords {
    fn of(schema: &Value, place: &str) -> Result<Self, GenerateError> {
        let keywords = Self {
            place: place.to_owned(),
            left: schema.as_object().cloned().unwrap_or_default(),
        };
        // `true` is equivalent to an object without keywords.
        if !schema.is_object() && *schema != true {
            return Err(keywords.error(&format!("the schema `{schema}`")));
        }
        Ok(keywords)
    }

    fn has(&self, keyword: &str) -> bool {
        self.left.contains_key(keyword)
    }

    fn take(&mut self, keyword: &str) -> Option<Value> {
        self.left.remove(keyword)
    }

    /// Takes a string keyword, empty if absent. Other values stay and are reported by
    /// `finish`.
    fn text(&mut self, keyword: &str) -> String {
        match self.left.get(keyword).and_then(Value::as_str) {
            Some(text) => {
                let text = text.to_owned();
                self.take(keyword);
                text
            }
            None => String::new(),
        }
    }

    fn require(&mut self, keyword: &str, value: &str) -> Result<(), GenerateError> {
        match self.text(keyword) {
            found if found == value => Ok(()),
            found => Err(self.error(&format!("`{keyword}: {found}` instead of `{value}`"))),
        }
    }

    /// Takes the shape of a required subschema.
    fn part(&mut self, keyword: &str) -> Result<Shape, GenerateError> {
        let Some(schema) = self.take(keyword) else {
            return Err(self.error(&format!("no `{keyword}`")));
        };
        shape(Self::of(&schema, &format!("{}/{keyword}", self.place))?)
    }

    fn list<T>(
        &self,
        schemas: &Value,
        read: fn(Self) -> Result<T, GenerateError>,
    ) -> Result<Vec<T>, GenerateError> {
        let Some(schemas) = schemas.as_array() else {
            return Err(self.error("an invalid list of variants"));
        };
        schemas
            .iter()
            .map(|schema| read(Self::of(schema, &self.place)?))
            .collect()
    }

    /// Fails if a keyword was not parsed.
    fn finish(self) -> Result<(), GenerateError> {
        match self.left.keys().next() {
            Some(keyword) => Err(self.error(&format!("the keyword `{keyword}`"))),
            None => Ok(()),
        }
    }

    fn error(&self, what: &str) -> GenerateError {
        GenerateError(format!(
            "The schema of `{}` has {what}, which the client types cannot express. Use another \
             type, or add support to `emit::shape` and every writer.",
            self.place
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(schema: Value) -> Result<Definition, GenerateError> {
        let definitions = Definitions::from([("T".to_owned(), schema)]);
        all(&definitions).map(|mut all| all.remove(0))
    }

    #[test]
    fn unknown_keywords_are_named() {
        let unknown = [
            (json!({ "type": "string", "pattern": "a" }), "`pattern`"),
            (
                json!({ "type": "object", "properties": { "a": { "not": {} } } }),
                "`T.a`",
            ),
            (
                json!({ "type": "object", "properties": {}, "minProperties": 1 }),
                "`minProperties`",
            ),
            (
                json!({ "type": "array", "items": { "type": "string" }, "minItems": 2 }),
                "`minItems`",
            ),
            (
                json!({ "oneOf": [{ "type": "string", "const": "a", "title": "A" }] }),
                "`title`",
            ),
            (json!({ "oneOf": [{ "type": "object" }] }), "`type: object`"),
            (json!({ "type": ["string", "integer"] }), "the type ``"),
            (json!({ "type": "object" }), "no `additionalProperties`"),
            (json!(false), "the schema `false`"),
        ];
        for (schema, named) in unknown {
            let error = one(schema.clone()).unwrap_err().to_string();
            assert!(error.contains(named), "{schema} gave: {error}");
        }
    }

    #[test]
    fn defaults_are_part_of_the_documentation() {
        let definition = one(json!({
            "type": "object",
            "properties": { "a": { "type": "boolean", "description": "On.", "default": true } },
        }))
        .unwrap();
        let Body::Record { fields, .. } = definition.body else {
            panic!("not a record")
        };
        assert_eq!(fields[0].doc, "On.\nDefault: `true`.");
        assert!(!fields[0].required);
    }

    #[test]
    fn a_schema_that_says_nothing_is_anything() {
        let properties = json!({ "a": true, "b": { "description": "Any.", "default": null } });
        let schema =
            json!({ "type": "object", "properties": properties, "additionalProperties": true });
        let Body::Record { fields, open } = one(schema).unwrap().body else {
            panic!("not a record")
        };
        assert!(open);
        assert!(fields.iter().all(|field| field.shape == Shape::Any));
    }
}
