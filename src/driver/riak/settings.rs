//! The options of a target, read once.

use super::spec::QUORUMS;
use crate::driver::Target;
use crate::driver::spec::Options;
use std::collections::BTreeSet;
use std::time::Duration;

/// The same for all sessions.
#[derive(Clone, Debug)]
pub struct Settings {
    pub protocol_buffers: bool,
    pub bucket: String,
    pub bucket_type: Option<String>,
    pub r: Option<Quorum>,
    pub w: Option<Quorum>,
    pub dw: Option<Quorum>,
    pub pr: Option<Quorum>,
    pub pw: Option<Quorum>,
    pub n_val: Option<u32>,
    pub allow_mult: Option<bool>,
    pub return_body: bool,
    pub vclock: Vclock,
    pub timeout: Option<Duration>,
    /// Different endpoints of the target.
    pub nodes: usize,
}

/// Replicas that an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quorum {
    Number(u32),
    One,
    Majority,
    All,
    Default,
}

/// Which writes carry the vector clock of a read before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vclock {
    Update,
    Always,
    Never,
}

impl Settings {
    pub fn of(target: &Target) -> Settings {
        let options = &target.options;
        let [r, w, dw, pr, pw] = QUORUMS.map(|name| Quorum::of(options, name));
        let labels = target.endpoints.iter().map(|endpoint| &endpoint.label);
        Settings {
            protocol_buffers: options.text("interface").as_deref() == Some("pb"),
            bucket: options.text("bucket").unwrap_or_default(),
            bucket_type: options.text("bucket_type"),
            r,
            w,
            dw,
            pr,
            pw,
            n_val: options.integer("n_val").map(|copies| copies as u32),
            allow_mult: options.value("allow_mult").as_bool(),
            return_body: options.bool("return_body"),
            vclock: match options.text("vclock").as_deref() {
                Some("always") => Vclock::Always,
                Some("never") => Vclock::Never,
                _ => Vclock::Update,
            },
            timeout: options.duration("timeout"),
            nodes: labels.collect::<BTreeSet<_>>().len(),
        }
    }

    /// The server's time limit in milliseconds; never 0.
    pub fn timeout_ms(&self) -> Option<u32> {
        self.timeout.map(milliseconds)
    }

    /// The quorums that are said, by their names.
    pub fn quorums(&self) -> impl Iterator<Item = (&'static str, Quorum)> {
        let all = [self.r, self.w, self.dw, self.pr, self.pw];
        let named = QUORUMS.into_iter().zip(all);
        named.filter_map(|(name, quorum)| Some((name, quorum?)))
    }
}

/// A limit as the server takes it: at least a millisecond.
pub fn milliseconds(limit: Duration) -> u32 {
    u32::try_from(limit.as_millis()).unwrap_or(u32::MAX).max(1)
}

impl Quorum {
    fn of(options: &Options, name: &str) -> Option<Quorum> {
        if let Some(number) = options.integer(name) {
            return Some(Quorum::Number(number as u32));
        }
        options.text(name).map(|word| match word.as_str() {
            "one" => Quorum::One,
            "quorum" => Quorum::Majority,
            "all" => Quorum::All,
            _ => Quorum::Default,
        })
    }

    /// As a parameter of HTTP has it.
    pub fn word(self) -> String {
        match self {
            Quorum::Number(number) => number.to_string(),
            Quorum::One => "one".to_owned(),
            Quorum::Majority => "quorum".to_owned(),
            Quorum::All => "all".to_owned(),
            Quorum::Default => "default".to_owned(),
        }
    }

    /// As protocol buffers have it: words are numbers from the top.
    pub fn number(self) -> u32 {
        match self {
            Quorum::Number(number) => number,
            Quorum::One => u32::MAX - 1,
            Quorum::Majority => u32::MAX - 2,
            Quorum::All => u32::MAX - 3,
            Quorum::Default => u32::MAX - 4,
        }
    }

    pub fn of_number(number: u32) -> Quorum {
        let words = [Quorum::One, Quorum::Majority, Quorum::All, Quorum::Default];
        let word = words.into_iter().find(|word| word.number() == number);
        word.unwrap_or(Quorum::Number(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_the_numbers_of_the_protocol() {
        for (number, word) in [
            (4_294_967_294, "one"),
            (4_294_967_293, "quorum"),
            (4_294_967_292, "all"),
            (4_294_967_291, "default"),
            (2, "2"),
        ] {
            let quorum = Quorum::of_number(number);
            assert_eq!((quorum.word().as_str(), quorum.number()), (word, number));
        }
    }

    #[test]
    fn a_limit_is_never_rounded_to_none() {
        assert_eq!(milliseconds(Duration::from_micros(10)), 1);
        assert_eq!(milliseconds(Duration::from_millis(500)), 500);
    }
}
