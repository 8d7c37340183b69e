//! The rules of `check` as Markdown: a table of all, or the pages of some.

use vramscope_view::check::Rule;

/// A table of rules.
pub fn table(rules: &[Rule]) -> String {
    let mut text =
        String::from("| code | name | finds | severity | by default | fix |\n|---|---|---|---|---|---|\n");
    for rule in rules {
        text.push_str(&row(rule, rule.code));
    }
    text
}

/// A table of rules, each with a link to its page in the same folder.
pub fn index(rules: &[Rule]) -> String {
    let mut text =
        String::from("| code | name | finds | severity | by default | fix |\n|---|---|---|---|---|---|\n");
    for rule in rules {
        text.push_str(&row(rule, &format!("[{0}]({0}.md)", rule.code)));
    }
    text
}

fn row(rule: &Rule, code: &str) -> String {
    format!(
        "| {code} | {} | {} | {} | {} | {} |\n",
        rule.name,
        rule.summary.replace('|', "\\|"),
        rule.severity.name(),
        if rule.default { "on" } else { "off" },
        rule.fix.map_or("–", |fix| fix.name())
    )
}

/// Whole pages, one after the other.
pub fn pages(rules: &[Rule]) -> String {
    let pages: Vec<&str> = rules.iter().map(|rule| rule.page.trim_end()).collect();
    pages.join("\n\n") + "\n"
}
