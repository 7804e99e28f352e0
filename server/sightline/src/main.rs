//! The `sightline` program: picks a door. Without a command it is a language server.
//!
//! Modules:

fn main() {
    let code = sightline_cli::main(sightline_lsp::stdio::serve);
    // Blocked reader threads cannot be joined; exiting ends them.
    #[allow(clippy::exit)]
    std::process::exit(code);
}
