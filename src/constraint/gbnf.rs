//! Translates GBNF, the grammars of llama.cpp, to the Lark dialect that the parser reads.
//!
//! A GBNF grammar has no lexer: every character is a symbol. Rules that do not refer to
//! themselves, even through others, become one regular expression each; only recursive rules
//! stay rules. So `foo | foobar` is decided by what follows, as in the original.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use crate::error::{Error, ErrorCode, Result};

/// A piece of a rule.
#[derive(Debug, Clone, PartialEq)]
enum Expr {
    /// A text, taken literally.
    Text(String),
    /// A class of characters, as a regular expression.
    Class(String),
    /// Another rule.
    Rule(String),
    /// One after another.
    Sequence(Vec<Expr>),
    /// One of several.
    Choice(Vec<Expr>),
    /// Repeated between two counts, the second open if `None`.
    Repeat(Box<Expr>, usize, Option<usize>),
}

type Rules = BTreeMap<String, Expr>;

/// Reads a GBNF grammar whose main rule is called `root`, and writes it in Lark.
///
/// # Errors
/// `syntax` with the byte offset, for text that is no grammar or a rule that is missing.
///
/// # Examples
/// ```
/// use logitscope::constraint::gbnf::to_lark;
///
/// let lark = to_lark("root ::= \"a\" [0-9]+ # digits\n")?;
/// assert_eq!(lark, "start: T_ROOT\nT_ROOT: /(?:a)(?:(?:(?:[0-9]))+)/\n");
/// assert_eq!(to_lark("root ::= \"a").unwrap_err().position, Some(9));
/// # Ok::<(), logitscope::Error>(())
/// ```
pub fn to_lark(text: &str) -> Result<String> {
    let mut reader = Reader { text, position: 0, used: Vec::new() };
    let rules = reader.rules()?;
    if !rules.contains_key("root") {
        return Err(fault("the grammar has no rule `root`", 0));
    }
    if let Some((missing, position)) = reader.used.iter().find(|(name, _)| !rules.contains_key(name)) {
        return Err(fault(&format!("there is no rule `{missing}`"), *position));
    }
    let leads_to_itself = |name: &String| reachable(name, &rules).contains(name);
    // What leads to a recursive rule cannot be a regular expression either.
    let structural: BTreeSet<String> = rules
        .keys()
        .filter(|name| leads_to_itself(name) || reachable(name, &rules).iter().any(leads_to_itself))
        .cloned()
        .collect();
    let writer = Writer { rules: &rules, structural: &structural };
    let mut out = format!("start: {}\n", writer.name("root"));
    let mut needed = reachable("root", &rules);
    needed.insert("root".to_owned());
    for name in &needed {
        let Some(expr) = rules.get(name) else { continue };
        // Writing to a String cannot fail.
        let _ = if structural.contains(name) {
            writeln!(out, "{}: {}", writer.name(name), writer.rule(expr))
        } else if name == "root" {
            writeln!(out, "{}: {}", writer.name(name), writer.terminal(expr))
        } else {
            // Regular rules are written out where they are used.
            Ok(())
        };
    }
    Ok(out)
}

fn fault(message: &str, position: usize) -> Error {
    Error::new(ErrorCode::Syntax, format!("gbnf: {message} at position {position}"))
        .stage("gbnf")
        .position(position)
}

fn references(expr: &Expr, used: &mut BTreeSet<String>) {
    match expr {
        Expr::Rule(name) => {
            used.insert(name.clone());
        }
        Expr::Sequence(parts) | Expr::Choice(parts) => {
            for part in parts {
                references(part, used);
            }
        }
        Expr::Repeat(inner, ..) => references(inner, used),
        Expr::Text(_) | Expr::Class(_) => {}
    }
}

/// Every rule that a rule leads to.
fn reachable(name: &str, rules: &Rules) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        let mut used = BTreeSet::new();
        if let Some(expr) = rules.get(&name) {
            references(expr, &mut used);
        }
        open.extend(used.into_iter().filter(|name| found.insert(name.clone())));
    }
    found
}

struct Writer<'a> {
    rules: &'a Rules,
    structural: &'a BTreeSet<String>,
}

impl Writer<'_> {
    /// Lark tells terminals from rules by their case.
    fn name(&self, name: &str) -> String {
        let plain = name.replace('-', "_");
        if self.structural.contains(name) {
            format!("r_{}", plain.to_lowercase())
        } else {
            format!("T_{}", plain.to_uppercase())
        }
    }

    /// An expression that leads to no recursive rule, as a terminal.
    fn terminal(&self, expr: &Expr) -> String {
        let optional = if self.is_nullable(expr) { "?" } else { "" };
        format!("/{}/{optional}", self.regex(expr).replace('/', "\\/"))
    }

    /// The same as a regular expression.
    fn regex(&self, expr: &Expr) -> String {
        match expr {
            Expr::Text(text) => format!("(?:{})", regex_literal(text)),
            Expr::Class(class) => format!("(?:{class})"),
            Expr::Rule(name) => {
                self.rules.get(name).map_or_else(String::new, |expr| format!("(?:{})", self.regex(expr)))
            }
            Expr::Sequence(parts) => parts.iter().map(|part| self.regex(part)).collect(),
            Expr::Choice(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.regex(part)).collect();
                format!("(?:{})", parts.join("|"))
            }
            Expr::Repeat(inner, least, most) => {
                format!("(?:(?:{}){})", self.regex(inner), count(*least, *most))
            }
        }
    }

    fn is_structural(&self, expr: &Expr) -> bool {
        let mut used = BTreeSet::new();
        references(expr, &mut used);
        used.iter().any(|name| self.structural.contains(name))
    }

    /// Whether a terminal may match nothing.
    fn is_nullable(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Text(text) => text.is_empty(),
            Expr::Class(_) => false,
            Expr::Rule(name) => self.rules.get(name).is_some_and(|expr| self.is_nullable(expr)),
            Expr::Sequence(parts) => parts.iter().all(|part| self.is_nullable(part)),
            Expr::Choice(parts) => parts.iter().any(|part| self.is_nullable(part)),
            Expr::Repeat(inner, least, _) => *least == 0 || self.is_nullable(inner),
        }
    }

    /// An expression of a recursive rule.
    fn rule(&self, expr: &Expr) -> String {
        if !self.is_structural(expr) {
            return self.terminal(expr);
        }
        match expr {
            Expr::Rule(name) => self.name(name),
            Expr::Sequence(parts) => {
                // Neighbours without recursion are one terminal, so that it can look ahead.
                let mut out: Vec<String> = Vec::new();
                let mut plain: Vec<Expr> = Vec::new();
                for part in parts {
                    if self.is_structural(part) {
                        if !plain.is_empty() {
                            out.push(self.terminal(&Expr::Sequence(std::mem::take(&mut plain))));
                        }
                        out.push(self.rule(part));
                    } else {
                        plain.push(part.clone());
                    }
                }
                if !plain.is_empty() {
                    out.push(self.terminal(&Expr::Sequence(plain)));
                }
                out.join(" ")
            }
            Expr::Choice(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.rule(part)).collect();
                format!("({})", parts.join(" | "))
            }
            Expr::Repeat(inner, least, most) => format!("({}){}", self.rule(inner), count(*least, *most)),
            Expr::Text(_) | Expr::Class(_) => self.terminal(expr),
        }
    }
}

fn count(least: usize, most: Option<usize>) -> String {
    match (least, most) {
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (0, Some(1)) => "?".to_owned(),
        (least, None) => format!("{{{least},}}"),
        (least, Some(most)) => format!("{{{least},{most}}}"),
    }
}

/// A text as a regular expression that matches only it.
#[must_use]
pub fn regex_literal(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\x{{{:x}}}", u32::from(c));
            }
            c => {
                if "\\.+*?()|[]{}^$#&-~".contains(c) {
                    out.push('\\');
                }
                out.push(c);
            }
        }
    }
    out
}

struct Reader<'a> {
    text: &'a str,
    position: usize,
    /// Every rule that another refers to, and where.
    used: Vec<(String, usize)>,
}

impl Reader<'_> {
    fn rules(&mut self) -> Result<Rules> {
        let mut rules = Rules::new();
        loop {
            self.skip(true);
            if self.peek().is_none() {
                return Ok(rules);
            }
            let start = self.position;
            let name = self.name()?;
            self.skip(false);
            if !self.eat("::=") {
                return Err(self.expected("`::=`"));
            }
            self.skip(true);
            let expr = self.choice(false)?;
            if !matches!(self.peek(), None | Some('\n' | '\r')) {
                return Err(self.expected("the end of the rule"));
            }
            if rules.insert(name.clone(), expr).is_some() {
                return Err(fault(&format!("the rule `{name}` is given twice"), start));
            }
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.position..].chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.position += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, what: &str) -> bool {
        let found = self.text[self.position..].starts_with(what);
        self.position += if found { what.len() } else { 0 };
        found
    }

    fn expected(&self, what: &str) -> Error {
        let found = self.peek().map_or_else(|| "the end".to_owned(), |c| format!("{c:?}"));
        fault(&format!("expected {what}, found {found}"), self.position)
    }

    /// Skips blanks and comments, and line ends too where the rule goes on.
    fn skip(&mut self, lines: bool) {
        while let Some(c) = self.peek() {
            if c == '#' {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.take();
                }
            } else if c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')) {
                self.take();
            } else {
                return;
            }
        }
    }

    fn name(&mut self) -> Result<String> {
        let start = self.position;
        while self.peek().is_some_and(is_of_name) {
            self.take();
        }
        if self.position == start {
            return Err(self.expected("the name of a rule"));
        }
        Ok(self.text[start..self.position].to_owned())
    }

    fn choice(&mut self, nested: bool) -> Result<Expr> {
        let mut parts = vec![self.sequence(nested)?];
        while self.eat("|") {
            self.skip(true);
            parts.push(self.sequence(nested)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::Choice(parts) })
    }

    fn sequence(&mut self, nested: bool) -> Result<Expr> {
        let mut parts = Vec::new();
        loop {
            let item = match self.peek() {
                Some('"') => self.literal()?,
                Some('[') => self.class()?,
                Some('.') => {
                    self.take();
                    Expr::Class("[\\s\\S]".to_owned())
                }
                Some('(') => {
                    self.take();
                    self.skip(true);
                    let inner = self.choice(true)?;
                    if !self.eat(")") {
                        return Err(self.expected("`)`"));
                    }
                    inner
                }
                Some(c) if is_of_name(c) => {
                    let start = self.position;
                    let name = self.name()?;
                    self.used.push((name.clone(), start));
                    Expr::Rule(name)
                }
                _ => break,
            };
            self.skip(nested);
            let item = self.repeated(item)?;
            self.skip(nested);
            parts.push(item);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::Sequence(parts) })
    }

    fn repeated(&mut self, item: Expr) -> Result<Expr> {
        let (least, most) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                let start = self.position;
                self.take();
                let least = self.number()?;
                let most = match (self.eat(","), self.peek()) {
                    (false, _) => Some(least),
                    (true, Some('}')) => None,
                    (true, _) => Some(self.number()?),
                };
                if self.peek() != Some('}') {
                    return Err(self.expected("`}`"));
                }
                if let Some(most) = most.filter(|&most| most < least) {
                    return Err(fault(&format!("at least {least} and at most {most} times is never"), start));
                }
                (least, most)
            }
            _ => return Ok(item),
        };
        self.take();
        Ok(Expr::Repeat(Box::new(item), least, most))
    }

    fn number(&mut self) -> Result<usize> {
        let start = self.position;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.take();
        }
        self.text[start..self.position].parse().map_err(|_| self.expected("a number"))
    }

    fn literal(&mut self) -> Result<Expr> {
        let start = self.position;
        self.take();
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\n') => return Err(fault("a text is not closed", start)),
                Some('"') => {
                    self.take();
                    return Ok(Expr::Text(text));
                }
                Some(_) => text.push(self.character()?),
            }
        }
    }

    fn class(&mut self) -> Result<Expr> {
        let start = self.position;
        self.take();
        let mut class = if self.eat("^") { "[^".to_owned() } else { "[".to_owned() };
        let mut first = true;
        loop {
            match self.peek() {
                None | Some('\n') => return Err(fault("a class is not closed", start)),
                Some(']') => {
                    self.take();
                    class.push(']');
                    return Ok(Expr::Class(class));
                }
                // Between two characters it is a range, else itself.
                Some('-') if !first && !self.text[self.position..].starts_with("-]") => {
                    self.take();
                    class.push('-');
                }
                Some(_) => {
                    let c = self.character()?;
                    class.push_str(&regex_literal(&c.to_string()));
                }
            }
            first = false;
        }
    }

    /// One character, escapes resolved.
    fn character(&mut self) -> Result<char> {
        let start = self.position;
        let c = self.take().ok_or_else(|| self.expected("a character"))?;
        if c != '\\' {
            return Ok(c);
        }
        let kind = self.take().ok_or_else(|| self.expected("an escape"))?;
        let digits = match kind {
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            '\\' | '"' | '[' | ']' | '-' | '^' => return Ok(kind),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => return Err(fault(&format!("`\\{kind}` is no escape"), start)),
        };
        let hex = self.text.get(self.position..self.position + digits);
        let code = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
        let code = code.ok_or_else(|| fault(&format!("`\\{kind}` needs {digits} hexadecimal digits"), start));
        self.position += if code.is_ok() { digits } else { 0 };
        code
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursion_stays_a_rule() {
        let lark = to_lark("root ::= \"(\" root? \")\" | name\nname ::= [a-z]{2,}").unwrap();
        let rule = "r_root: (/(?:\\()/ (r_root)? /(?:\\))/ | /(?:(?:(?:(?:[a-z])){2,}))/)";
        assert_eq!(lark, format!("start: r_root\n{rule}\n"));
    }

    #[test]
    fn faults_have_a_place() {
        for (text, position) in [
            ("root = \"a\"", 5),
            ("root ::= (\"a\"", 13),
            ("root ::= other", 9),
            ("a ::= \"b\"", 0),
            ("root ::= \"\\q\"", 10),
            ("root ::= [a", 9),
            ("root ::= \"a\"{x}", 13),
        ] {
            let error = to_lark(text).unwrap_err();
            assert_eq!((error.code, error.position), (ErrorCode::Syntax, Some(position)), "{text}: {error}");
        }
    }
}
