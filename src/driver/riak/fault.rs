//! What a node says when it says no: the failure of a status or an error message, with a code that can be counted.

use crate::op::{ErrorClass, Failure};

/// Characters of a node's own words that a failure repeats.
const LONGEST_MESSAGE: usize = 200;

/// Whether what was asked may have been done in part, and go on being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Read,
    Write,
}

/// The failure of an HTTP status: code `503 request timed out`, `503 R-value unsatisfied`, `500 all_nodes_down`, `400`.
pub fn of_status(status: u16, body: &[u8], asked: Asked) -> Failure {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let reason = match status {
        _ if text.starts_with('<') => String::new(),
        404 | 503 => sentence(text),
        500 => atom(text.strip_prefix("Error:").unwrap_or(text).trim()).to_owned(),
        _ => String::new(),
    };
    let code = match reason.as_str() {
        "" => status.to_string(),
        reason => format!("{status} {reason}"),
    };
    let message = match text {
        "" => format!("status {status}"),
        page if page.starts_with('<') => format!("status {status} with a page of HTML"),
        text => format!("status {status}: {}", shortened(text)),
    };
    let class = match status {
        412 => ErrorClass::Rejected,
        _ if reason == "too_large" => ErrorClass::Rejected,
        _ => ErrorClass::Server,
    };
    let mut failure = Failure::new(class, message).with_code(code);
    // Given up by the node that coordinates it, not by the replicas.
    failure.unanswered = asked == Asked::Write && status == 503;
    failure
}

/// The failure of an error message of protocol buffers: code `timeout`, `pr_val_unsatisfied`, `Unknown message code`.
pub fn of_message(message: &[u8], asked: Asked) -> Failure {
    let text = String::from_utf8_lossy(message);
    let text = text.trim();
    let atom = atom(text);
    // A whole term, or a sentence.
    let code = match atom.len() == text.len() || text.starts_with('{') {
        true => atom.to_owned(),
        false => sentence(text),
    };
    let class = match code.as_str() {
        "match_found" | "too_large" => ErrorClass::Rejected,
        _ => ErrorClass::Server,
    };
    let given_up = code == "timeout" || code.ends_with("_unsatisfied");
    let mut failure = Failure::new(class, shortened(text)).with_code(code);
    failure.unanswered = asked == Asked::Write && given_up;
    failure
}

/// `insufficient_vnodes` of `{insufficient_vnodes,0,need,2}`.
fn atom(term: &str) -> &str {
    let term = term.trim_start_matches('{');
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let end = term.find(|c| !inside(c)).unwrap_or(term.len());
    &term[..end]
}

/// The words before figures and names: `R-value unsatisfied` of `R-value unsatisfied: 1/2`.
fn sentence(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let words = line.split(':').next().unwrap_or_default().trim();
    words.chars().take(60).collect()
}

fn shortened(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_its_reason_without_figures_in_its_code() {
        let code = |status, body: &str| of_status(status, body.as_bytes(), Asked::Read).code;
        assert_eq!(code(503, "request timed out\n"), "503 request timed out");
        assert_eq!(
            code(503, "R-value unsatisfied: 1/2\n"),
            "503 R-value unsatisfied"
        );
        assert_eq!(
            code(500, "Error:\n{insufficient_vnodes,0,need,2}\n"),
            "500 insufficient_vnodes"
        );
        assert_eq!(code(500, "Error:\nall_nodes_down\n"), "500 all_nodes_down");
        assert_eq!(
            code(404, "Unknown bucket type: T"),
            "404 Unknown bucket type"
        );
        assert_eq!(code(404, "<HTML><HEAD>"), "404");
        assert_eq!(code(400, "Bad timeout value \"abc\"\n"), "400");
        let large = of_status(500, b"Error:\n{too_large,60000000}\n", Asked::Write);
        assert_eq!(
            (large.class, large.unanswered),
            (ErrorClass::Rejected, false)
        );
    }

    #[test]
    fn a_write_that_the_node_gave_up_may_have_been_done() {
        let unanswered = |asked| of_status(503, b"request timed out\n", asked).unanswered;
        assert!(unanswered(Asked::Write) && !unanswered(Asked::Read));
        let unanswered = |text: &str| of_message(text.as_bytes(), Asked::Write).unanswered;
        assert!(unanswered("timeout") && unanswered("{pw_val_unsatisfied,3,2}"));
        assert!(!unanswered("{n_val_violation,3}"));
        assert!(!of_message(b"timeout", Asked::Write).broken);
    }

    #[test]
    fn a_message_has_its_atom_or_its_words_as_its_code() {
        let code = |text: &str| of_message(text.as_bytes(), Asked::Read).code;
        assert_eq!(code("timeout"), "timeout");
        assert_eq!(code("{n_val_violation,3}"), "n_val_violation");
        assert_eq!(code("{pr_val_unsatisfied,3,2}"), "pr_val_unsatisfied");
        assert_eq!(
            code("Key cannot be zero-length"),
            "Key cannot be zero-length"
        );
        assert_eq!(code("Unknown message code: 250"), "Unknown message code");
        let exists = of_message(b"match_found", Asked::Write);
        assert_eq!(exists.class, ErrorClass::Rejected);
    }

    #[test]
    fn a_stack_trace_is_cut() {
        let failure = of_message("{error, x}".repeat(100).as_bytes(), Asked::Read);
        assert!(failure.message.len() < 210, "{}", failure.message);
    }
}
