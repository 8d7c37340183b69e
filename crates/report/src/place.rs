//! Places in code, said as shortly as is unambiguous.

use std::collections::{BTreeMap, BTreeSet};

use vramscope_view::analysis::{Frame, Location};

/// The shortest tail of each path that no other path shown shares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    tails: BTreeMap<String, String>,
    /// The files of the user's own code.
    user: BTreeSet<String>,
}

impl Places {
    /// Looks at every file that may be shown.
    pub(crate) fn of<'a>(files: impl IntoIterator<Item = &'a str>) -> Self {
        let files: BTreeSet<&str> = files.into_iter().collect();
        let mut tails = BTreeMap::new();
        let mut open: Vec<&str> = files.iter().copied().collect();
        let mut parts = 1;
        while !open.is_empty() {
            let mut by_tail: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            for file in open {
                let least = parts.max(least_parts(file));
                by_tail.entry(tail(file, least)).or_default().push(file);
            }
            open = Vec::new();
            for (short, sharing) in by_tail {
                match sharing.as_slice() {
                    [file] => {
                        tails.insert((*file).to_owned(), short);
                    }
                    // A path of no more parts is its own tail, however many others end with it.
                    _ => {
                        for file in sharing {
                            if n_parts(file) <= parts {
                                tails.insert(file.to_owned(), file.to_owned());
                            } else {
                                open.push(file);
                            }
                        }
                    }
                }
            }
            parts += 1;
        }
        Self { tails, user: BTreeSet::new() }
    }

    /// Names the files that are of the user's own code.
    pub(crate) fn with_user_files<'a>(mut self, files: impl IntoIterator<Item = &'a str>) -> Self {
        self.user = files.into_iter().map(str::to_owned).collect();
        self
    }

    /// The user's files that are not shown as they were recorded: as shown, and as recorded.
    pub(crate) fn shortened_user_files(&self) -> impl Iterator<Item = (&str, &str)> {
        let shown = self.tails.iter().filter(|(file, tail)| file != tail && self.user.contains(*file));
        shown.map(|(file, tail)| (tail.as_str(), file.as_str()))
    }

    /// The short form of a path.
    pub(crate) fn file<'a>(&'a self, file: &'a str) -> &'a str {
        self.tails.get(file).map_or(file, String::as_str)
    }

    /// `train.py:14`; the function alone where there is no file.
    pub(crate) fn line(&self, location: &Location) -> String {
        if is_nowhere(&location.file) {
            return location.function.clone();
        }
        if location.line == 0 {
            return self.file(&location.file).to_owned();
        }
        format!("{}:{}", self.file(&location.file), location.line)
    }

    /// `train.py:14 forward`.
    pub(crate) fn full(&self, location: &Location) -> String {
        if is_nowhere(&location.file) || location.function.is_empty() {
            return self.line(location);
        }
        format!("{} {}", self.line(location), location.function)
    }

    /// The place where there is one, else what it is called.
    pub(crate) fn or_label(&self, site: Option<&Location>, label: &str) -> String {
        match site {
            Some(site) => self.full(site),
            None if label.is_empty() => "place unknown".to_owned(),
            None => label.to_owned(),
        }
    }
}

/// Native frames often have no file.
fn is_nowhere(file: &str) -> bool {
    file.is_empty() || file.starts_with("??")
}

fn is_separator(c: char) -> bool {
    c == '/' || c == '\\'
}

fn n_parts(file: &str) -> usize {
    file.split(is_separator).count()
}

/// The last parts of a path.
fn tail(file: &str, parts: usize) -> String {
    let start = file.rmatch_indices(is_separator).nth(parts - 1).map_or(0, |(at, _)| at + 1);
    file.get(start..).unwrap_or(file).to_owned()
}

/// Files of packages are known by their path in the package, such as `torch/nn/modules/conv.py`.
fn least_parts(file: &str) -> usize {
    let parts: Vec<&str> = file.split(is_separator).collect();
    parts
        .iter()
        .rposition(|part| *part == "site-packages" || *part == "dist-packages")
        .map_or(1, |at| (parts.len() - 1 - at).max(1))
}

/// The library function that a line of the user's code called last, in the form that imports take:
/// `torch.nn.functional.linear`. Nothing if the line allocated by itself or only native frames are above it.
pub(crate) fn innermost_library_function(stack: &[Frame]) -> Option<String> {
    let below = stack.iter().take_while(|frame| !frame.is_user);
    let Location { file, function, .. } =
        &below.into_iter().find(|f| f.location.file.ends_with(".py"))?.location;
    let parts: Vec<&str> = file.split(is_separator).collect();
    let in_package = parts.get(parts.len() - least_parts(file)..)?.join(".");
    let module = in_package.strip_suffix(".py").unwrap_or(&in_package);
    Some(format!("{}.{function}", module.strip_suffix(".__init__").unwrap_or(module)))
}

/// How the folding is told: `(11 library frames folded)`; nothing where there are none.
pub(crate) fn folded_note(stack: &[Frame]) -> Option<String> {
    match stack.iter().filter(|frame| !frame.is_user).count() {
        0 => None,
        1 => Some("(1 library frame folded)".to_owned()),
        n => Some(format!("({n} library frames folded)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[&str], want: &[&str]) {
        let places = Places::of(files.iter().copied());
        let got: Vec<&str> = files.iter().map(|f| places.file(f)).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn paths_are_as_short_as_they_can_be() {
        check(&["/srv/job/train.py"], &["train.py"]);
        check(
            &["/srv/a/model.py", "/srv/b/model.py", "/srv/train.py"],
            &["a/model.py", "b/model.py", "train.py"],
        );
        check(&["/x/a/b/m.py", "/y/a/b/m.py"], &["x/a/b/m.py", "y/a/b/m.py"]);
        check(&["m.py", "a/m.py"], &["m.py", "a/m.py"]);
        check(&["C:\\job\\train.py"], &["train.py"]);
        check(
            &["/v/lib/python3.12/site-packages/torch/nn/modules/conv.py", "/srv/conv.py"],
            &["torch/nn/modules/conv.py", "conv.py"],
        );
        check(&["", "<string>"], &["", "<string>"]);
    }

    #[test]
    fn places_say_what_is_known() {
        let at = |file: &str, line, function: &str| Location {
            file: file.into(),
            line,
            function: function.into(),
        };
        let places = Places::of(["/srv/train.py"]);
        assert_eq!(places.full(&at("/srv/train.py", 14, "forward")), "train.py:14 forward");
        assert_eq!(places.full(&at("/srv/train.py", 0, "forward")), "train.py forward");
        assert_eq!(places.full(&at("??", 0, "at::empty")), "at::empty");
        assert_eq!(places.or_label(None, "512.0 KiB blocks"), "512.0 KiB blocks");
        assert_eq!(places.or_label(None, ""), "place unknown");
    }

    #[test]
    fn folded_frames_are_counted() {
        let frame = |file: &str, is_user| Frame {
            location: Location { file: file.into(), line: 1, function: "f".into() },
            is_user,
        };
        let stack =
            [frame("t", false), frame("t", false), frame("a", true), frame("t", false), frame("b", true)];
        assert_eq!(folded_note(&stack).as_deref(), Some("(3 library frames folded)"));
        assert_eq!(folded_note(&stack[2..3]), None);
        assert_eq!(innermost_library_function(&stack), None, "the frames have no Python file");
        let library = frame("/v/lib/python3.12/site-packages/torch/nn/functional.py", false);
        let stack = [frame("??", false), library.clone(), frame("/srv/a.py", true)];
        assert_eq!(innermost_library_function(&stack).as_deref(), Some("torch.nn.functional.f"));
        assert_eq!(innermost_library_function(&[frame("/srv/a.py", true), library]), None);
    }
}
