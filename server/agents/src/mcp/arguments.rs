//! Checks the arguments of a call against the schema of its tool.
//!
//! Clients write a whole number as `2` or `2.0`, which JSON Schema does not distinguish, and an absent
//! argument as `null`.

use serde_json::{Map, Number, Value};

use super::Tool;

/// Maximum number in arguments. Larger ones mean the same.
const MAX_NUMBER: u32 = u32::MAX;

/// Returns the arguments that the tool has, with plain numbers and without `null`.
///
/// # Errors
/// What is wrong with an argument, for the model.
pub fn checked(tool: &Tool, arguments: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut checked = Map::new();
    for (name, value) in arguments {
        // Requests have options that agents must not set.
        if let Some(schema) = tool.input_schema["properties"].get(&name)
            && !value.is_null()
        {
            let value = checked_value(&name, schema, value)?;
            checked.insert(name, value);
        }
    }
    let required = tool.input_schema["required"].as_array();
    let mut required = required.into_iter().flatten().filter_map(Value::as_str);
    match required.find(|name| !checked.contains_key(*name)) {
        Some(missing) => Err(format!("{missing} is missing")),
        None => Ok(checked),
    }
}

fn checked_value(name: &str, schema: &Value, value: Value) -> Result<Value, String> {
    let expected = match schema["type"].as_str() {
        Some("integer") => match whole_number(&value) {
            Some(number) => return Ok(number.into()),
            None => "a whole number of at least 1",
        },
        Some("string") if !value.is_string() => "a text",
        Some("boolean") if !value.is_boolean() => "true or false",
        Some("array") => match value {
            Value::Array(items) => {
                let items = items.into_iter().map(|item| {
                    checked_value(&format!("each item of {name}"), &schema["items"], item)
                });
                return items.collect::<Result<Vec<_>, _>>().map(Value::Array);
            }
            _ => "a list",
        },
        _ => return Ok(value),
    };
    Err(format!("{name} must be {expected}, not {value}"))
}

/// Returns a number of at least 1. A larger one than [`MAX_NUMBER`] is lowered.
fn whole_number(value: &Value) -> Option<u32> {
    let number = value.as_number().and_then(Number::as_f64)?;
    let is_whole = number >= 1.0 && number.fract() == 0.0;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is a whole number within the range"
    )]
    is_whole.then(|| number.min(f64::from(MAX_NUMBER)) as u32)
}
