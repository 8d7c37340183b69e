//! Prints what rules report for the Python files below some folders: `check CODES PATH…`, for trying rules on real code.

use std::{env, fs, path::Path, time::Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use vramscope_lint::{Selection, Source, check};

fn read(path: &Path, sources: &mut Vec<Source>) {
    if path.is_dir() {
        let Ok(entries) = fs::read_dir(path) else { return };
        let mut paths: Vec<_> = entries.flatten().map(|it| it.path()).collect();
        paths.sort();
        for path in paths {
            read(&path, sources);
        }
    } else if path.extension().is_some_and(|it| it == "py" || it == "ipynb")
        && let Ok(bytes) = fs::read(path)
        && let Ok(source) = Source::read(path.to_string_lossy(), &bytes)
    {
        sources.push(source);
    }
}

fn main() {
    let mut arguments = env::args().skip(1);
    let codes = arguments.next().unwrap_or_default();
    let selection = Selection::of(|rule| {
        if codes == "default" { rule.default } else { codes.split(',').any(|it| rule.code.starts_with(it)) }
    });
    let mut sources = Vec::new();
    for path in arguments {
        read(Path::new(&path), &mut sources);
    }
    let lines: usize = sources.iter().map(|it| it.text().lines().count()).sum();
    let start = Instant::now();
    let checked = check(&sources, &selection, &|| {});
    let took = start.elapsed();
    let mut count = 0;
    for (source, checked) in sources.iter().zip(&checked) {
        for it in &checked.diagnostics {
            count += 1;
            let location = source.location(it.range.start());
            println!(
                "{}:{}: {} {} {}",
                source.name(),
                location.line,
                it.severity.name(),
                it.rule.code,
                it.message
            );
        }
    }
    eprintln!("{} files, {lines} lines, {count} reports, {took:.2?}", sources.len());
}
