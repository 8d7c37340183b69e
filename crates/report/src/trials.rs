//! What text and Markdown share of `whatif`: the order and the cells of its table, and the line to paste.

use vramscope_view::whatif::{OutOfMemory, Setting, WhatIf};

use crate::bytes::{change_share, counted, grouped, human, mebibytes};
use crate::place::Places;

/// The settings as they are listed.
pub(crate) struct Listing<'a> {
    /// A row each: the recording's own first, then by what they need. Those under which memory runs out come last.
    pub(crate) rows: Vec<&'a Setting>,
    /// Those whose figures are all the same as the recording's own.
    pub(crate) same: Vec<&'a Setting>,
}

/// Which settings to list. All have a row if `each` is to have one.
pub(crate) fn listing(answer: &WhatIf, each: bool) -> Listing<'_> {
    let own = answer.settings.first();
    let is_same = |setting: &Setting| {
        let figures = |s: &Setting| (figures(s, None), s.peak_reserved, s.oom.clone());
        !each && !setting.is_own && own.is_some_and(|own| figures(own) == figures(setting))
    };
    let (same, mut rows): (Vec<&Setting>, Vec<&Setting>) = answer.settings.iter().partition(|s| is_same(s));
    rows.sort_by_key(|setting| (!setting.is_own, setting.oom.is_some(), setting.needed()));
    Listing { rows, same }
}

/// The names of the columns of figures.
pub(crate) const HEADS: [&str; 6] = ["needs", "change", "at end", "unused", "segs", "calls"];

/// What the columns mean that do not say it themselves.
pub(crate) fn legend(answer: &WhatIf) -> String {
    let runs_out = answer.settings.iter().any(|setting| setting.oom.is_some());
    let most = if runs_out {
        "needs: the most bytes reserved at any moment, if no limit is in the way"
    } else {
        "needs: the most bytes reserved at any moment"
    };
    let change = answer.begun_anew.map_or_else(String::new, |base| {
        format!(
            "; change: from {}, the peak of the recording's own setting without what was left over from before the recording",
            human(base)
        )
    });
    format!(
        "{most}{change}; unused: the share of them that was never in use at once; segs: the most segments; calls: of the driver"
    )
}

/// Stands for a figure that there is none of, as memory ran out before the end.
const NONE: &str = "–";

/// The peak that others are compared with.
pub(crate) fn base(answer: &WhatIf) -> Option<u64> {
    answer.begun_anew.or_else(|| answer.settings.first().map(Setting::needed))
}

/// The figures of a setting, in the order of the columns. `base` is the peak that it is compared with.
pub(crate) fn figures(setting: &Setting, base: Option<u64>) -> [String; 6] {
    let change = match base {
        Some(base) if !setting.is_own => change_share(base, setting.needed()),
        _ => String::new(),
    };
    let [end, unused, segments, calls] = if setting.oom.is_some() {
        ["runs out", NONE, NONE, NONE].map(str::to_owned)
    } else {
        [
            human(setting.final_reserved),
            format!("{:.0} %", setting.peak_fragmentation * 100.0),
            grouped(setting.segments_peak),
            grouped(setting.driver_calls()),
        ]
    };
    [human(setting.needed()), change, end, unused, segments, calls]
}

/// The keys of a setting, each with its value; what the setting is where there is no key.
pub(crate) fn keys(setting: &Setting) -> Vec<String> {
    let own = if setting.is_own { "as recorded" } else { "" };
    if setting.conf.is_empty() {
        return vec![if setting.is_own {
            "as recorded (defaults)".to_owned()
        } else {
            "defaults".to_owned()
        }];
    }
    let mut keys: Vec<String> = Vec::new();
    let mut depth = 0usize;
    for part in setting.conf.split_inclusive(',') {
        match keys.last_mut().filter(|_| depth > 0) {
            Some(list) => list.push_str(part),
            None => keys.push(part.trim_start().to_owned()),
        }
        depth = (depth + part.matches('[').count()).saturating_sub(part.matches(']').count());
    }
    if !own.is_empty() {
        keys.insert(0, format!("{own}:"));
    }
    keys
}

/// What is odd about the settings' texts; of the recording's own without its name.
pub(crate) fn warnings(answer: &WhatIf) -> impl Iterator<Item = String> {
    answer.settings.iter().flat_map(|setting| {
        setting.warnings.iter().map(|warning| {
            if setting.is_own { warning.clone() } else { format!("`{}`: {warning}", setting.conf) }
        })
    })
}

/// The line for a shell that sets what is recommended.
pub(crate) fn to_paste(conf: &str) -> String {
    const NAME: &str = "PYTORCH_CUDA_ALLOC_CONF";
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | ',' | '-');
    if conf.is_empty() {
        format!("unset {NAME}")
    } else if conf.chars().all(is_plain) {
        format!("export {NAME}={conf}")
    } else {
        format!("export {NAME}='{}'", conf.replace('\'', r"'\''"))
    }
}

/// Where memory ran out, and with what.
pub(crate) fn oom(oom: &OutOfMemory, places: &Places) -> String {
    let when = oom.step.map_or_else(
        || format!("at event {}", grouped(oom.event)),
        |step| format!("in step {} (event {})", grouped(step), grouped(oom.event)),
    );
    format!(
        "memory runs out {when} at {}: {} are asked for with {} in use and {} reserved; {} are free in that pool, {} of them in one \
         piece",
        places.or_label(oom.site.as_ref(), &oom.label),
        mebibytes(oom.size),
        mebibytes(oom.allocated),
        mebibytes(oom.reserved),
        mebibytes(oom.free),
        mebibytes(oom.largest_free)
    )
}

/// Every place that may be shown.
pub(crate) fn places(answer: &WhatIf) -> Places {
    let sites = answer.settings.iter().filter_map(|s| s.oom.as_ref()).filter_map(|oom| oom.site.as_ref());
    let files: Vec<&str> = sites.map(|site| site.file.as_str()).collect();
    Places::of(files.iter().copied()).with_user_files(files)
}

/// What was replayed.
pub(crate) fn subject(answer: &WhatIf) -> String {
    let file = answer.files.last().map_or("", String::as_str);
    let earlier = match answer.files.len() {
        0 | 1 => String::new(),
        n => format!(" and {}", counted(n as u64 - 1, "earlier snapshot")),
    };
    format!(
        "{file}{earlier}: {}, {} of torch {}",
        crate::words::device(answer.rank, answer.device),
        counted(answer.events, "event"),
        answer.torch
    )
}

/// The devices that were not replayed; nothing if there is none.
pub(crate) fn others(answer: &WhatIf) -> Option<String> {
    const SHOWN: usize = 4;
    let told: Vec<String> = answer
        .others
        .iter()
        .take(SHOWN)
        .map(|other| {
            format!(
                "{} ({} reserved)",
                crate::words::device(other.rank, other.device),
                human(other.peak_reserved)
            )
        })
        .collect();
    let more = match answer.others.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    (!told.is_empty())
        .then(|| format!("not replayed: {}{more}; choose with `--device` and `--rank`", told.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_to_paste_are_safe_in_a_shell() {
        let check = |conf, want: &str| assert_eq!(to_paste(conf), want);
        check("", "unset PYTORCH_CUDA_ALLOC_CONF");
        check("expandable_segments:True", "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
        check(
            "roundup_power2_divisions:[64:8,>:1]",
            "export PYTORCH_CUDA_ALLOC_CONF='roundup_power2_divisions:[64:8,>:1]'",
        );
        check("a:$(rm)'; b", r"export PYTORCH_CUDA_ALLOC_CONF='a:$(rm)'\''; b'");
    }
}
