//! `docs/cli.md` from the commands and flags as clap knows them.

use clap::{Arg, ArgAction, Command};

use super::Document;

pub(super) fn document() -> Document {
    let mut command = vramscope::command().term_width(100);
    command.build();
    let mut text = String::from("<!-- Generated from the code; see CONTRIBUTING.md. -->\n\n# Commands\n");
    for line in [about(&command), command.get_after_help().map(ToString::to_string).unwrap_or_default()] {
        paragraph(&mut text, &line);
    }
    text.push_str("\n## For every command\n\n");
    arguments(&command).filter(|a| a.is_global_set()).for_each(|arg| argument(&mut text, arg));
    for sub in command.get_subcommands().filter(|c| c.get_name() != "help") {
        section(&mut text, sub);
    }
    Document { path: "docs/cli.md".to_owned(), text }
}

fn section(text: &mut String, command: &Command) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    paragraph(text, &format!("## `{name}`"));
    paragraph(text, &about(command));
    let usage = command.clone().render_usage().to_string();
    paragraph(text, &format!("```text\n{}\n```", usage.trim_start_matches("Usage: ")));
    text.push('\n');
    arguments(command).filter(|a| !a.is_global_set()).for_each(|arg| argument(text, arg));
    if let Some(after) = command.get_after_help() {
        paragraph(text, &after.to_string());
    }
}

/// What is worth listing: not `--help` and `--version`, nor what is hidden.
fn arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|a| !a.is_hide_set() && !matches!(a.get_id().as_str(), "help" | "version"))
}

fn about(command: &Command) -> String {
    command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default()
}

fn argument(text: &mut String, arg: &Arg) {
    let values: Vec<String> =
        arg.get_value_names().unwrap_or_default().iter().map(|n| format!("<{n}>")).collect();
    let values = if arg.get_action().takes_values() { values.join(" ") } else { String::new() };
    let names: Vec<String> =
        [arg.get_short().map(|s| format!("-{s}")), arg.get_long().map(|l| format!("--{l}"))]
            .into_iter()
            .flatten()
            .collect();
    let mut head =
        [names.join(", "), values].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(" ");
    if arg.is_positional() && matches!(arg.get_action(), ArgAction::Append) {
        head.push('…');
    }
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    text.push_str(&format!("- `{head}`: {}", help.replace('\n', " ")));
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|v| format!("`{}`", v.to_string_lossy())).collect();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        text.push_str(&format!(" (default {})", defaults.join(", ")));
    }
    text.push('\n');
    if arg.get_action().takes_values() {
        for value in arg.get_possible_values().iter().filter(|v| !v.is_hide_set()) {
            let help = value.get_help().map(|h| format!(": {h}")).unwrap_or_default();
            text.push_str(&format!("  - `{}`{help}\n", value.get_name()));
        }
    }
}

fn paragraph(text: &mut String, paragraph: &str) {
    if !paragraph.is_empty() {
        text.push_str(&format!("\n{}\n", paragraph.trim_end()));
    }
}
