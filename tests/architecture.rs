//! Holds the tree to what ARCHITECTURE.md and the other documents say about it.
//!
//! A document that nothing checks drifts. Here the module table is compared with `src/`,
//! every `crate::` path with the table's last column, and every link and path in every
//! Markdown file with the disk.
#![cfg(not(target_arch = "wasm32"))]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The module table: each top-level module, and the modules it may use.
type Table = BTreeMap<String, Uses>;

/// The last cell of a row.
#[derive(Debug)]
enum Uses {
    Anything,
    These(BTreeSet<String>),
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files and folders that a `.gitignore` names by place: not part of the tree.
fn ignored(folder: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(folder).join(".gitignore")).unwrap_or_default();
    let places = text.lines().filter_map(|line| line.trim().strip_prefix('/'));
    places.map(|place| format!("{folder}{}", place.trim_end_matches('/'))).collect()
}

fn is_ignored(below_root: &str) -> bool {
    let parts: Vec<&str> = below_root.split('/').collect();
    if parts.contains(&"node_modules") || parts.contains(&".git") {
        return true;
    }
    // Each folder on the way may have a file of its own.
    (0..parts.len()).any(|depth| {
        let folder: String = parts[..depth].iter().flat_map(|part| [*part, "/"]).collect();
        ignored(&folder).iter().any(|place| {
            below_root
                .strip_prefix(place.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    })
}

/// A path as the documents write it: below the root, with forward slashes.
fn below_root(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// Every file below a folder that is part of the tree, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a readable entry").path();
        if is_ignored(&below_root(&path)) {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn with_extension(folder: &str, extension: &str) -> Vec<PathBuf> {
    let all = files(&root().join(folder)).into_iter();
    all.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

fn report(failures: &[String]) {
    assert!(failures.is_empty(), "\n{}\n", failures.join("\n"));
}

// --- The module table -----------------------------------------------------------------

/// `src/error.rs` and `src/model/gguf.rs` to `error` and `model`; `None` for the root.
fn module_of(path: &Path) -> Option<String> {
    let inside = below_root(path);
    let name = inside.strip_prefix("src/")?.split('/').next()?.trim_end_matches(".rs");
    (name != "lib").then(|| name.to_owned())
}

fn table() -> Table {
    let text = read(&root().join("ARCHITECTURE.md"));
    let mut table = Table::new();
    for row in text.lines().filter(|line| line.starts_with("| `src/")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [path, _, uses] = cells[..] else { panic!("a row has three cells: {row}") };
        let path = root().join(path.trim_matches('`'));
        assert!(path.exists(), "ARCHITECTURE.md lists {}, which does not exist", below_root(&path));
        let uses = match uses {
            "anything" => Uses::Anything,
            "nothing" => Uses::These(BTreeSet::new()),
            names => Uses::These(names.split(", ").map(|name| name.trim_matches('`').to_owned()).collect()),
        };
        let module = module_of(&path).expect("a module below src/");
        assert!(table.insert(module, uses).is_none(), "two rows for one module: {row}");
    }
    table
}

#[test]
fn every_module_has_a_row() {
    let listed: BTreeSet<String> = table().into_keys().collect();
    let present: BTreeSet<String> =
        with_extension("src", "rs").iter().filter_map(|path| module_of(path)).collect();
    let missing: Vec<_> = present.difference(&listed).collect();
    assert!(missing.is_empty(), "give these modules a row in ARCHITECTURE.md: {missing:?}");
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let table = table();
    let exports = root_exports();
    let mut failures = Vec::new();
    for path in with_extension("src", "rs") {
        let Some(module) = module_of(&path) else { continue };
        let Some(Uses::These(allowed)) = table.get(&module) else { continue };
        // A name that lib.rs re-exports belongs to the module that it comes from.
        let names = crate_paths(&code(&path)).into_iter();
        let used: BTreeSet<String> = names.map(|name| exports.get(&name).cloned().unwrap_or(name)).collect();
        let strangers = used.iter().filter(|used| **used != module && !allowed.contains(*used));
        failures.extend(strangers.map(|used| format!("{} uses `{used}`, but may not", below_root(&path))));
    }
    report(&failures);
}

/// Modules that may use each other; ARCHITECTURE.md says why.
const KNOT: [&str; 6] = ["config", "registry", "sampler", "spec", "step", "transform"];

#[test]
fn the_table_has_no_other_circle() {
    let tied = |name: &str| if KNOT.contains(&name) { "the knot".to_owned() } else { name.to_owned() };
    let mut left: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, uses) in table() {
        if let Uses::These(names) = uses {
            let module = tied(&module);
            let others = names.iter().map(|name| tied(name)).filter(|name| *name != module);
            left.entry(module.clone()).or_default().extend(others);
        }
    }
    loop {
        let free = left.iter().find(|(_, uses)| uses.iter().all(|name| !left.contains_key(name)));
        let Some(free) = free.map(|(module, _)| module.clone()) else { break };
        left.remove(&free);
    }
    assert!(left.is_empty(), "these modules use each other in a circle: {:?}", left.keys());
}

/// A file without comments and without its unit tests, which may reach for more.
fn code(path: &Path) -> String {
    let text = read(path);
    let before_tests = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = before_tests.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The first names after each `crate::`, through one level of braces.
fn crate_paths(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        if let Some(list) = after.strip_prefix('{') {
            names.extend(first_names(list));
        } else {
            names.extend(identifier(after));
        }
    }
    names
}

/// The first name of each entry of a brace list: `a, b::{c, d}, e}` gives a, b, e.
fn first_names(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0_usize;
    let mut entry = String::new();
    for character in list.chars() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.extend(identifier(&std::mem::take(&mut entry))),
            _ if depth == 0 => entry.push(character),
            _ => {}
        }
    }
    names.extend(identifier(&entry));
    names
}

fn identifier(text: &str) -> Option<String> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

/// The names that `src/lib.rs` re-exports, and the module each comes from.
fn root_exports() -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for statement in code(&root().join("src/lib.rs")).split("pub use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        let Some((module, rest)) = statement.split_once("::") else { continue };
        let last = rest.rsplit("::").next().unwrap_or_default();
        let names = match rest.split_once('{') {
            Some((_, list)) => first_names(&format!("{list}}}")),
            None => identifier(last).into_iter().collect(),
        };
        exports.extend(names.into_iter().map(|name| (name, module.trim().to_owned())));
    }
    exports
}

// --- Invariants that a look at the source can check -----------------------------------

#[test]
fn foreign_worlds_have_one_user_each() {
    let worlds: [(&str, &[&str]); 2] = [("wasm", &["wasm_bindgen", "js_sys", "web_sys"]), ("gpu", &["wgpu"])];
    let mut failures = Vec::new();
    for path in with_extension("src", "rs") {
        let code = code(&path);
        for (owner, packages) in worlds {
            if module_of(&path).as_deref() == Some(owner) {
                continue;
            }
            let used = packages.iter().filter(|package| code.contains(*package));
            failures.extend(
                used.map(|package| {
                    format!("{} names {package}, which only `{owner}` may", below_root(&path))
                }),
            );
        }
    }
    report(&failures);
}

#[test]
fn javascript_decodes_nothing() {
    // Logarithms are how a rank plot is drawn, so drawing scales may have them.
    let scales = "www/src/charts/scale.js";
    let forbidden =
        ["Math.exp", "Math.log", "Math.pow", "Math.random", "softmax", "argmax", "logsumexp", "Float64Array"];
    let mut failures = Vec::new();
    for path in with_extension("www/src", "js") {
        let inside = below_root(&path);
        for (index, line) in read(&path).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if code.trim_start().starts_with('*') || code.trim_start().starts_with("/*") {
                continue;
            }
            let found = forbidden.iter().filter(|word| code.contains(*word));
            let found = found.filter(|word| !(inside == scales && **word == "Math.log"));
            failures.extend(found.map(|word| format!("{inside}:{}: {word} belongs in Rust", index + 1)));
        }
    }
    report(&failures);
}

#[test]
fn every_module_says_what_it_owns() {
    let bare = with_extension("src", "rs").into_iter().filter(|path| !read(path).starts_with("//! "));
    let failures: Vec<_> = bare.map(|path| format!("{} has no header", below_root(&path))).collect();
    report(&failures);
}

#[test]
fn wasm_bindgen_has_one_version() {
    let mut versions = BTreeMap::new();
    for file in ["Cargo.toml", "xtask/Cargo.toml", "xtask/runner/Cargo.toml"] {
        for line in read(&root().join(file)).lines().filter(|line| line.starts_with("wasm-bindgen")) {
            if let Some((_, after)) = line.split_once("\"=") {
                versions.insert(file, after.split('"').next().unwrap_or_default().to_owned());
            }
        }
    }
    assert_eq!(versions.len(), 3, "a manifest does not pin wasm-bindgen: {versions:?}");
    let distinct: BTreeSet<_> = versions.values().collect();
    assert_eq!(distinct.len(), 1, "they share a file format, so they must be equal: {versions:?}");
}

#[test]
fn every_dependency_says_why() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let reasons = text.split("## Dependencies").nth(1).and_then(|rest| rest.split("\n## ").next());
    let reasons = reasons.expect("ARCHITECTURE.md has a heading Dependencies");
    let mut names = BTreeSet::new();
    for file in ["Cargo.toml", "xtask/Cargo.toml", "xtask/runner/Cargo.toml"] {
        let manifest = read(&root().join(file));
        for table in manifest.split("\n[").filter(|table| table.lines().next().is_some_and(is_dependencies)) {
            let entries = table.lines().skip(1).filter_map(|line| line.split_once(" = "));
            names.extend(
                entries.map(|(name, _)| name.trim().to_owned()).filter(|name| !name.starts_with('#')),
            );
        }
    }
    let package: serde_json::Value =
        serde_json::from_str(&read(&root().join("www/package.json"))).expect("JSON");
    for table in ["dependencies", "devDependencies"] {
        names.extend(package[table].as_object().expect("an object").keys().cloned());
    }
    assert!(names.len() >= 15, "only {names:?} were found");
    let silent = names.iter().filter(|name| !reasons.contains(&format!("`{name}`")));
    let failures: Vec<_> =
        silent.map(|name| format!("`{name}` has no line under Dependencies in ARCHITECTURE.md")).collect();
    report(&failures);
}

/// Whether a table of a manifest, such as `target.'cfg(…)'.dev-dependencies]`, lists packages.
fn is_dependencies(header: &str) -> bool {
    header.trim_end_matches(']').rsplit('.').next().is_some_and(|last| last.ends_with("dependencies"))
}

#[test]
fn the_lock_file_names_no_host() {
    let lock = read(&root().join("www/package-lock.json"));
    assert!(!lock.contains("\"resolved\""), "run npm in www/, where .npmrc leaves addresses out");
}

// --- Documents ------------------------------------------------------------------------

#[test]
fn every_link_and_path_in_the_documents_exists() {
    let documents: Vec<_> = files(root())
        .into_iter()
        .filter(|path| path.extension().is_some_and(|found| found == "md"))
        .collect();
    let names: BTreeSet<String> = files(root())
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    let mut checked = 0;
    let mut failures = Vec::new();
    for document in &documents {
        let text = read(document);
        let prose = without_code_blocks(&text);
        for target in links(&prose) {
            checked += 1;
            if let Err(why) = follow(document, &target) {
                failures.push(format!("{}: {why}", below_root(document)));
            }
        }
        for path in backticked_paths(&prose) {
            checked += 1;
            if !path_exists(document, &path, &names) {
                failures.push(format!("{}: `{path}` does not exist", below_root(document)));
            }
        }
    }
    assert!(checked >= 20, "only {checked} links and paths were checked in {documents:?}");
    report(&failures);
}

fn without_code_blocks(text: &str) -> String {
    // Fences stand at the start of a line, so every second piece is code.
    format!("\n{text}").split("\n```").step_by(2).collect()
}

/// The targets of `[text](target)` that point into the tree.
fn links(prose: &str) -> Vec<String> {
    let targets = prose.split("](").skip(1).filter_map(|after| after.split([')', ' ']).next());
    targets
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .map(str::to_owned)
        .collect()
}

fn follow(document: &Path, target: &str) -> Result<(), String> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = document.parent().unwrap_or(root());
    let path = if file.is_empty() { document.to_owned() } else { folder.join(file) };
    if !path.exists() {
        return Err(format!("the link {target} leads nowhere"));
    }
    let anchors: Vec<String> = match path.extension() {
        Some(extension) if extension == "md" && !anchor.is_empty() => {
            read(&path).lines().filter(|line| line.starts_with('#')).map(anchor_of).collect()
        }
        _ => return Ok(()),
    };
    if anchors.iter().any(|found| found == anchor) {
        Ok(())
    } else {
        Err(format!("the link {target} names no heading"))
    }
}

/// The address that a Markdown renderer gives a heading.
fn anchor_of(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    words.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

const EXTENSIONS: [&str; 13] =
    ["rs", "md", "toml", "lock", "json", "js", "html", "css", "wgsl", "wasm", "gguf", "yml", "py"];

/// What stands in single backticks and looks like a path of this tree.
fn backticked_paths(prose: &str) -> Vec<String> {
    let quoted = prose.split('`').skip(1).step_by(2);
    quoted.filter(|text| looks_like_a_path(text)).map(str::to_owned).collect()
}

fn looks_like_a_path(text: &str) -> bool {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    if !plain || text.starts_with('/') || text.starts_with("./") {
        return false;
    }
    let has_extension =
        text.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && EXTENSIONS.contains(&end));
    let first = text.split('/').next().unwrap_or_default();
    let below_an_entry = text.contains('/') && root().join(first).exists();
    has_extension || text.ends_with('/') || below_an_entry
}

/// Whether a path leads somewhere from the document's folder or from one above it.
fn path_exists(document: &Path, path: &str, names: &BTreeSet<String>) -> bool {
    let folders = document.ancestors().skip(1).take_while(|folder| folder.starts_with(root()));
    let mut places = folders.map(|folder| folder.join(path));
    places.any(|place| place.exists() || is_ignored(below_root(&place).trim_end_matches('/')))
        // A bare file name may lie anywhere.
        || (!path.contains('/') && names.contains(path))
}

#[test]
fn the_checks_see_what_they_should() {
    assert_eq!(
        crate_paths("use crate::{TokenId, error::{Result, Error}, spec};\ncrate::rng::draw()"),
        ["TokenId", "error", "rng", "spec"].map(str::to_owned).into()
    );
    assert_eq!(links("[a](b.md#c) and [d](https://example.org)"), ["b.md#c"]);
    assert_eq!(
        backticked_paths("`src/lib.rs`, `top_p(p=0.9)`, `a/b` and `min_p.rs`"),
        ["src/lib.rs", "min_p.rs"]
    );
    assert_eq!(without_code_blocks("a\n```text\n`b`\n```\nc"), "\na\nc");
    assert_eq!(anchor_of("## How to add a stage"), "how-to-add-a-stage");
}
