//! Checks commands that are too large or too deep.

use std::time::{Duration, Instant};

use super::workspace;

#[test]
fn an_overlong_command_is_denied() {
    let workspace = workspace();
    let answer = workspace.view.check_command(&"a ".repeat(40_000));
    assert!(!answer.allowed);
    assert_eq!(answer.denied.len(), 1);
}

/// Each value of a word counts, however many there are.
#[test]
fn all_of_many_values_are_checked() {
    let workspace = workspace();
    let names: Vec<String> = (0..300).map(|at| format!("f{at}")).collect();
    let many = names.join(" ");
    let letters: Vec<String> = ('a'..='z').map(String::from).collect();
    let letters = letters.join(",");
    let commands = |last: &str| {
        [
            format!("cat {{{},{last}}}", names.join(",")),
            format!("F='{many} {last}'; cat $F"),
            format!("F='{} {last}'; cat $F", "a".repeat(5_000)),
            format!("for f in {many} {last}; do cat $f; done"),
            format!("cat $(echo {many} {last})"),
            format!("a=({many} {last}); cat \"${{a[@]}}\""),
            format!("set -- {many} {last}; cat \"$@\""),
            format!("f() {{ cat \"$@\"; }}; f {many} {last}"),
            format!("echo {many} {last} | xargs cat"),
            format!("echo {many} {last} | tr ' ' '\\n' | while read f; do cat $f; done"),
            format!(
                "while read f; do cat $f; done <<X\n{}\n{last}\nX",
                names.join("\n")
            ),
            format!("tool --paths={}:{last}", names.join(":")),
        ]
    };
    for command in commands("src/main.rs") {
        let end = &command[command.len() - 40..];
        assert!(workspace.denied(&command).is_empty(), "{end}");
    }
    let endless = [
        format!("cat {{{letters}}}{{{letters}}}{{{letters}}}{{{letters}}}"),
        "a=.env; ".to_owned() + &"a=$a$a; ".repeat(40) + "cat $a",
    ];
    for command in commands(".env").into_iter().chain(endless) {
        let end = &command[command.len() - 40..];
        assert!(!workspace.denied(&command).is_empty(), "{end}");
    }
}

/// The matches of a pattern this large are unknown, so it may match any file.
#[test]
fn an_oversized_pattern_is_denied() {
    let workspace = workspace();
    let large = format!("{}*", "a".repeat(9_000));
    for command in [
        format!("cat {large}"),
        format!("find {large} -type f"),
        format!("grep -r --include='{large}' KEY ."),
        format!("grep -r --exclude='{large}' KEY ."),
        format!("find . -name '{large}' -exec cat {{}} +"),
    ] {
        let answer = workspace.view.check_command(&command);
        assert!(!answer.allowed, "{}", &command[..30]);
    }
    let small = format!("{}*", "a".repeat(1_000));
    let command = format!("grep -r --include='{small}' KEY .");
    assert!(workspace.view.check_command(&command).allowed);
}

/// A command that exceeds the parser limits is still checked, quickly and without a crash.
#[test]
fn hostile_commands_terminate() {
    let workspace = workspace();
    let hostile = [
        "(".repeat(60_000),
        "( ".repeat(30_000) + "cat .env",
        "$(".repeat(20_000) + "cat .env",
        "\"$(".repeat(15_000) + "cat .env",
        "`".repeat(60_001),
        "{".repeat(60_000),
        "{a,b}".repeat(12_000),
        "{1..200}".repeat(8_000),
        "${a:-".repeat(12_000) + ".env",
        "case x in a) ".repeat(4_000) + "cat .env",
        "if a; then ".repeat(5_000) + "cat .env",
        "{ ".repeat(1_950) + "cat .env;" + &" }".repeat(1_950),
        "( ".repeat(1_950) + "cat .env" + &" )".repeat(1_950),
        "f() { ".repeat(950) + "cat .env;" + &" };".repeat(950),
        "if a; then ".repeat(950) + "cat .env" + &"; fi".repeat(950),
        "while a; do ".repeat(950) + "cat .env" + &"; done".repeat(950),
        "! ".repeat(1_900) + "cat .env",
        "coproc ".repeat(1_900) + "cat .env",
        "cat <( ".repeat(1_950) + "cat .env" + &" )".repeat(1_950),
        "[[ ".to_owned() + &"! ".repeat(1_900) + ".env ]]",
        "[[ ".to_owned() + &"( ".repeat(1_950) + ".env" + &" )".repeat(1_950) + " ]]",
        "[[ -f .env ".to_owned() + &"&& a ".repeat(990) + " ]]",
        "cat ~99999999999999999999999999 .env".to_owned(),
        "cat {99999999999999999999999999..1} .env".to_owned(),
        "99999999999999999999<.env".to_owned(),
        "docker run -v .:/w ".repeat(1_300) + "cat .env",
        "sudo ".repeat(13_000) + "cat .env",
        "xargs ".repeat(10_000) + "cat .env",
        "find . -exec ".repeat(5_000) + "cat .env",
        "timeout 5 sh -c ".repeat(4_000) + "'cat .env'",
        "git show;".repeat(3_000) + "cat .env",
        "git add -A;".repeat(3_000) + "git diff; cat .env",
        "git add -A; git diff --cached;".repeat(1_900) + "cat .env",
        "mv a b; ".repeat(7_000) + "cat b/x .env",
        "mv ".to_owned() + &"a ".repeat(30_000) + "b; cat b/x .env",
        "grep -r x .;".repeat(1_900) + "cat .env",
        "find . ".to_owned() + &"! ".repeat(1_900) + "-exec cat {} + ; cat .env",
        "find . ".to_owned() + &"\\( ".repeat(3_000) + "; cat .env",
        "find ".to_owned() + &". ".repeat(1_900) + &"-name x ".repeat(900) + "; cat .env",
        "rg ".to_owned() + &"-g '!*a*a*a*b' ".repeat(1_900) + "; cat .env",
        "declare -n a=a; ".repeat(900) + "cat $a .env",
        "a=*;".to_owned() + &"b=$a$a$a$a$a$a$a$a; a=$b$b$b$b; ".repeat(500) + "cat $a .env",
        "eval ".repeat(12_000) + "cat .env",
        "sh -c '".repeat(100) + "cat .env",
        "cat ".to_owned() + &"a/".repeat(30_000) + "b",
        "cat ".to_owned() + &"*/".repeat(30_000) + "b",
        "cat ".to_owned() + &"**/".repeat(20_000) + "b",
        "cat ".to_owned() + &"a=".repeat(30_000) + ".env",
        "cat ".to_owned() + &"a:".repeat(30_000) + ".env",
        "<<A ".repeat(5_000) + "\n",
        "cat .env; @(done a=(function f in coproc  | $'else ))atime == *)f() then <<X coproc ]=in >> =~ for x in $\"coproc  }$(((a=case x in a) fi  && \nX\n".to_owned(),
        "cat <<X\n".to_owned() + &"${a:-".repeat(2_000) + "\nX\ncat .env",
        "cat <<X\n".to_owned() + &"\"a$(".repeat(2_000) + "\nX\ncat .env",
        "cat <<X\n".to_owned() + &"$((".repeat(2_000) + "\nX\ncat .env",
        "cat <<X\n".to_owned() + &"${a[".repeat(2_000) + "\nX\ncat .env",
        "cat $( # ".to_owned() + &"$(".repeat(12) + "\n) .env",
        "cat $( # ".to_owned() + &"((a".repeat(12) + "\n) .env",
        "cat \"$( # ".to_owned() + &"x$(".repeat(12) + "\n)\" .env",
        "cat ".to_owned() + &"{a".repeat(11) + &"}".repeat(11) + " .env",
        "cat ".to_owned() + &"{a".repeat(60) + " .env",
        "cat ".to_owned() + &"${a[".repeat(4) + "b" + &"]}".repeat(4) + " .env",
        "cat ".to_owned() + &"${a:-\"".repeat(8) + "b" + &"\"}".repeat(8) + " .env",
        "cat {a,~}99999999999999999999 .env".to_owned(),
        "git clone . out && cat ".to_owned() + &"a/".repeat(20_000) + "* .env",
        "git clone . out && cat ".to_owned() + &"/*".repeat(20_000) + " .env",
        "\u{0}cat .env\u{0}".to_owned(),
        "\u{202e}cat .env".to_owned(),
        "cat .env \u{e4}://a".to_owned(),
    ];
    for command in hostile {
        let start = Instant::now();
        let denied = workspace.denied(&command[..command.len().min(64 * 1024)]);
        let shown: String = command.chars().take(40).collect();
        // Not a measurement: only checks that it terminates.
        assert!(start.elapsed() < Duration::from_secs(60), "{shown}");
        if command.len() <= 64 * 1024 && command.ends_with(".env") {
            assert!(!denied.is_empty(), "{shown}");
        }
    }
}
