//! The npm packages: `sightline` starts the program of `sightline-<platform>`, its optional
//! dependency. npm installs only the one that matches the system, processor and C library.

use std::fs;

use serde_json::{Map, Value, json};

use super::{
    DESCRIPTION, Programs, Project, Result, VERSION,
    archive::{self, Entry},
    platform::{PLATFORMS, Platform},
};
use crate::repository;

fn package_name(platform: &Platform) -> String {
    format!("sightline-{}", platform.npm)
}

/// Returns the file name and the content of the package of a platform.
pub(super) fn platform_package(
    platform: &Platform,
    programs: Programs<'_>,
    project: &Project,
) -> Result<(String, Vec<u8>)> {
    let name = package_name(platform);
    let (os, cpu, libc) = platform.npm_fields();
    let mut manifest = json!({
        "name": name,
        "version": VERSION,
        "description": format!("The program of the package sightline for {}", platform.npm),
        "license": "Apache-2.0",
        "os": [os],
        "cpu": [cpu],
        "preferUnplugged": true,
    });
    if let Some(libc) = libc {
        manifest["libc"] = json!([libc]);
    }
    let readme = format!(
        "# {name}\n\nThe program of the npm package `sightline` for {}. Install `sightline` instead.\n",
        platform.npm
    );
    let programs = programs.entries(platform, "bin/");
    pack(&name, manifest, readme, programs, project)
}

/// Returns the file name and the content of the package `sightline`.
pub(super) fn main_package(project: &Project) -> Result<(String, Vec<u8>)> {
    let dependencies: Map<String, Value> = PLATFORMS
        .iter()
        .map(|platform| (package_name(platform), VERSION.into()))
        .collect();
    let manifest = json!({
        "name": "sightline",
        "version": VERSION,
        "description": DESCRIPTION,
        "license": "Apache-2.0",
        "bin": {"sightline": "bin/sightline.js"},
        "engines": {"node": ">=18"},
        "optionalDependencies": dependencies,
    });
    let start = fs::read(repository().join("packaging/npm/sightline.js"))?;
    let start = Entry::program("bin/sightline.js", start);
    let readme = project.readme.clone();
    pack("sightline", manifest, readme, vec![start], project)
}

fn pack(
    name: &str,
    mut manifest: Value,
    readme: String,
    programs: Vec<Entry>,
    project: &Project,
) -> Result<(String, Vec<u8>)> {
    if let Some(url) = project.repository_url {
        manifest["repository"] = json!({"type": "git", "url": url});
    }
    let mut entries = vec![
        Entry::file(
            "package.json",
            format!("{}\n", serde_json::to_string_pretty(&manifest)?),
        ),
        Entry::file("LICENSE", project.license.as_str()),
        Entry::file("README.md", readme),
    ];
    entries.extend(programs);
    Ok((
        format!("npm-{name}-{VERSION}.tgz"),
        archive::tar_gz("package", &entries)?,
    ))
}
