//! Columns that line up.

use crate::page::Page;
use crate::style::{Role, Span};

/// On which side the cells of a column line up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of cells.
pub(crate) struct Table {
    columns: Vec<Align>,
    rows: Vec<Vec<Span>>,
}

/// Spaces between columns.
const GAP: usize = 2;
/// The last column keeps this width, even if lines become too long.
const LEAST: usize = 16;

impl Table {
    pub(crate) fn new(columns: &[Align]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// The names of the columns.
    pub(crate) fn head(&mut self, names: &[&str]) {
        self.rows.push(names.iter().map(|name| Span::new(Role::Dim, name)).collect());
    }

    pub(crate) fn row(&mut self, cells: Vec<Span>) {
        self.rows.push(cells);
    }

    /// Writes the rows, `indent` columns from the left. Where they are too wide, the last column wraps.
    pub(crate) fn write(self, page: &mut Page, indent: usize) {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|i| self.rows.iter().filter_map(|row| row.get(i)).map(Span::width).max().unwrap_or(0))
            .collect();
        let others: usize = widths.iter().rev().skip(1).map(|width| width + GAP).sum();
        let room = page.width().saturating_sub(indent + others).max(LEAST);
        let last = self.columns.len().saturating_sub(1);
        let rows = self.rows.into_iter().flat_map(|mut row| {
            let mut lines = row.get(last).map(|cell| cell.wrapped(room)).unwrap_or_default().into_iter();
            if let (Some(cell), Some(first)) = (row.get_mut(last), lines.next()) {
                *cell = first;
            }
            let below = lines.map(|line| {
                let mut row = vec![Span::default(); last];
                row.push(line);
                row
            });
            std::iter::once(row).chain(below.collect::<Vec<_>>()).collect::<Vec<_>>()
        });
        for row in rows {
            let mut line: Vec<Span> = vec![" ".repeat(indent).into()];
            for ((cell, &width), align) in row.into_iter().zip(&widths).zip(&self.columns) {
                let pad: Span = " ".repeat(width.saturating_sub(cell.width())).into();
                match align {
                    Align::Left => line.extend([cell, pad]),
                    Align::Right => line.extend([pad, cell]),
                }
                line.push(" ".repeat(GAP).into());
            }
            page.line(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Palette;

    #[test]
    fn the_last_column_wraps_between_words_and_at_the_joints_of_long_ones() {
        let mut table = Table::new(&[Align::Right, Align::Left]);
        table.row(vec!["1".into(), "no Python frame (autograd backward)".into()]);
        table.row(vec!["22".into(), "package/models/heads/pyramid.py:14 forward".into()]);
        let mut page = Page::new(Palette::Plain, 40);
        table.write(&mut page, 10);
        insta::assert_snapshot!(page.finish(), @r"
         1  no Python frame (autograd
            backward)
        22  package/models/heads/
            pyramid.py:14 forward
        ");
    }

    #[test]
    fn columns_line_up_by_display_width() {
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Left]);
        table.head(&["place", "bytes", "share"]);
        table.row(vec!["文件.py:3".into(), "512 B".into(), "1 %".into()]);
        table.row(vec!["a.py:12 f".into(), "16.0 MiB".into(), "99 %".into()]);
        let mut page = Page::new(Palette::Plain, 80);
        table.write(&mut page, 2);
        insta::assert_snapshot!(page.finish(), @r"
          place         bytes  share
          文件.py:3     512 B  1 %
          a.py:12 f  16.0 MiB  99 %
        ");
    }
}
