//! The words of a statement outside of quotes and comments. What is quoted and what is a comment differs from server to
//! server, so whoever must be sure reads a statement by the rules of each (`Dialect::ALL`).

/// How a server tells quotes and comments from code.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// `\'` does not end a string.
    backslash: bool,
    /// `#` begins a comment.
    hash: bool,
    /// `--` begins a comment only where a blank follows.
    dashes_need_blank: bool,
    /// What stands in `/*! ... */` and `/*M! ... */` is executed.
    executed_comments: bool,
    nested_comments: bool,
    /// `$tag$ ... $tag$` is a string, and `E'...'` one with backslashes.
    postgres_strings: bool,
}

impl Dialect {
    const MYSQL: Dialect = Dialect {
        backslash: true,
        hash: true,
        dashes_need_blank: true,
        executed_comments: true,
        nested_comments: false,
        postgres_strings: false,
    };
    /// With `NO_BACKSLASH_ESCAPES`.
    const MYSQL_PLAIN: Dialect = Dialect {
        backslash: false,
        ..Dialect::MYSQL
    };
    const SQLITE: Dialect = Dialect {
        backslash: false,
        hash: false,
        dashes_need_blank: false,
        executed_comments: false,
        nested_comments: false,
        postgres_strings: false,
    };
    const POSTGRES: Dialect = Dialect {
        nested_comments: true,
        postgres_strings: true,
        ..Dialect::SQLITE
    };
    /// Good enough where nothing hangs on it: kinds, tables.
    const USUAL: Dialect = Dialect {
        dashes_need_blank: false,
        ..Dialect::MYSQL
    };

    pub const ALL: [Dialect; 4] = [
        Dialect::MYSQL,
        Dialect::MYSQL_PLAIN,
        Dialect::POSTGRES,
        Dialect::SQLITE,
    ];

    /// What begins here, if it is a string in single quotes (or PostgreSQL's dollars) or a comment.
    pub fn unread(self, rest: &[u8]) -> Option<Unread> {
        Some(match rest {
            [b'\'', ..] => Unread::String(quoted(rest, b'\'', self.backslash)),
            [b'#', ..] if self.hash => Unread::Comment(line(rest)),
            [b'-', b'-', after @ ..] if is_comment(self, after) => Unread::Comment(line(rest)),
            [b'/', b'*', b'!', ..] if self.executed_comments => {
                Unread::Comment(3 + digits(&rest[3..]))
            }
            [b'/', b'*', b'M', b'!', ..] if self.executed_comments => {
                Unread::Comment(4 + digits(&rest[4..]))
            }
            [b'/', b'*', ..] => Unread::Comment(comment(rest, self.nested_comments)),
            [b'$', ..] if self.postgres_strings => match dollar_quoted(rest) {
                0 => return None,
                length => Unread::String(length),
            },
            [b'E' | b'e', b'\'', ..] if self.postgres_strings => {
                Unread::String(1 + quoted(&rest[1..], b'\'', true))
            }
            _ => return None,
        })
    }

    /// Bytes of what stands in double quotes here.
    pub fn double_quoted(self, rest: &[u8]) -> usize {
        quoted(rest, b'"', self.backslash)
    }

    /// As one who executes nothing reads it: what only some servers execute is a comment.
    pub fn without_executed_comments(self) -> Dialect {
        Dialect {
            executed_comments: false,
            ..self
        }
    }

    /// Whether the dialects may read this statement differently.
    pub fn differ_on(statement: &[u8]) -> bool {
        memchr::memchr3(b'\\', b'#', b'$', statement).is_some()
            || memchr::memmem::find(statement, b"--").is_some()
            || memchr::memmem::find(statement, b"/*").is_some()
    }
}

/// What is passed over, with its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unread {
    String(usize),
    Comment(usize),
}

/// Words of a statement; names in backticks or double quotes count as words, too.
pub struct Words<'s> {
    text: &'s [u8],
    at: usize,
    dialect: Dialect,
    /// Whether the last word was quoted.
    quoted: bool,
    /// Whether `;` is a word.
    ends: bool,
}

impl<'s> Words<'s> {
    pub fn of(text: &'s [u8]) -> Words<'s> {
        Words {
            text,
            at: 0,
            dialect: Dialect::USUAL,
            quoted: false,
            ends: false,
        }
    }

    /// By the rules of one dialect, with `;` as a word where it ends a statement.
    pub fn with_ends(text: &'s [u8], dialect: Dialect) -> Words<'s> {
        Words {
            dialect,
            ends: true,
            ..Words::of(text)
        }
    }

    /// Whether the last word stood in backticks or double quotes.
    pub fn was_quoted(&self) -> bool {
        self.quoted
    }

    /// Whether the last word is that of a function that is called: a parenthesis follows.
    pub fn is_called(&self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        rest.trim_ascii_start().first() == Some(&b'(')
    }

    /// Passes over what is no word; false at the end.
    fn skip(&mut self) -> bool {
        while let Some(rest) = self.text.get(self.at..).filter(|rest| !rest.is_empty()) {
            match self.gap(rest) {
                0 => return true,
                length => self.at += length,
            }
        }
        false
    }

    /// Bytes here that are no word; 0: a word begins.
    fn gap(&self, rest: &[u8]) -> usize {
        match self.dialect.unread(rest) {
            Some(Unread::String(length) | Unread::Comment(length)) => length,
            None => match rest {
                [b';', ..] if self.ends => 0,
                [first, ..] if is_word(*first) || matches!(first, b'`' | b'"') => 0,
                _ => 1,
            },
        }
    }
}

impl<'s> Iterator for Words<'s> {
    type Item = &'s [u8];

    fn next(&mut self) -> Option<&'s [u8]> {
        if !self.skip() {
            return None;
        }
        let rest = &self.text[self.at..];
        self.quoted = false;
        let (word, length) = match rest[0] {
            quote @ (b'`' | b'"') => {
                self.quoted = true;
                let length = match quote {
                    b'"' => self.dialect.double_quoted(rest),
                    _ => quoted(rest, quote, false),
                };
                let end = length.saturating_sub(1).max(1);
                (&rest[1..end], length)
            }
            b';' => (&rest[..1], 1),
            _ => {
                let end = rest.iter().position(|byte| !is_word(*byte));
                let end = end.unwrap_or(rest.len());
                (&rest[..end], end)
            }
        };
        self.at += length;
        Some(word)
    }
}

pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$') || byte >= 0x80
}

fn is_comment(dialect: Dialect, after_dashes: &[u8]) -> bool {
    !dialect.dashes_need_blank
        || after_dashes
            .first()
            .is_none_or(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control())
}

/// Bytes until the next line.
fn line(text: &[u8]) -> usize {
    memchr::memchr(b'\n', text).map_or(text.len(), |end| end + 1)
}

fn digits(text: &[u8]) -> usize {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    end.unwrap_or(text.len())
}

/// Bytes of a quoted text that begins here; all there are where it does not end.
pub fn quoted(text: &[u8], quote: u8, backslash: bool) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' if backslash => at += 2,
            byte if byte == quote => {
                if text.get(at + 1) == Some(&quote) {
                    at += 2;
                } else {
                    return at + 1;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

/// Bytes of a comment that begins here.
fn comment(text: &[u8], nested: bool) -> usize {
    let mut depth = 1;
    let mut at = 2;
    while at < text.len() {
        if text[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else if nested && text[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Bytes of `$tag$ ... $tag$`; 0 where none begins here.
fn dollar_quoted(text: &[u8]) -> usize {
    let Some(tag) = memchr::memchr(b'$', &text[1..]).map(|end| &text[..end + 2]) else {
        return 0;
    };
    let name = &tag[1..tag.len() - 1];
    let is_name = !name.first().is_some_and(u8::is_ascii_digit)
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80);
    if !is_name {
        return 0;
    }
    let end = memchr::memmem::find(&text[tag.len()..], tag);
    end.map_or(text.len(), |end| end + 2 * tag.len())
}
