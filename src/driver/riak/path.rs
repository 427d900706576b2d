//! What the lines of HTTP requests hold: paths of keys, parameters, headers. Made once but for the key.

use super::settings::Settings;

/// What is the same in all requests of a kind: their bytes around those of an operation's key.
#[derive(Debug)]
pub struct Paths {
    /// `/types/T/buckets/B`
    pub bucket: String,
    /// ` HTTP/1.1\r\nHost: 127.0.0.1:8098\r\n`
    pub line_end: String,
    /// What follows the key of a request of each kind, to the end of the headers that are always the same.
    get: Vec<u8>,
    put: Vec<u8>,
    delete: Vec<u8>,
}

/// Values of siblings come as parts; everything else as it is stored.
const ACCEPT: &str = "Accept: multipart/mixed, */*;q=0.9\r\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    Put,
    Delete,
}

impl Paths {
    /// `host` is the header's value.
    pub fn of(settings: &Settings, host: &str) -> Paths {
        let mut bucket = String::new();
        if let Some(name) = &settings.bucket_type {
            bucket.push_str("/types/");
            bucket.push_str(&encoded(name.as_bytes()));
        }
        bucket.push_str("/buckets/");
        bucket.push_str(&encoded(settings.bucket.as_bytes()));
        let line_end = format!(" HTTP/1.1\r\nHost: {host}\r\n");
        let query = |names: &[&str], more: &str| {
            let said = settings.quorums();
            let said = said.filter(|(name, _)| names.contains(name));
            let mut all: Vec<String> = said
                .map(|(name, quorum)| format!("{name}={}", quorum.word()))
                .collect();
            all.extend((!more.is_empty()).then(|| more.to_owned()));
            all.extend(
                settings
                    .timeout_ms()
                    .map(|limit| format!("timeout={limit}")),
            );
            match all.is_empty() {
                true => String::new(),
                false => format!("?{}", all.join("&")),
            }
        };
        let body = match settings.return_body {
            true => "returnbody=true",
            false => "",
        };
        let put = query(&["w", "dw", "pw"], body);
        let delete = query(&["r", "w", "dw", "pr", "pw"], "");
        Paths {
            get: format!("{}{line_end}{ACCEPT}", query(&["r", "pr"], "")).into_bytes(),
            put: format!("{put}{line_end}{ACCEPT}Content-Type: application/octet-stream\r\n")
                .into_bytes(),
            delete: format!("{delete}{line_end}{ACCEPT}").into_bytes(),
            bucket,
            line_end,
        }
    }

    /// Appends a request up to the headers that are always the same.
    pub fn push(&self, out: &mut Vec<u8>, method: Method, key: &[u8]) {
        let (word, rest): (&[u8], _) = match method {
            Method::Get => (b"GET ", &self.get),
            Method::Head => (b"HEAD ", &self.get),
            Method::Put => (b"PUT ", &self.put),
            Method::Delete => (b"DELETE ", &self.delete),
        };
        out.extend_from_slice(word);
        out.extend_from_slice(self.bucket.as_bytes());
        out.extend_from_slice(b"/keys/");
        push_encoded(out, key);
        out.extend_from_slice(rest);
    }
}

fn encoded(text: &[u8]) -> String {
    let mut out = Vec::new();
    push_encoded(&mut out, text);
    String::from_utf8(out).expect("percent codes are ASCII")
}

/// Appends bytes as a segment of a path: all but letters, digits and `-._~` as percent codes.
fn push_encoded(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        if PLAIN[usize::from(byte)] {
            out.push(byte);
        } else {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            out.extend_from_slice(&[b'%', DIGITS[high], DIGITS[low]]);
        }
    }
}

const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        plain[byte] =
            (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'-' | b'.' | b'_' | b'~');
        byte += 1;
    }
    plain
};
