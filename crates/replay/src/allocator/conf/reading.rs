//! What the settings in a text set.

use super::items::{Item, Structure, Value, structure};
use super::key::{Key, Sets, Shape};
use super::number::{self, Read, Unreadable};
use super::problem::{ConfError, Problem, shortened};
use super::token::Token;
use super::warning::{ConfWarning, Notice};
use crate::allocator::config::{Config, MIB, Parser, Rules};

/// The settings under a text.
pub(super) fn read(text: &str, rules: &Rules) -> Result<(Config, Vec<ConfWarning>), ConfError> {
    let Structure { settings, error, warnings } = structure(text, rules.parser);
    let mut reading = Reading { rules, config: Config::default(), warnings };
    reading.large_segment(&settings)?;
    let mut seen = Vec::new();
    for item in &settings {
        reading.item(item)?;
        if seen.contains(&item.key.name) {
            reading.warn(&item.name, Notice::Repeated { key: item.key.name });
        } else {
            seen.push(item.key.name);
        }
    }
    reading.mapping(&settings);
    // A mistake in a value stands before the one that ends the structure.
    error.map_or(Ok((reading.config, reading.warnings)), Err)
}

/// Sizes from here on are more than any device has.
const ENDLESS_MIB: u64 = 1 << 43;

struct Reading<'r> {
    rules: &'r Rules,
    config: Config,
    warnings: Vec<ConfWarning>,
}

impl Reading<'_> {
    /// Other sizes must be as large as a large segment, so its size is read first.
    fn large_segment(&mut self, items: &[Item]) -> Result<(), ConfError> {
        for item in items.iter().filter(|item| item.key.sets == Sets::LargeSegment) {
            let token = one(item)?;
            let mib = self.integer(item.key, token)?;
            if mib <= 10 {
                return Err(refused(
                    item.key,
                    token,
                    "above 10 MiB",
                    "write `large_segment_size_mb:11` or more",
                ));
            }
            self.config.large_segment = bounded(item.key, token, mib)?;
        }
        self.config.max_non_split_rounding = self.config.large_segment;
        Ok(())
    }

    /// Memory is mapped by 2 MiB.
    fn mapping(&mut self, items: &[Item]) {
        let of_size = |item: &&Item| item.key.sets == Sets::LargeSegment;
        let mib = self.config.large_segment / MIB;
        if self.config.expandable_segments
            && mib % 2 == 1
            && let Some(item) = items.iter().rev().find(of_size)
        {
            self.warn(&item.name, Notice::Unmappable { key: item.key.name, mib });
        }
    }

    fn item(&mut self, item: &Item) -> Result<(), ConfError> {
        let key = item.key;
        if key.since > self.rules.release {
            self.warn(&item.name, Notice::Newer { key: key.name, since: key.since });
        }
        match key.sets {
            Sets::LargeSegment => {}
            Sets::Backend => backend(one(item)?)?,
            Sets::MaxSplitSize => {
                let token = one(item)?;
                let mib = self.size(key, token)?;
                self.config.max_split_size = (mib < ENDLESS_MIB).then(|| mib.saturating_mul(MIB));
                if mib >= ENDLESS_MIB {
                    self.warn(token, Notice::NoLimit { key: key.name, value: shortened(&token.text) });
                }
            }
            Sets::MaxNonSplitRounding => {
                let token = one(item)?;
                let mib = self.size(key, token)?;
                self.config.max_non_split_rounding = bounded(key, token, mib)?;
            }
            Sets::GarbageCollectionThreshold => {
                let token = one(item)?;
                let share = self.share(key, token)?;
                if !(share > 0.0 && share < 1.0) {
                    let hint = "write a share of the memory limit, as in `garbage_collection_threshold:0.8`";
                    return Err(refused(key, token, "above 0 and below 1", hint));
                }
                self.config.garbage_collection_threshold = share;
            }
            Sets::PerProcessMemoryFraction => {
                let token = one(item)?;
                let share = self.share(key, token)?;
                if !(0.0..=1.0).contains(&share) {
                    let hint =
                        "write a share of the device's memory, as in `per_process_memory_fraction:0.9`";
                    return Err(refused(key, token, "from 0 to 1", hint));
                }
                // Without the sign of a zero.
                self.config.per_process_memory_fraction = share.abs();
            }
            Sets::ExpandableSegments => self.config.expandable_segments = switch(key, one(item)?)?,
            Sets::ThrowOnCudamallocOom => self.config.throw_on_cudamalloc_oom = switch(key, one(item)?)?,
            Sets::RoundupDivisions => self.divisions(item)?,
            Sets::Other(shape, effect) => {
                self.check(item, shape)?;
                self.warn(&item.name, Notice::NoEffect { key: key.name, effect });
            }
        }
        Ok(())
    }

    /// The value of a setting that is not used, as far as the framework checks it.
    fn check(&mut self, item: &Item, shape: Shape) -> Result<(), ConfError> {
        let key = item.key;
        match (shape, &item.value) {
            (Shape::Bool, Value::One(token)) => {
                switch(key, token)?;
            }
            (Shape::Number, Value::One(token)) => {
                self.integer(key, token)?;
            }
            (Shape::Positive, Value::One(token)) => {
                if self.integer(key, token)? == 0 {
                    return Err(refused(key, token, "above 0", "write 1 or more, or leave it out"));
                }
            }
            (Shape::Threads, Value::One(token)) => {
                let threads = self.integer(key, token)?;
                if !threads.is_power_of_two() || threads > 128 {
                    return Err(refused(
                        key,
                        token,
                        "a power of two up to 128",
                        "write 1, 2, 4, 8, … or 128",
                    ));
                }
            }
            (Shape::Reserve, Value::One(token)) if token.text == "[" => {
                return Err(refused(key, token, "a share or a number of GiB", "write `0.5` or `40G`"));
            }
            (Shape::Reserve | Shape::ReserveByClass, _) | (_, Value::List(_)) => {}
        }
        Ok(())
    }

    /// Source: the allocator reference, §3, "Building the table".
    fn divisions(&mut self, item: &Item) -> Result<(), ConfError> {
        let key = item.key;
        let entries = match &item.value {
            Value::One(token) => {
                let divisions = self.integer(key, token)?;
                if !divisions.is_power_of_two() {
                    return Err(refused(
                        key,
                        token,
                        "a power of two",
                        "write 1, 2, 4, 8, …, or leave it out",
                    ));
                }
                self.config.roundup_divisions.0.fill(divisions);
                return Ok(());
            }
            Value::List(entries) => entries,
        };
        let mut last = None;
        for (size, value) in entries {
            let divisions = self.integer(key, value)?;
            let zero = divisions == 0 && self.rules.zero_divisions;
            if !zero && !divisions.is_power_of_two() {
                let rule = if self.rules.zero_divisions { "a power of two or 0" } else { "a power of two" };
                return Err(refused(key, value, rule, "write 1, 2, 4, 8, … behind each size"));
            }
            let table = &mut self.config.roundup_divisions.0;
            if size.text == ">" {
                let from = match self.rules.parser {
                    Parser::Until29 => last.unwrap_or(0),
                    Parser::Since210 => last.unwrap_or(0) + 1,
                };
                table.iter_mut().skip(from).for_each(|d| *d = divisions);
                continue;
            }
            let mib = self.read(key, size, number::unsigned)?.number;
            if !mib.is_power_of_two() {
                return Err(refused(
                    key,
                    size,
                    "given for powers of two (MiB)",
                    "write 1, 2, 4, 8, … MiB, or `>` for the rest",
                ));
            }
            let table = &mut self.config.roundup_divisions.0;
            let slot = (mib.ilog2() as usize).min(table.len() - 1);
            // The first also holds for all smaller sizes.
            let from = if last.is_none() { 0 } else { slot };
            table.iter_mut().take(slot + 1).skip(from).for_each(|d| *d = divisions);
            last = Some(slot);
        }
        Ok(())
    }

    /// A size in MiB that may not be smaller than a large segment.
    fn size(&mut self, key: &'static Key, token: &Token) -> Result<u64, ConfError> {
        let mib = self.integer(key, token)?;
        let large = self.config.large_segment / MIB;
        let (rule, least) = match self.rules.parser {
            Parser::Until29 => (format!("above {large} MiB (one large segment)"), large.saturating_add(1)),
            Parser::Since210 => (format!("at least {large} MiB (one large segment)"), large),
        };
        if mib < least {
            return Err(refused(
                key,
                token,
                &rule,
                &format!("write `{}:{least}` or more, or leave it out", key.name),
            ));
        }
        Ok(mib)
    }

    fn integer(&mut self, key: &'static Key, token: &Token) -> Result<u64, ConfError> {
        let read = match self.rules.parser {
            Parser::Until29 => number::int,
            Parser::Since210 => number::unsigned,
        };
        self.read(key, token, read).map(|read| read.number)
    }

    fn share(&mut self, key: &'static Key, token: &Token) -> Result<f64, ConfError> {
        self.read(key, token, number::double).map(|read| read.number)
    }

    fn read<'t, N>(
        &mut self,
        key: &'static Key,
        token: &'t Token,
        read: impl Fn(&'t str) -> Result<Read<'t, N>, Unreadable>,
    ) -> Result<Read<'t, N>, ConfError> {
        let (key, value, example) = (key.name, shortened(&token.text), key.example);
        let read = read(&token.text).map_err(|why| {
            let problem = match why {
                Unreadable::NoNumber => Problem::NotANumber { key, value: value.clone(), example },
                Unreadable::OutOfRange => Problem::OutOfRange { key, value: value.clone(), example },
            };
            ConfError::new(token.span.clone(), problem)
        })?;
        if !read.rest.is_empty() {
            self.warn(token, Notice::ReadInPart { key, value, used: shortened(read.used) });
        }
        Ok(read)
    }

    fn warn(&mut self, token: &Token, notice: Notice) {
        self.warnings.push(ConfWarning { span: Some(token.span.clone()), notice });
    }
}

/// A value that is no list.
fn one(item: &Item) -> Result<&Token, ConfError> {
    match &item.value {
        Value::One(token) => Ok(token),
        Value::List(_) => {
            let problem = Problem::NoValue { key: item.key.name, example: item.key.example };
            Err(ConfError::new(item.name.span.clone(), problem))
        }
    }
}

fn backend(token: &Token) -> Result<(), ConfError> {
    let value = shortened(&token.text);
    let problem = match token.text.as_str() {
        "native" => return Ok(()),
        "cudaMallocAsync" | "hipMallocAsync" => Problem::DriversBackend { value },
        _ => Problem::UnknownBackend { value },
    };
    Err(ConfError::new(token.span.clone(), problem))
}

fn switch(key: &'static Key, token: &Token) -> Result<bool, ConfError> {
    match token.text.as_str() {
        "True" => Ok(true),
        "False" => Ok(false),
        other => {
            let word: String = other.chars().take(8).flat_map(char::to_lowercase).collect();
            let meant = match word.trim_matches(['\'', '"', '`', '\n', '\t', '\r']) {
                "true" | "1" | "yes" | "on" | "y" | "t" => Some(true),
                "false" | "0" | "no" | "off" | "n" | "f" => Some(false),
                _ => None,
            };
            let problem = Problem::NotABool { key: key.name, value: shortened(other), meant };
            Err(ConfError::new(token.span.clone(), problem))
        }
    }
}

/// MiB as bytes, where more than any device has would be a mistake.
fn bounded(key: &'static Key, token: &Token, mib: u64) -> Result<u64, ConfError> {
    if mib >= ENDLESS_MIB {
        let hint = "write a size in MiB that a device can have";
        return Err(refused(key, token, "a size that a device can have", hint));
    }
    Ok(mib.saturating_mul(MIB))
}

fn refused(key: &'static Key, token: &Token, rule: &str, hint: &str) -> ConfError {
    let (rule, hint) = (rule.into(), hint.into());
    let problem = Problem::NotAllowed { key: key.name, rule, value: shortened(&token.text), hint };
    ConfError::new(token.span.clone(), problem)
}
