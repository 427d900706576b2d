//! Managed servers: started by a guard, sampled, stopped; nothing of them outlives dbbench.
//!
//! ```text
//! dbbench --socket--> guard (dbbench re-executed) --fork--> one keeper per server --exec--> the server and its descendants
//! ```
//!
//! The guard and every keeper are single-threaded child subreapers, so a process that a server leaves behind, whatever
//! session or group it moved to, stays below the keeper of that server. Any of the three may be killed at any moment: the
//! guard ends everything when dbbench is gone, a keeper ends its own tree when the guard is gone, and dbbench ends all that
//! falls to it when the guard is gone. Read `client` for what `run` calls, `guard` and `keeper` for the other side,
//! `messages` for the wire between them, `managed` for one server's life. The plan and templates are not known here.

mod client;
mod fault;
mod files;
pub mod guard;
mod keeper;
mod managed;
mod messages;
mod ports;
mod private;
mod ready;
mod sampler;
mod spec;
mod tree;

pub use client::{CommandSpec, Guard};
pub use fault::{CommandFault, ExitFault, GuardFault, StartFault};
pub use managed::{DriverReady, Running, StopReport};
pub use ports::{PortFault, PortLease};
pub use private::PrivateRoot;
pub use sampler::{Sampler, WatchHandle};
pub use spec::{
    FileContent, FileSpec, MissingProgram, ReadySpec, ServerSpec, StopSignal, missing_program,
};
