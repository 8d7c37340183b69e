//! `statistics.csv`: a row for each device at the end of a step, or where there are none at a tick of the clock.

use std::io::{BufRead, BufReader, Read};

use vramscope_model::{Bytes, Sample, Statistics, TimeUs};

use super::MOST_BYTES;
use crate::error::{Error, Warning, excerpt};

/// Columns that the recorder writes for people and spreadsheets, and that nothing here needs.
const PASSED_OVER: &[&str] = &[
    "active_bytes",
    "requested_bytes",
    "inactive_split_bytes",
    "device_used_bytes",
    "device_free_bytes",
    "process_used_bytes",
    "phase",
    "segments",
    "blocks",
    "alloc_retries",
    "num_alloc_retries",
    "ooms",
    "num_ooms",
    "window",
];

/// No row has more bytes.
const LONGEST_ROW: u64 = 64 << 10;

/// Which column holds what.
#[derive(Default)]
struct Columns {
    step: Option<usize>,
    time: Option<usize>,
    device: Option<usize>,
    allocated: Option<usize>,
    reserved: Option<usize>,
    peak_allocated: Option<usize>,
    peak_reserved: Option<usize>,
    rss: Option<usize>,
    source: Option<usize>,
    count: usize,
}

/// Reads the counters of a run. A row that cannot be read is left out, and the first such row is told.
///
/// # Errors
/// When there is no row of column names with a step in it.
pub fn statistics(stream: impl Read) -> Result<(Statistics, Vec<Warning>), Error> {
    let mut lines = BufReader::new(stream.take(MOST_BYTES));
    let (mut offset, mut warnings) = (0, Vec::new());
    let Some(head) = next_line(&mut lines)? else { return Err(Error::Empty) };
    let columns = Columns::of(&head.text, &mut warnings);
    if columns.step.is_none() {
        let reason = format!("`{}` names no column `step`", excerpt(head.text.trim()));
        return Err(Error::Damaged { offset: 0, reason });
    }
    offset += head.bytes;
    let mut statistics = Statistics::default();
    let (mut unreadable, mut first_unreadable) = (0_u64, 0);
    while let Some(line) = next_line(&mut lines)? {
        if !line.is_whole {
            // Even a number that can be read may lack its last digits.
            warnings.push(Warning::at(offset, "cut short: the last row is left out"));
            break;
        }
        if !line.text.trim().is_empty() {
            let fields: Vec<&str> = line.text.trim_end().split(',').map(unquoted).collect();
            match columns.sample(&fields) {
                Some((sample, source)) => statistics.push(sample, source),
                None if unreadable == 0 => (unreadable, first_unreadable) = (1, offset),
                None => unreadable += 1,
            }
        }
        offset += line.bytes;
    }
    if unreadable > 0 {
        let rows = if unreadable == 1 { "one row".to_owned() } else { format!("{unreadable} rows") };
        let text = format!("{rows} could not be read and left out, the first one here");
        warnings.push(Warning::at(first_unreadable, text));
    }
    if offset >= MOST_BYTES {
        warnings.push(Warning::at(offset, "too long: the rest is left out"));
    }
    Ok((statistics, warnings))
}

struct Line {
    text: String,
    bytes: u64,
    /// Whether it has its end.
    is_whole: bool,
}

fn next_line(lines: &mut impl BufRead) -> Result<Option<Line>, Error> {
    let mut bytes = Vec::new();
    let n = lines.take(LONGEST_ROW).read_until(b'\n', &mut bytes)? as u64;
    if n == 0 {
        return Ok(None);
    }
    let is_whole = bytes.ends_with(b"\n") || n == LONGEST_ROW;
    Ok(Some(Line { text: String::from_utf8_lossy(&bytes).into_owned(), bytes: n, is_whole }))
}

fn unquoted(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).unwrap_or(field)
}

impl Columns {
    fn of(head: &str, warnings: &mut Vec<Warning>) -> Self {
        let mut columns = Self::default();
        let mut unknown = Vec::new();
        for (i, name) in head.trim_start_matches('\u{feff}').trim().split(',').map(unquoted).enumerate() {
            columns.count += 1;
            let column = match name {
                "step" => &mut columns.step,
                "time_us" => &mut columns.time,
                "device" => &mut columns.device,
                "allocated_bytes" => &mut columns.allocated,
                "reserved_bytes" => &mut columns.reserved,
                "peak_allocated_bytes" => &mut columns.peak_allocated,
                "peak_reserved_bytes" => &mut columns.peak_reserved,
                "rss_bytes" => &mut columns.rss,
                "source" => &mut columns.source,
                _ => {
                    if !PASSED_OVER.contains(&name) {
                        unknown.push(format!("`{}`", excerpt(name)));
                    }
                    continue;
                }
            };
            column.get_or_insert(i);
        }
        if !unknown.is_empty() {
            let s = if unknown.len() == 1 { "" } else { "s" };
            unknown.truncate(4);
            warnings.push(Warning::at(0, format!("column{s} not known here: {}", unknown.join(", "))));
        }
        columns
    }

    /// A row; none where it has another number of fields or a step that is no number.
    fn sample<'a>(&self, fields: &[&'a str]) -> Option<(Sample, &'a str)> {
        if fields.len() != self.count {
            return None;
        }
        let field = |column: Option<usize>| column.and_then(|i| fields.get(i)).copied().unwrap_or_default();
        let bytes = |column| field(column).parse().ok().map(Bytes);
        // No step is a reading by the clock; what is no number is damage.
        let step = field(self.step);
        let step = if step.is_empty() { None } else { Some(step.parse().ok()?) };
        let sample = Sample {
            step,
            source: None,
            time: field(self.time).parse().ok().map(TimeUs).and_then(TimeUs::known),
            device: device(field(self.device)),
            allocated: bytes(self.allocated),
            reserved: bytes(self.reserved),
            peak_allocated: bytes(self.peak_allocated),
            peak_reserved: bytes(self.peak_reserved),
            rss: bytes(self.rss),
        };
        Some((sample, field(self.source)))
    }
}

/// `0` or `cuda:0`; none for `cpu` and nothing.
fn device(text: &str) -> Option<u32> {
    text.rsplit_once(':').map_or(text, |(_, number)| number).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, steps: &[u64], want: &[&str]) -> Statistics {
        let (statistics, warnings) = statistics(text.as_bytes()).unwrap();
        assert_eq!(statistics.samples().iter().filter_map(|s| s.step).collect::<Vec<_>>(), steps);
        assert_eq!(warnings.iter().map(ToString::to_string).collect::<Vec<_>>(), want);
        statistics
    }

    #[test]
    fn columns_are_told_by_their_names() {
        let read = check(
            "device,step,time_us,reserved_bytes,allocated_bytes,source\ncuda:1,7,1000,4096,512,optimizer\n",
            &[7],
            &[],
        );
        let want = Sample {
            step: Some(7),
            source: Some(0),
            time: Some(TimeUs(1000)),
            device: Some(1),
            allocated: Some(Bytes(512)),
            reserved: Some(Bytes(4096)),
            ..Sample::default()
        };
        assert_eq!((read.samples(), read.sources()), (&[want][..], &["optimizer".to_owned()][..]));
    }

    #[test]
    fn what_is_damaged_is_left_out_and_told() {
        let head = "step,time_us,device,allocated_bytes\n";
        check(&format!("{head}1,10,0,5\n2,20,0,1"), &[1], &["cut short: the last row is left out (byte 45)"]);
        check(
            &format!("{head}1,10,0,5\nnothing\n3,30,0,5,9\n4,x,cpu,\n"),
            &[1, 4],
            &["2 rows could not be read and left out, the first one here (byte 45)"],
        );
        check(
            "step,colour,taste\n1,red,sweet\n",
            &[1],
            &["columns not known here: `colour`, `taste` (byte 0)"],
        );
        check("step\n", &[], &[]);
        assert_eq!(check("step,source\n,clock\n", &[], &[]).samples().len(), 1);
        for (text, want) in
            [("", "the file is empty"), ("a,b\n1,2\n", "damaged at byte 0: `a,b` names no column `step`")]
        {
            assert_eq!(statistics(text.as_bytes()).unwrap_err().to_string(), want);
        }
    }
}
