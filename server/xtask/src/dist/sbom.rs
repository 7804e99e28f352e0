//! The software bill of materials: the crates that the programs contain, as CycloneDX.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use serde_json::{Value, json};
use toml_edit::DocumentMut;

use super::{Output, Result, VERSION, output_of};
use crate::repository;

/// The packages with programs.
const PROGRAMS: [&str; 2] = ["sightline", "sightline-gateway"];

/// Writes `sightline-VERSION.cdx.json`. Depends on `Cargo.lock` only, so it is the same on every machine.
pub(super) fn write(output: &Output) -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--locked", "--format-version=1"]);
    let metadata: Value = serde_json::from_slice(&output_of(cargo.current_dir(repository()))?)?;
    let lock: DocumentMut = fs::read_to_string(repository().join("Cargo.lock"))?.parse()?;
    let document = document(&metadata, &checksums(&lock));
    let name = format!("sightline-{VERSION}.cdx.json");
    output.write(&name, format!("{document:#}\n").as_bytes())
}

/// Returns the SHA-256 checksums of crates by name and version.
fn checksums(lock: &DocumentMut) -> BTreeMap<(String, String), String> {
    let packages = lock["package"].as_array_of_tables().into_iter().flatten();
    packages
        .filter_map(|package| {
            let text = |key: &str| Some(package.get(key)?.as_str()?.to_owned());
            Some(((text("name")?, text("version")?), text("checksum")?))
        })
        .collect()
}

fn document(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> = list(&metadata["packages"])
        .into_iter()
        .map(|package| (text(&package["id"]), package))
        .collect();
    // Dependencies of tests are not part of a program.
    let needed: BTreeMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let is_needed = |dep: &&Value| {
                let kinds = list(&dep["dep_kinds"]);
                kinds.iter().any(|kind| kind["kind"] != "dev")
            };
            let deps = list(&node["deps"]);
            let ids = deps.iter().filter(is_needed).map(|dep| text(&dep["pkg"]));
            (text(&node["id"]), ids.collect())
        })
        .collect();
    let is_program = |package: &Value| PROGRAMS.iter().any(|name| package["name"] == *name);
    let mut todo: Vec<String> = packages
        .iter()
        .filter(|(_, package)| is_program(package))
        .map(|(id, _)| id.clone())
        .collect();
    let mut found = BTreeSet::new();
    while let Some(id) = todo.pop() {
        if found.insert(id.clone()) {
            todo.extend(needed.get(&id).into_iter().flatten().cloned());
        }
    }
    let reference = |id: &String| {
        let package = packages.get(id).unwrap_or(&Value::Null);
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        (format!("pkg:cargo/{name}@{version}"), name, version)
    };
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for id in &found {
        let (purl, name, version) = reference(id);
        let mut component = json!({
            "type": if is_program(&packages[id]) { "application" } else { "library" },
            "bom-ref": purl,
            "purl": purl,
            "name": name,
            "version": version,
        });
        if let Some(license) = packages[id]["license"].as_str() {
            // Older crates separate alternatives with a slash.
            component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
        }
        if let Some(checksum) = checksums.get(&(name, version)) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        components.push(component);
        let on: BTreeSet<String> = needed
            .get(id)
            .into_iter()
            .flatten()
            .map(|id| reference(id).0)
            .collect();
        dependencies.push(json!({ "ref": purl, "dependsOn": on }));
    }
    let by = |key: &'static str| move |value: &Value| text(&value[key]);
    components.sort_by_key(by("bom-ref"));
    dependencies.sort_by_key(by("ref"));
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": { "type": "application", "name": "sightline", "version": VERSION } },
        "components": components,
        "dependencies": dependencies,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crates_of_the_programs_are_listed_with_checksums() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().to_owned();
        let path = folder.join(format!("sightline-{VERSION}.cdx.json"));
        write(&Output { folder }).unwrap();
        let text = fs::read(path).unwrap();
        let document: Value = serde_json::from_slice(&text).unwrap();
        let components = document["components"].as_array().unwrap();
        let named = |name: &str| {
            components
                .iter()
                .find(|component| component["name"] == name)
        };
        assert!(named("sightline").is_some() && named("sightline-gateway").is_some());
        let library = named("tokio").unwrap();
        assert_eq!(library["hashes"][0]["content"].as_str().unwrap().len(), 64);
        assert_eq!(library["licenses"][0]["expression"], "MIT");
        // Used by tests only.
        assert!(named("proptest").is_none() && named("xtask").is_none());
    }
}
