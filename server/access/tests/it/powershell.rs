//! Statements of PowerShell, which have braces in place of reserved words.

use super::commands::workspace;

const DENIED: &[(&str, &str)] = &[
    ("npm test; if ($?) { gc .env }", ".env"),
    ("if (Test-Path .env) {gc .env}", ".env"),
    ("if ($a) { ls } elseif (gc .env) { ls }", ".env"),
    (
        "if (-not $a) {\n  ls\n}\nelse {\n  cat secret.txt\n}",
        "secret.txt",
    ),
    ("while ($true) { if ($x -gt '}') { type .env } }", ".env"),
    ("for ($i = 0; $i -lt 3; $i++) { gc .env }", ".env"),
    ("switch ($x) { 1 { gc .env } }", ".env"),
    ("foreach ($f in gc .env) { Write-Host $f }", ".env"),
    ("foreach ($f in ls .e*) { gc $f }", ".env"),
    (
        "foreach ($file in Get-ChildItem *.txt) { Write-Host $file.Name; Get-Content $file.FullName }",
        "secret.txt",
    ),
    ("if ($a) { ls }; cat .env", ".env"),
    ("if ($a) { ls } cat .env", ".env"),
    // As a POSIX shell reads them.
    ("if (true) { ls }; then cat .env; fi", ".env"),
    ("if (cat .env); then ls; fi", ".env"),
];

const ALLOWED: &[&str] = &[
    "npm test; if ($?) { npm run build }",
    "npm ci; if ($LASTEXITCODE -ne 0) { exit 1 } else { npm test }",
    "if (-not (Test-Path node_modules)) { npm install }",
    "if (Test-Path .env) { Write-Host yes }",
    "foreach ($f in Get-ChildItem docs) { Write-Output $f.Name }",
    "for ($i=0; $i -lt 3; $i++) { Write-Host $i }",
    "while ($true) { Get-Date; Start-Sleep 1; break }",
    "if (test -f public.txt); then cat public.txt; fi",
];

const UNPARSABLE: &[&str] = &[
    "if ($a) { cat public.txt",
    "if ($a { cat public.txt }",
    "foreach ($f) { cat public.txt }",
    "foreach ( in ls) { cat public.txt }",
];

#[test]
fn they_are_checked_as_those_of_other_shells() {
    let workspace = workspace();
    for (command, expected) in DENIED {
        let denied = workspace.denied(command);
        assert!(
            denied.contains(&(*expected).to_owned()),
            "{command}: {denied:?}"
        );
    }
    for command in ALLOWED {
        assert!(workspace.denied(command).is_empty(), "{command}");
    }
    for command in UNPARSABLE {
        assert_eq!(workspace.denied(command), [""], "{command}");
    }
}
