//! The entry: everything is in the library, so that tests and benches use the same code.

fn main() -> std::process::ExitCode {
    let first = std::env::args_os().nth(1);
    match first.is_some_and(|argument| argument == dbbench::server::guard::ARGUMENT) {
        true => dbbench::server::guard::main(),
        false => dbbench::cli::main(),
    }
}
