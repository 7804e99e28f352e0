//! The Python wheel, which installs the program as a script.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use super::{
    DESCRIPTION, Programs, Project, Result, VERSION,
    archive::{self, Entry},
    platform::Platform,
};

/// Returns the file name and the content of the wheel.
pub(super) fn build(
    platform: &Platform,
    programs: Programs<'_>,
    project: &Project,
) -> Result<(String, Vec<u8>)> {
    let tag = format!("py3-none-{}", platform.wheel_tag(programs.program));
    let info = format!("sightline-{VERSION}.dist-info");
    let mut metadata = format!(
        "Metadata-Version: 2.4\nName: sightline\nVersion: {VERSION}\nSummary: {DESCRIPTION}\n\
         License-Expression: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: >=3.8\n\
         Keywords: agent,checkpoint,clineignore,language server,lsp,mcp\n\
         Description-Content-Type: text/markdown\n"
    );
    if let Some(url) = project.repository_url {
        metadata.push_str(&format!("Project-URL: Repository, {url}\n"));
    }
    // The body of the headers is the description.
    metadata.push_str(&format!("\n{}", project.readme));
    let wheel = format!(
        "Wheel-Version: 1.0\nGenerator: sightline xtask ({VERSION})\nRoot-Is-Purelib: false\nTag: {tag}\n"
    );
    let scripts = format!("sightline-{VERSION}.data/scripts");
    let mut entries = programs.entries(platform, &format!("{scripts}/"));
    entries.extend([
        Entry::file(format!("{info}/licenses/LICENSE"), project.license.as_str()),
        Entry::file(format!("{info}/METADATA"), metadata),
        Entry::file(format!("{info}/WHEEL"), wheel),
    ]);
    let record_path = format!("{info}/RECORD");
    let mut record: String = entries
        .iter()
        .map(|Entry { path, content, .. }| {
            let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(content));
            format!("{path},sha256={hash},{}\n", content.len())
        })
        .collect();
    record.push_str(&format!("{record_path},,\n"));
    entries.push(Entry::file(record_path, record));
    Ok((
        format!("sightline-{VERSION}-{tag}.whl"),
        archive::zip(&entries)?,
    ))
}
