//! The platforms that packages are built for, and their names in each package format.

use super::Result;

/// A platform with its names in the package formats.
#[derive(Debug, PartialEq)]
pub(super) struct Platform {
    /// Target triple of Rust.
    pub(super) target: &'static str,
    /// Suffix of the npm package: system, processor and C library.
    pub(super) npm: &'static str,
    /// Target of the VS Code extension.
    pub(super) vscode: &'static str,
    /// Name of the target in the mason registry.
    pub(super) mason: &'static str,
    wheel: WheelTag,
}

#[derive(Debug, PartialEq)]
enum WheelTag {
    /// The tag depends on the C library that the program needs.
    Glibc {
        processor: &'static str,
    },
    Fixed(&'static str),
}

pub(super) const PLATFORMS: [Platform; 6] = [
    Platform {
        target: "x86_64-unknown-linux-gnu",
        npm: "linux-x64",
        vscode: "linux-x64",
        mason: "linux_x64_gnu",
        wheel: WheelTag::Glibc {
            processor: "x86_64",
        },
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        npm: "linux-arm64",
        vscode: "linux-arm64",
        mason: "linux_arm64_gnu",
        wheel: WheelTag::Glibc {
            processor: "aarch64",
        },
    },
    Platform {
        target: "x86_64-unknown-linux-musl",
        npm: "linux-x64-musl",
        vscode: "alpine-x64",
        mason: "linux_x64_musl",
        wheel: WheelTag::Fixed("musllinux_1_1_x86_64"),
    },
    Platform {
        target: "x86_64-apple-darwin",
        npm: "darwin-x64",
        vscode: "darwin-x64",
        mason: "darwin_x64",
        wheel: WheelTag::Fixed("macosx_10_12_x86_64"),
    },
    Platform {
        target: "aarch64-apple-darwin",
        npm: "darwin-arm64",
        vscode: "darwin-arm64",
        mason: "darwin_arm64",
        wheel: WheelTag::Fixed("macosx_11_0_arm64"),
    },
    Platform {
        target: "x86_64-pc-windows-msvc",
        npm: "win32-x64",
        vscode: "win32-x64",
        mason: "win_x64",
        wheel: WheelTag::Fixed("win_amd64"),
    },
];

impl Platform {
    /// Returns the platform of a target triple.
    pub(super) fn of(target: &str) -> Result<&'static Self> {
        PLATFORMS
            .iter()
            .find(|platform| platform.target == target)
            .ok_or_else(|| {
                let known = PLATFORMS.map(|platform| platform.target).join(", ");
                format!("no packages are built for {target}; supported: {known}").into()
            })
    }

    pub(super) fn is_windows(&self) -> bool {
        self.target.contains("windows")
    }

    /// Returns the file name of the program.
    pub(super) fn program(&self) -> &'static str {
        if self.is_windows() {
            "sightline.exe"
        } else {
            "sightline"
        }
    }

    /// Returns the file name of the gateway.
    pub(super) fn gateway(&self) -> &'static str {
        if self.is_windows() {
            "sightline-gateway.exe"
        } else {
            "sightline-gateway"
        }
    }

    /// Returns the name of the archive of a version, without its suffix.
    pub(super) fn archive_name(&self, version: &str) -> String {
        format!("sightline-v{version}-{}", self.target)
    }

    /// Returns the file name of the archive of a version.
    pub(super) fn archive_file(&self, version: &str) -> String {
        let suffix = if self.is_windows() { "zip" } else { "tar.gz" };
        format!("{}.{suffix}", self.archive_name(version))
    }

    /// Returns the platform tag of the wheel that contains `program`.
    pub(super) fn wheel_tag(&self, program: &[u8]) -> String {
        match self.wheel {
            WheelTag::Glibc { processor } => {
                let minor = glibc_minor(program).max(17);
                format!("manylinux_2_{minor}_{processor}")
            }
            WheelTag::Fixed(tag) => tag.to_owned(),
        }
    }

    /// Returns the fields `os`, `cpu` and `libc` of an npm package.
    pub(super) fn npm_fields(&self) -> (&'static str, &'static str, Option<&'static str>) {
        let mut parts = self.npm.split('-');
        let os = parts.next().unwrap_or_default();
        let cpu = parts.next().unwrap_or_default();
        let libc = match (os, parts.next()) {
            ("linux", None) => Some("glibc"),
            (_, libc) => libc,
        };
        (os, cpu, libc)
    }
}

/// Returns the highest minor version of the `GLIBC_2` symbols that a program refers to.
fn glibc_minor(program: &[u8]) -> u32 {
    const PREFIX: &[u8] = b"GLIBC_2.";
    memchr::memmem::find_iter(program, PREFIX)
        .filter_map(|start| {
            let digits: Vec<u8> = program[start + PREFIX.len()..]
                .iter()
                .copied()
                .take(3)
                .take_while(u8::is_ascii_digit)
                .collect();
            String::from_utf8(digits).ok()?.parse().ok()
        })
        .max()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use toml_edit::{DocumentMut, Item};

    use super::{
        super::{VERSION, repository},
        *,
    };

    /// Suffixes that cargo-binstall tries for `{ archive-suffix }`.
    fn archive_suffixes(format: &str) -> &'static [&'static str] {
        match format {
            "tgz" => &[".tgz", ".tar.gz"],
            "zip" => &[".zip"],
            _ => panic!("unknown format {format}"),
        }
    }

    #[test]
    fn cargo_binstall_finds_the_archive_of_each_platform() {
        let manifest =
            fs::read_to_string(repository().join("server/sightline/Cargo.toml")).unwrap();
        let manifest: DocumentMut = manifest.parse().unwrap();
        let package = &manifest["package"];
        let binstall = &package["metadata"]["binstall"];
        for platform in &PLATFORMS {
            let value = |key: &str| {
                let own = binstall["overrides"]
                    .get(platform.target)
                    .and_then(|settings| settings.get(key));
                own.or_else(|| binstall.get(key))
                    .and_then(Item::as_str)
                    .unwrap()
            };
            let fill = |template: &str, suffix: &str| {
                let extension = platform.program().strip_prefix("sightline").unwrap();
                template
                    .replace("{ repo }", "https://forge.invalid/owner/sightline")
                    .replace("{ version }", VERSION)
                    .replace("{ target }", platform.target)
                    .replace("{ bin }", package["name"].as_str().unwrap())
                    .replace("{ binary-ext }", extension)
                    .replace("{ archive-suffix }", suffix)
            };
            let file = platform.archive_file(VERSION);
            let address = format!(
                "https://forge.invalid/owner/sightline/releases/download/v{VERSION}/{file}"
            );
            let suffixes = archive_suffixes(value("pkg-fmt"));
            let mut tried = suffixes.iter().map(|suffix| fill(value("pkg-url"), suffix));
            assert!(tried.any(|url| url == address), "{address}");
            let folder = platform.archive_name(VERSION);
            let program = format!("{folder}/{}", platform.program());
            assert_eq!(fill(value("bin-dir"), ""), program);
        }
    }

    #[test]
    fn a_wheel_requires_the_glibc_of_its_program() {
        let linux = Platform::of("x86_64-unknown-linux-gnu").unwrap();
        let program = b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0";
        assert_eq!(linux.wheel_tag(program), "manylinux_2_34_x86_64");
        assert_eq!(linux.wheel_tag(b""), "manylinux_2_17_x86_64");
    }

    #[test]
    fn npm_selects_packages_by_system_processor_and_c_library() {
        let fields = PLATFORMS.each_ref().map(Platform::npm_fields);
        assert_eq!(fields[0], ("linux", "x64", Some("glibc")));
        assert_eq!(fields[2], ("linux", "x64", Some("musl")));
        assert_eq!(fields[4], ("darwin", "arm64", None));
        assert!(Platform::of("wasm32-wasip1").is_err());
    }
}
