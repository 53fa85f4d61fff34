//! The modules of a crate, and the files whose items their paths lead to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::tokens::{Token, behind_bracket, production};

/// One crate: its files, and a tree of modules that are written in them.
#[derive(Default)]
pub struct Modules {
    pub files: Vec<PathBuf>,
    modules: Vec<Module>,
}

/// A file that needs an item of another.
pub struct Edge {
    pub from: usize,
    pub to: usize,
    /// The first line that says so, counted from 0.
    pub line: usize,
    /// The items.
    pub names: BTreeSet<String>,
}

#[derive(Default)]
struct Module {
    file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    bindings: Vec<Binding>,
    paths: Vec<Written>,
    words: BTreeSet<String>,
}

/// A name that a `use` brings into a module; `*` for all names of a module.
struct Binding {
    name: String,
    path: Vec<String>,
    line: usize,
    is_public: bool,
}

/// A path in code, outside of `use`.
struct Written {
    path: Vec<String>,
    line: usize,
}

enum Found<'a> {
    Module(usize),
    Item { file: usize, name: &'a str },
}

/// Deep enough for every chain of re-exports; ends those that lead in a circle.
const RE_EXPORTS_MAX: usize = 16;

impl Modules {
    /// Reads the crate whose root file is `root`.
    pub fn of(root: &Path) -> Self {
        let mut modules = Self::default();
        modules.read_file(root, None);
        modules
    }

    /// Every pair of files of which one needs the other. A re-export needs nothing by itself.
    pub fn edges(&self) -> Vec<Edge> {
        let mut edges: BTreeMap<(usize, usize), Edge> = BTreeMap::new();
        for (at, module) in self.modules.iter().enumerate() {
            let is_named =
                |binding: &&Binding| !binding.is_public || module.words.contains(&binding.name);
            let named = module.bindings.iter().filter(is_named);
            let named = named.map(|binding| (&binding.path, binding.line));
            let written = module.paths.iter().map(|written| (&written.path, written.line));
            for (path, line) in named.chain(written) {
                let Some(Found::Item { file: to, name }) = self.resolve(at, path, 0) else {
                    continue;
                };
                let from = module.file;
                if from != to {
                    let new = || Edge { from, to, line, names: BTreeSet::new() };
                    let edge = edges.entry((from, to)).or_insert_with(new);
                    edge.line = edge.line.min(line);
                    edge.names.insert(name.to_owned());
                }
            }
        }
        edges.into_values().collect()
    }

    fn read_file(&mut self, path: &Path, parent: Option<usize>) -> Option<usize> {
        let code = fs::read_to_string(path).ok()?;
        let file = self.files.len();
        self.files.push(path.to_path_buf());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_folder = ["lib.rs", "main.rs", "mod.rs"].contains(&&*name);
        let folder = if is_folder { path.parent()?.to_path_buf() } else { path.with_extension("") };
        let tokens = production(&code);
        Some(self.read_module(&tokens, Place { file, folder, parent }))
    }

    fn read_module(&mut self, tokens: &[Token], place: Place) -> usize {
        let this = self.modules.len();
        self.modules.push(Module { file: place.file, parent: place.parent, ..Module::default() });
        let (mut at, mut depth) = (0, 0_usize);
        while at < tokens.len() {
            let token = tokens[at];
            match token.text {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "use" => {
                    at = self.modules[this].read_use(tokens, at);
                    continue;
                }
                "mod" if depth == 0 => {
                    at = self.read_child(tokens, at, this, &place);
                    continue;
                }
                kind if depth == 0 && ITEMS.contains(&kind) => {
                    if let Some(name) = name_after(tokens, at) {
                        self.modules[this].items.insert(name.to_owned());
                    }
                }
                _ if token.is_word() => at += self.modules[this].read_path(tokens, at),
                _ => {}
            }
            at += 1;
        }
        this
    }

    /// Reads `mod name;` or `mod name { … }`, and returns the index behind it.
    fn read_child(&mut self, tokens: &[Token], at: usize, this: usize, place: &Place) -> usize {
        let Some(name) = tokens.get(at + 1).map(|token| token.text) else { return at + 1 };
        let folder = place.folder.join(name);
        let (child, end) = match tokens.get(at + 2).map(|token| token.text) {
            Some("{") => {
                let end = behind_bracket(tokens, at + 2);
                let inner = Place { file: place.file, folder, parent: Some(this) };
                (Some(self.read_module(&tokens[at + 3..end - 1], inner)), end)
            }
            _ => {
                let sibling = place.folder.join(format!("{name}.rs"));
                let path = if sibling.is_file() { sibling } else { folder.join("mod.rs") };
                (self.read_file(&path, Some(this)), at + 3)
            }
        };
        if let Some(child) = child {
            self.modules[this].children.insert(name.to_owned(), child);
        }
        end
    }

    /// What `path` means in the module `from`; nothing for what other crates hold.
    fn resolve<'a>(&'a self, from: usize, path: &'a [String], depth: usize) -> Option<Found<'a>> {
        if depth > RE_EXPORTS_MAX {
            return None;
        }
        let mut at = from;
        for (index, name) in path.iter().enumerate() {
            let is_last = index + 1 == path.len();
            let module = &self.modules[at];
            at = match name.as_str() {
                "crate" => 0,
                "self" => at,
                "super" => module.parent?,
                _ if is_last && module.items.contains(name) => {
                    return Some(Found::Item { file: module.file, name });
                }
                _ if module.children.contains_key(name) => module.children[name],
                _ => match self.bound(at, name, depth) {
                    Some(Found::Module(found)) => found,
                    Some(item) => return Some(item),
                    None if module.items.contains(name) => {
                        return Some(Found::Item { file: module.file, name });
                    }
                    None => return None,
                },
            };
        }
        Some(Found::Module(at))
    }

    /// What a `use` in the module `at` means by `name`.
    fn bound<'a>(&'a self, at: usize, name: &'a String, depth: usize) -> Option<Found<'a>> {
        let module = &self.modules[at];
        let own = module.bindings.iter().filter(|binding| binding.name == *name);
        // `use name;` of an extern crate must not lead back to itself.
        let own = own.filter(|binding| binding.path.first().is_none_or(|first| first != name));
        let all = module.bindings.iter().filter(|binding| binding.name == "*");
        for binding in own {
            if let Some(found) = self.resolve(at, &binding.path, depth + 1) {
                return Some(found);
            }
        }
        for binding in all {
            let Some(Found::Module(from)) = self.resolve(at, &binding.path, depth + 1) else {
                continue;
            };
            let path = std::slice::from_ref(name);
            if from != at
                && let Some(found) = self.resolve(from, path, depth + 1)
            {
                return Some(found);
            }
        }
        None
    }
}

impl Module {
    /// Reads a `use` statement that begins at `at`, and returns the index behind it.
    fn read_use(&mut self, tokens: &[Token], at: usize) -> usize {
        let length = tokens[at..].iter().position(|token| token.text == ";").unwrap_or(1);
        let is_public = at > 0 && ["pub", ")"].contains(&tokens[at - 1].text);
        let tree = &tokens[at + 1..at + length];
        // `impl Trait + use<'a>` brings in nothing.
        if tree.first().is_some_and(Token::is_word) {
            self.read_tree(tree, &[], is_public);
        }
        at + length + 1
    }

    fn read_tree(&mut self, tree: &[Token], before: &[String], is_public: bool) {
        let mut path = before.to_vec();
        let mut at = 0;
        while at < tree.len() {
            match tree[at].text {
                "{" => {
                    let end = behind_bracket(tree, at);
                    for branch in branches(&tree[at + 1..end - 1]) {
                        self.read_tree(branch, &path, is_public);
                    }
                    return;
                }
                "::" => {}
                "as" => break,
                word => path.push(word.to_owned()),
            }
            at += 1;
        }
        let Some(last) = tree.last() else { return };
        if path.last().is_some_and(|word| ["self", "*"].contains(&word.as_str())) && path.len() > 1
        {
            path.pop();
        }
        let name = match last.text {
            "self" => path.last().cloned().unwrap_or_default(),
            text => text.to_owned(),
        };
        self.bindings.push(Binding { name, path, line: last.line, is_public });
    }

    /// Reads a path or a name at `at`, and returns how many tokens it has beyond the first.
    fn read_path(&mut self, tokens: &[Token], at: usize) -> usize {
        let follows = |index: usize| {
            let is_path = tokens.get(index).is_some_and(|token| token.text == "::");
            is_path && tokens.get(index + 1).is_some_and(Token::is_word)
        };
        let mut end = at;
        while follows(end + 1) {
            end += 2;
        }
        self.words.insert(tokens[at].text.to_owned());
        let is_inside = at > 0 && [".", "::"].contains(&tokens[at - 1].text);
        if end > at && !is_inside {
            let path = tokens[at..=end].iter().step_by(2).map(|token| token.text.to_owned());
            self.paths.push(Written { path: path.collect(), line: tokens[at].line });
        }
        end - at
    }
}

/// Where a module is written.
struct Place {
    file: usize,
    /// Where the files of its children are.
    folder: PathBuf,
    parent: Option<usize>,
}

/// The parts of a tree between its outer commas.
fn branches<'a, 'b>(tree: &'a [Token<'b>]) -> Vec<&'a [Token<'b>]> {
    let mut found = Vec::new();
    let (mut from, mut at) = (0, 0);
    while at < tree.len() {
        match tree[at].text {
            "{" => at = behind_bracket(tree, at),
            "," => {
                found.push(&tree[from..at]);
                at += 1;
                from = at;
            }
            _ => at += 1,
        }
    }
    if from < tree.len() {
        found.push(&tree[from..]);
    }
    found
}

fn name_after<'a>(tokens: &[Token<'a>], at: usize) -> Option<&'a str> {
    let modifiers = ["mut", "fn", "unsafe", "async", "extern", "\"\"", "!"];
    let name = tokens[at + 1..].iter().find(|token| !modifiers.contains(&token.text))?;
    name.is_word().then_some(name.text)
}

const ITEMS: &[&str] =
    &["struct", "enum", "trait", "type", "fn", "const", "static", "union", "macro_rules"];
