//! `whatif` as Markdown.

use vramscope_view::whatif::{Setting, WhatIf};

use super::{block, code, escaped, sentence, table_by_last};
use crate::trials;

/// The answer as Markdown. Settings that change nothing have a row of their own if it is `verbose`.
pub fn render(answer: &WhatIf, verbose: bool) -> String {
    let mut out = format!("**{}**\n\n", sentence(&capital(&answer.headline)));
    let recommended = answer.recommended.and_then(|i| answer.settings.get(i));
    if let Some(choice) = recommended {
        out.push_str(&format!("{}\n", block("sh", &trials::to_paste(&choice.conf))));
    }
    out.push_str(&format!("{}.\n\n", sentence(&capital(&answer.reason))));
    let heads: Vec<&str> = trials::HEADS.into_iter().chain(["setting"]).collect();
    let own = answer.settings.first();
    let listing = trials::listing(answer, verbose);
    let rows: Vec<Vec<String>> = listing
        .rows
        .into_iter()
        .map(|setting| {
            let is_recommended = recommended.is_some_and(|choice| std::ptr::eq(choice, setting));
            let name = name(setting);
            let mut cells = trials::figures(setting, trials::base(answer)).to_vec();
            cells.push(name);
            if is_recommended {
                for cell in cells.iter_mut().filter(|cell| !cell.is_empty()) {
                    *cell = format!("**{cell}**");
                }
            }
            cells
        })
        .collect();
    out.push_str(&table_by_last(&heads, &rows));
    if !listing.same.is_empty() {
        let names: Vec<String> = listing.same.into_iter().map(name).collect();
        out.push_str(&format!("\nThe same as recorded: {}.\n", names.join("; ")));
    }
    out.push_str(&format!("\n{}.\n\n", escaped(&capital(&trials::legend(answer)))));
    out.push_str(&format!("- replayed: {}\n", escaped(&trials::subject(answer))));
    out.push_str(&format!("- {}\n", sentence(&answer.self_check.summary)));
    out.push_str(&format!("- {}\n", sentence(&answer.limits.words)));
    let places = trials::places(answer);
    if let Some(oom) = own.and_then(|own| own.oom.as_ref()) {
        out.push_str(&format!("- as recorded, {}\n", escaped(&trials::oom(oom, &places))));
    }
    for cost in &answer.trade_offs {
        out.push_str(&format!("- cost: {}\n", sentence(cost)));
    }
    for warning in trials::warnings(answer) {
        out.push_str(&format!("- {}\n", sentence(&warning)));
    }
    if let Some(other) = trials::others(answer) {
        out.push_str(&format!("- {}\n", sentence(&other)));
    }
    for caveat in &answer.caveats {
        out.push_str(&format!("- {}\n", sentence(caveat)));
    }
    out
}

/// What a setting is called.
fn name(setting: &Setting) -> String {
    match (setting.is_own, setting.conf.as_str()) {
        (true, "") => "as recorded (defaults)".to_owned(),
        (true, conf) => format!("as recorded: {}", code(conf)),
        (false, "") => "defaults".to_owned(),
        (false, conf) => code(conf),
    }
}

/// As the beginning of a sentence.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
