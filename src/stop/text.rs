//! Text as it arrives, a token at a time: what may be shown, and where a stop string ends it.

/// Bytes in, text out. Two things are held back: an incomplete character, and the longest
/// ending that could still become a stop string.
///
/// A match is found whatever the boundaries between tokens are: of several stop strings the
/// one completed first wins, and of those completed at the same character the longest.
///
/// # Examples
/// ```
/// use logitscope::stop::text::TextStream;
///
/// let stops = ["own fox".to_owned()];
/// let mut stream = TextStream::default();
/// stream.push(b"the br", &stops);
/// stream.push(b"own f", &stops);
/// assert_eq!((stream.text(), stream.held_back()), ("the br", "own f"));
/// stream.push(b"ox jumps", &stops);
/// assert_eq!(stream.matched(), Some("own fox"));
/// assert_eq!(stream.text(), "the br");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextStream {
    text: String,
    held: String,
    /// The beginning of a character whose other bytes have not come.
    partial: Vec<u8>,
    matched: Option<String>,
}

impl TextStream {
    /// Takes the bytes of a token. Nothing changes after a match.
    pub fn push(&mut self, bytes: &[u8], stops: &[String]) {
        if self.matched.is_some() {
            return;
        }
        self.partial.extend_from_slice(bytes);
        self.decode();
        if let Some((start, stop)) = first_match(&self.held, stops) {
            self.matched = Some(stop.to_owned());
            self.held.truncate(start);
            self.text.push_str(&self.held);
            self.held.clear();
            self.partial.clear();
        } else {
            let kept = self.held.len() - pending_prefix(&self.held, stops);
            self.text.push_str(&self.held[..kept]);
            self.held.drain(..kept);
        }
    }

    /// Moves whole characters from the partial bytes to the held text; bytes that can never
    /// be part of a character become U+FFFD.
    fn decode(&mut self) {
        loop {
            match std::str::from_utf8(&self.partial) {
                Ok(text) => {
                    self.held.push_str(text);
                    self.partial.clear();
                    return;
                }
                Err(error) => {
                    let valid = error.valid_up_to();
                    self.held.push_str(&String::from_utf8_lossy(&self.partial[..valid]));
                    match error.error_len() {
                        // The last character is only incomplete.
                        None => {
                            self.partial.drain(..valid);
                            return;
                        }
                        Some(length) => {
                            self.held.push(char::REPLACEMENT_CHARACTER);
                            self.partial.drain(..valid + length);
                        }
                    }
                }
            }
        }
    }

    /// Gives out everything held back: the sequence has ended for another reason. An
    /// incomplete character becomes one U+FFFD.
    pub fn flush(&mut self) {
        self.text.push_str(&std::mem::take(&mut self.held));
        if !self.partial.is_empty() {
            self.partial.clear();
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// What may be shown, without the stop string.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whole characters that may yet become a stop string.
    #[must_use]
    pub fn held_back(&self) -> &str {
        &self.held
    }

    /// The bytes of an incomplete character.
    #[must_use]
    pub fn partial(&self) -> &[u8] {
        &self.partial
    }

    /// The stop string that was completed.
    #[must_use]
    pub fn matched(&self) -> Option<&str> {
        self.matched.as_deref()
    }
}

/// Where the stop string that is completed first begins, and which it is.
fn first_match<'a>(text: &str, stops: &'a [String]) -> Option<(usize, &'a str)> {
    let found = stops.iter().filter(|stop| !stop.is_empty());
    found
        .filter_map(|stop| text.find(stop.as_str()).map(|start| (start + stop.len(), start, stop.as_str())))
        .min_by_key(|&(end, start, _)| (end, start))
        .map(|(_, start, stop)| (start, stop))
}

/// The length of the longest ending of `text` that is a proper beginning of a stop string.
fn pending_prefix(text: &str, stops: &[String]) -> usize {
    let longest = stops.iter().map(String::len).max().unwrap_or(0);
    let starts = text.char_indices().map(|(start, _)| start);
    starts
        .filter(|start| text.len() - start < longest)
        .find(|&start| {
            stops.iter().any(|stop| stop.len() > text.len() - start && stop.starts_with(&text[start..]))
        })
        .map_or(0, |start| text.len() - start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(pieces: &[&[u8]], stops: &[&str]) -> TextStream {
        let stops: Vec<String> = stops.iter().map(|&stop| stop.to_owned()).collect();
        let mut stream = TextStream::default();
        for piece in pieces {
            stream.push(piece, &stops);
        }
        stream
    }

    #[test]
    fn the_result_does_not_depend_on_boundaries() {
        let text = "ab abc x\u{1F600}y abcd".as_bytes();
        for stops in
            [&["abc"][..], &["ab", "abc"], &["\u{1F600}"], &["cd"], &["none"], &["y a", "x\u{1F600}y ab"]]
        {
            let whole = run(&[text], stops);
            for cut in 0..text.len() {
                let (a, b) = text.split_at(cut);
                assert_eq!(run(&[a, b], stops), whole, "{stops:?} cut at {cut}");
            }
            let bytes: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(run(&bytes, stops), whole, "{stops:?} byte by byte");
        }
    }

    #[test]
    fn a_stop_at_the_first_character_leaves_nothing() {
        let stream = run(&[b"stop"], &["s"]);
        assert_eq!((stream.text(), stream.matched()), ("", Some("s")));
    }

    #[test]
    fn only_the_necessary_is_held_back() {
        let stream = run(&[b"aaab"], &["abc", "zzzzzz"]);
        assert_eq!((stream.text(), stream.held_back()), ("aa", "ab"));
    }

    #[test]
    fn incomplete_characters_wait_and_invalid_bytes_do_not() {
        let mut stream = run(&[b"\xf0\x9f", b"\x98"], &[]);
        assert_eq!((stream.text(), stream.partial().len()), ("", 3));
        stream.flush();
        assert_eq!(stream.text(), "\u{fffd}");
        assert_eq!(run(&[b"\xf0\x9f\x98\x80"], &[]).text(), "\u{1F600}");
        assert_eq!(run(&[b"a\xffb"], &[]).text(), "a\u{fffd}b");
    }
}
