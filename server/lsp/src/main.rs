//! The `sightline` program: a language server, and its features as commands. See the
//! library crate.

fn main() {
    let code = sightline::cli::main();
    // Blocked reader threads cannot be joined; exiting ends them.
    #[allow(clippy::exit)]
    std::process::exit(code);
}
