use proptest::prelude::*;

use super::*;
use crate::fix::Applicability;

fn edit(start: u32, end: u32, content: &str) -> Edit {
    Edit { range: Span { start, end }, content: content.into() }
}

fn fix(edits: &[Edit]) -> Fix {
    Fix { applicability: Applicability::Safe, message: "x".into(), edits: edits.to_vec(), leaves_data: false }
}

fn check(text: &str, fixes: &[&[Edit]], expect: &str, taken: &[usize]) {
    let source = Source::read("a.py", text.as_bytes()).unwrap();
    let fixes: Vec<_> = fixes.iter().map(|edits| fix(edits)).collect();
    let made = make(&source, &fixes.iter().collect::<Vec<_>>());
    assert_eq!((made.source.text(), &*made.taken), (expect, taken));
}

#[test]
fn fixes_that_leave_each_other_alone_are_made() {
    check("abcdef", &[&[edit(4, 5, "E")], &[edit(0, 1, "A"), edit(2, 3, "")]], "AbdEf", &[1, 0]);
    check("abc", &[], "abc", &[]);
}

#[test]
fn fixes_that_overlap_or_touch_are_not() {
    check("abcdef", &[&[edit(0, 2, "x")], &[edit(1, 3, "y")]], "xcdef", &[0]);
    check("abcdef", &[&[edit(0, 2, "x")], &[edit(2, 3, "y")]], "xcdef", &[0]);
    check("abcdef", &[&[edit(2, 2, "x")], &[edit(2, 2, "y")]], "abxcdef", &[0]);
    check(
        "abcdef",
        &[&[edit(0, 1, "x"), edit(4, 5, "z")], &[edit(2, 3, "y"), edit(4, 4, "w")]],
        "xbcdzf",
        &[0],
    );
    // Within one fix they belong together.
    check("abcdef", &[&[edit(0, 2, ""), edit(2, 2, "x"), edit(2, 2, "y"), edit(2, 3, "z")]], "xyzdef", &[0]);
}

#[test]
fn the_same_edit_is_made_once() {
    let import = edit(0, 0, "import gc\n");
    check(
        "a = 1\nb = 2\n",
        &[&[import.clone(), edit(4, 5, "3")], &[import.clone(), edit(10, 11, "4")], &[import]],
        "import gc\na = 3\nb = 4\n",
        &[0, 1, 2],
    );
}

#[test]
fn what_does_not_fit_is_not_made() {
    check("aé", &[&[edit(2, 3, "")], &[edit(0, 9, "")], &[edit(1, 0, "x")], &[]], "aé", &[]);
    check("abc", &[&[edit(0, 2, ""), edit(1, 3, "")], &[edit(0, 1, "\0")]], "abc", &[]);
}

fn notebook(cells: &[&str]) -> Source {
    let cells: Vec<_> = cells
        .iter()
        .map(|cell| format!(r#"{{"cell_type":"code","execution_count":null,"metadata":{{}},"outputs":[],"source":{cell:?}}}"#))
        .collect();
    let json =
        format!(r#"{{"cells":[{}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#, cells.join(","));
    Source::read("a.ipynb", json.as_bytes()).unwrap()
}

fn cells(source: &Source) -> Vec<&str> {
    let bounds = source.bounds();
    bounds.windows(2).map(|it| &source.text()[it[0].to_usize()..it[1].to_usize() - 1]).collect()
}

#[test]
fn edits_stay_in_their_cell() {
    // "aa\nbb\n\ncc\n"
    let source = notebook(&["aa\nbb", "", "cc"]);
    let check = |edits: &[Edit], expect: &[&str]| {
        let fixes = [fix(edits)];
        let made = make(&source, &[&fixes[0]]);
        assert_eq!(cells(&made.source), expect);
        let again = Source::read("a.ipynb", &made.source.encode().unwrap()).unwrap();
        assert_eq!(cells(&again), expect);
    };
    check(&[edit(0, 1, "xyz")], &["xyza\nbb", "", "cc"]);
    check(&[edit(3, 6, "")], &["aa", "", "cc"]);
    check(&[edit(0, 6, "")], &["", "", "cc"]);
    check(&[edit(7, 10, "")], &["aa\nbb", "", ""]);
    check(
        &[edit(0, 0, "x\n"), edit(5, 5, "\ny"), edit(7, 7, "z\n"), edit(10, 10, "w\n")],
        &["x\naa\nbb\ny", "", "z\ncc\nw"],
    );
    check(&[edit(5, 8, "")], &["aa\nbb", "", "cc"]);
}

proptest! {
    #[test]
    fn fixes_are_made_whole_and_apart(
        cells in prop::collection::vec("[aé\r\n]{0,6}", 1..4),
        raw in prop::collection::vec(prop::collection::vec((0_u32..24, 0_u32..4, "[xy\n]{0,2}"), 1..4), 0..6),
        in_cells in any::<bool>(),
    ) {
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let source = if in_cells { notebook(&cells) } else { Source::read("a.py", cells.concat().as_bytes()).unwrap() };
        let fixes: Vec<Fix> = raw
            .iter()
            .map(|edits| {
                let edits = edits.iter().map(|(start, length, content)| edit(*start, start + length, content));
                Fix::new(Applicability::Safe, "x", edits.collect())
            })
            .collect();
        let made = make(&source, &fixes.iter().collect::<Vec<_>>());
        // The naive way: every distinct edit of what was taken, from the last to the first.
        let mut edits: Vec<(usize, &Edit)> = Vec::new();
        for index in &made.taken {
            let before = edits.len();
            for edit in &fixes[*index].edits {
                let known = edits[..before].iter().any(|(_, it)| *it == edit);
                if !known {
                    for (_, other) in &edits[..before] {
                        prop_assert!(edit.range.end < other.range.start || other.range.end < edit.range.start);
                    }
                    edits.push((*index, edit));
                }
            }
        }
        edits.sort_by_key(|(_, edit)| edit.range);
        let mut text = source.text().to_owned();
        for (_, edit) in edits.iter().rev() {
            text.replace_range(edit.range.start as usize..edit.range.end as usize, &edit.content);
        }
        if in_cells {
            prop_assert_eq!(made.source.bounds().len(), source.bounds().len());
            let again = Source::read("a.ipynb", &made.source.encode().unwrap()).unwrap();
            prop_assert_eq!(again.text(), made.source.text());
        } else {
            prop_assert_eq!(made.source.text(), text);
        }
    }
}
