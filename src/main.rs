//! The entry: everything is in the library, so that tests and benches use the same code.

fn main() -> std::process::ExitCode {
    dbbench::cli::main()
}
