//! The section of errors and warnings.

use sightline_protocol::editor::{Diagnostic, DiagnosticCode, Position, Range};

use super::*;

fn found(line: u32, severity: Option<u32>, message: &str) -> Diagnostic {
    let start = Position { line, character: 4 };
    Diagnostic {
        range: Range { start, end: start },
        severity,
        message: message.to_owned(),
        ..Diagnostic::default()
    }
}

fn fixture() -> Fixture {
    let mut fixture = Fixture::new(
        &["app"],
        &[
            ("app/.clineignore", "x.secret\n"),
            ("app/a.rs", ""),
            ("app/b.rs", ""),
            ("app/c.rs", ""),
            ("app/x.secret", ""),
        ],
    );
    fixture.visible(&["app/a.rs", "app/x.secret"]);
    fixture.modified = vec![("app/b.rs".to_owned(), false)];
    for path in ["app/a.rs", "app/b.rs", "app/c.rs", "app/x.secret"] {
        let mut error = found(2, None, "cannot find\n`x`");
        error.code = Some(DiagnosticCode::Text("E0425".to_owned()));
        error.source = Some("rustc".to_owned());
        let all = vec![
            found(0, Some(4), "a hint"),
            found(9, Some(2), "unused"),
            error,
        ];
        let uri = fixture.uri(path);
        fixture.editor.set_diagnostics(uri, all);
    }
    fixture
}

#[test]
fn errors_and_warnings_of_visible_and_modified_files_are_listed() {
    let mut fixture = fixture();
    fixture.params.sections = Some(vec![SectionId::Diagnostics]);
    let section = fixture.section(SectionId::Diagnostics).unwrap();
    assert_eq!(
        section.text,
        "a.rs:3:5: error: cannot find\\n`x` [E0425] (rustc)\n\
         a.rs:10:5: warning: unused\n\
         b.rs:3:5: error: cannot find\\n`x` [E0425] (rustc)\n\
         b.rs:10:5: warning: unused"
    );
    assert_eq!(
        (section.heading.as_str(), section.omitted),
        ("Diagnostics", 1)
    );
}

#[test]
fn the_section_is_off_unless_requested_or_enabled() {
    let mut fixture = fixture();
    assert_eq!(fixture.section(SectionId::Diagnostics), None);
    fixture.settings(r#"{"sections": {"diagnostics": {"enabled": true}}}"#);
    assert!(fixture.section(SectionId::Diagnostics).is_some());
}

#[test]
fn the_section_has_a_budget_without_settings() {
    let mut fixture = fixture();
    let many = (0..150).map(|line| found(line, None, "something is wrong here"));
    let uri = fixture.uri("app/a.rs");
    fixture.editor.set_diagnostics(uri, many.collect());
    fixture.params.sections = Some(vec![SectionId::Diagnostics]);
    let section = fixture.section(SectionId::Diagnostics).unwrap();
    assert!(section.tokens <= 1_100, "{}", section.tokens);
    assert!(section.omitted > 1);
}
