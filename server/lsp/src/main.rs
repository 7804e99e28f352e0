//! The `sightline` program: a language server, and the same features as
//! commands. See the library for everything that happens.

fn main() {
    let code = sightline::cli::main();
    // Threads that read input cannot be stopped; the process can.
    #[allow(clippy::exit)]
    std::process::exit(code);
}
