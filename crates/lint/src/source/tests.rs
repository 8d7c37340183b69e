use proptest::prelude::*;

use super::*;

fn size(bytes: usize) -> TextSize {
    TextSize::try_from(bytes).unwrap()
}

fn text(bytes: &[u8]) -> String {
    Source::read("a.py", bytes).map_or_else(|why| why.0, |source| source.text().to_owned())
}

#[test]
fn declared_encodings_are_those_of_python() {
    for (bytes, expect) in [
        (&b"x = '\xc3\xa9'\n"[..], "x = 'é'\n"),
        (b"\xef\xbb\xbfx = '\xc3\xa9'\n", "x = 'é'\n"),
        (b"\xef\xbb\xbf# coding: utf8\n", "# coding: utf8\n"),
        (b"# -*- coding: latin-1 -*-\n'\xe9\x80'\n", "# -*- coding: latin-1 -*-\n'é\u{80}'\n"),
        (
            b"#!/usr/bin/python\r\n# vim: set fileencoding=iso-8859-1 :\r\n'\xe9'",
            "#!/usr/bin/python\r\n# vim: set fileencoding=iso-8859-1 :\r\n'é'",
        ),
        (b"\r# coding: L1\r'\xe9'", "\r# coding: L1\r'é'"),
        (b"# coding: cp1252\n'\x80'", "# coding: cp1252\n'€'"),
        (b"# coding: gbk\n'\xd6\xd0'", "# coding: gbk\n'中'"),
        (b"# coding: shift_jis\n'\x93\xfa'", "# coding: shift_jis\n'日'"),
        (b"# coding: euc_jp\n'\xc6\xfc'", "# coding: euc_jp\n'日'"),
        (b"# coding: koi8-r\n'\xc4'", "# coding: koi8-r\n'д'"),
        (b"# coding=utf-8-unix\n'\xc3\xa9'", "# coding=utf-8-unix\n'é'"),
        // Not in a comment, behind code, or too late: no declaration.
        (b"x = 'coding: latin-1'\n'\xc3\xa9'", "x = 'coding: latin-1'\n'é'"),
        (b"x = 1\n# coding: latin-1\n'\xc3\xa9'", "x = 1\n# coding: latin-1\n'é'"),
        (b"\n\n# coding: latin-1\n'\xc3\xa9'", "\n\n# coding: latin-1\n'é'"),
        (b"# encoding is hard; coding is not\n", "# encoding is hard; coding is not\n"),
    ] {
        assert_eq!(text(bytes), expect);
        assert_eq!(Source::read("a.py", bytes).unwrap().encode().unwrap(), bytes, "{expect}");
    }
}

#[test]
fn what_cannot_be_decoded_says_where() {
    for (bytes, expect) in [
        (&b"a\nb\r\nc\rd\xff"[..], "byte 8, in line 4, is not valid in UTF-8"),
        (b"\xef\xbb\xbf\n\xff", "byte 4, in line 2, is not valid in UTF-8"),
        (
            b"# coding: ascii\n\xc3\xa9",
            "byte 16, in line 2, is not valid in `ascii`, as which the file is declared to be stored",
        ),
        (
            b"# coding: gbk\n\n'\xff'",
            "byte 16, in line 3, is not valid in `gbk`, as which the file is declared to be stored",
        ),
        (b"# coding: rot13\n", "it is declared to be stored as `rot13`, which is not supported"),
        (b"# coding: utf-16\n", "it is declared to be stored as `utf-16`, which is not supported"),
        (
            b"\xef\xbb\xbf# coding: latin-1\n",
            "it begins with a byte order mark of UTF-8 and is declared to be stored as `latin-1`",
        ),
        (b"\xff\xfex\x00", "it is stored as UTF-16, which Python does not read"),
        (b"a\n\0", "line 2 holds a NUL byte, with which Python compiles no file"),
    ] {
        assert_eq!(text(bytes), expect);
    }
}

#[test]
fn an_edited_text_must_fit_its_encoding() {
    let source = Source::read("a.py", b"# coding: latin-1\n'\xe9'\n").unwrap();
    assert!(source.with_text("'€'".into(), &[]).encode().is_err());
    assert_eq!(source.with_text("'é'".into(), &[]).encode().unwrap(), b"'\xe9'");
    // Two byte sequences for one character.
    let doubled = Source::read("a.py", b"# coding: cp932\n'\xed\x40'\n").unwrap();
    assert!(doubled.encode().unwrap_err().0.starts_with("Shift_JIS stores some"));
}

#[test]
fn places_are_counted_in_characters_and_any_line_end() {
    let source = Source::read("a.py", "é = 1\r\nx\ry = 'ü' + z\n".as_bytes()).unwrap();
    let at = |needle: &str| source.location(size(source.text().find(needle).unwrap()));
    assert_eq!(at("= 1"), Location { cell: None, line: 1, column: 3 });
    assert_eq!(at("x"), Location { cell: None, line: 2, column: 1 });
    assert_eq!(at("z"), Location { cell: None, line: 3, column: 11 });
    assert_eq!(source.location(u32::MAX.into()), Location { cell: None, line: 4, column: 1 });
    let lines: Vec<_> = (0..6).map(|line| source.line_text(line)).collect();
    assert_eq!(lines, [None, Some("é = 1"), Some("x"), Some("y = 'ü' + z"), Some(""), None]);
}

const NOTEBOOK: &str = r##"{
 "cells": [
  {"cell_type": "markdown", "metadata": {}, "source": ["# Title"]},
  {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], "source": ["%matplotlib inline\n", "x = 1\n", "y = 2"]},
  {"cell_type": "code", "execution_count": 2, "metadata": {}, "outputs": [], "source": "%%bash\nls"},
  {"cell_type": "code", "execution_count": 3, "metadata": {}, "outputs": [{"output_type": "stream", "name": "stdout", "text": ["ü\n"]}], "source": "z = (\n  3)"}
 ],
 "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
 "nbformat": 4,
 "nbformat_minor": 4
}
"##;

#[test]
fn a_notebook_is_its_python_cells() {
    let source = Source::read("a.ipynb", NOTEBOOK.as_bytes()).unwrap();
    assert_eq!(source.text(), "%matplotlib inline\nx = 1\ny = 2\nz = (\n  3)\n");
    assert!(source.parse().unwrap().errors().is_empty());
    let at = |needle: &str| source.location(size(source.text().find(needle).unwrap()));
    assert_eq!(at("y = 2"), Location { cell: Some(2), line: 3, column: 1 });
    assert_eq!(at("3)"), Location { cell: Some(4), line: 2, column: 3 });
    assert_eq!(source.line_text(source.line_at(size(source.text().find("3)").unwrap()))), Some("  3)"));
    let again = Source::read("a.ipynb", &source.encode().unwrap()).unwrap();
    assert_eq!(again.encode(), source.encode());
    assert_eq!(again.text(), source.text());
}

#[test]
fn what_is_no_python_notebook_says_so() {
    let why = |json: &str| Source::read("a.ipynb", json.as_bytes()).unwrap_err().0;
    assert_eq!(why(&NOTEBOOK.replace("\"python\"", "\"R\"")), "a notebook of another language than Python");
    for (json, begin) in [
        ("x = 1", "not a notebook that can be read: expected a Jupyter Notebook"),
        ("", "not a notebook that can be read: expected a Jupyter Notebook"),
        ("{}", "not a notebook that can be read: this file does not match the schema"),
        (
            &*NOTEBOOK.replace("\"nbformat\": 4", "\"nbformat\": 3"),
            "not a notebook that can be read: expected Jupyter Notebook format 4",
        ),
        (&NOTEBOOK.replace("x = 1", "x = \\u0000"), "line 2 holds a NUL byte"),
    ] {
        assert!(why(json).starts_with(begin), "{}", why(json));
    }
    let empty = r#"{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#;
    let empty = Source::read("a.ipynb", empty.as_bytes()).unwrap();
    assert!(empty.parse().unwrap().errors().is_empty());
    assert_eq!(empty.location(9.into()).line, 2);
}

#[test]
fn the_ending_tells_the_kind() {
    let kind = |name: &str| SourceKind::of(name);
    assert_eq!(kind("a/b.PYI"), SourceKind::Stub);
    assert_eq!(kind("é.ipynb"), SourceKind::Notebook);
    assert_eq!(kind("é"), SourceKind::Module);
    assert_eq!(kind("x.pyw"), SourceKind::Module);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        cookie in prop::sample::select(vec!["", "# coding: latin-1\n", "# coding: gbk\n", "# coding: shift_jis\r\n",
            "# coding: iso-2022-jp\r", "# coding: big5\n", "# coding: euc-kr\n", "# coding: cp1251\n"]),
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x20_u8..0x7f], 0..40),
        offset in 0_u32..80,
    ) {
        let bytes = [cookie.as_bytes(), &bytes].concat();
        if let Ok(source) = Source::read("a.py", &bytes) {
            // What can be written back is what was read.
            if let Ok(again) = source.encode() {
                prop_assert_eq!(again, bytes);
            }
            let place = source.location(offset.into());
            prop_assert!(source.line_text(place.line).is_some());
            let _ = source.parse();
        }
    }

    #[test]
    fn any_cells_are_numbered(cells in prop::collection::vec("[a(\r\n%]{0,6}", 0..6), offset in 0_u32..40) {
        let cells: Vec<_> = cells
            .iter()
            .map(|cell| format!(r#"{{"cell_type":"code","execution_count":null,"metadata":{{}},"outputs":[],"source":{cell:?}}}"#))
            .collect();
        let json = format!(r#"{{"cells":[{}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#, cells.join(","));
        let source = Source::read("a.ipynb", json.as_bytes()).unwrap();
        let _ = source.parse();
        let place = source.location(offset.into());
        prop_assert!(place.line >= 1);
        prop_assert!(place.cell.is_none_or(|cell| cell as usize <= cells.len()));
        let bounds = source.bounds();
        let same = source.with_text(source.text().to_owned(), &bounds);
        prop_assert_eq!((same.text(), same.bounds()), (source.text(), bounds));
    }
}
