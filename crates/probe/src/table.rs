//! Abilities as people read them: a line each.

use crate::abilities::{Abilities, Ability, Status, Value};

/// The whole table, with who was asked above it.
pub fn table(abilities: &Abilities) -> String {
    let title = abilities.title.as_deref().unwrap_or("");
    let comma = if title.is_empty() { "" } else { ", " };
    let Abilities { target, protocol, probed_at, .. } = abilities;
    let mut text = format!("{target}{comma}{title}: {protocol}, probed {probed_at}\n\n");
    let rows: Vec<[String; 4]> = abilities.abilities.iter().map(row).collect();
    let width = |column: usize, head: &str| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(head.len())
    };
    let heads = ["ability", "is", "how", "seen"];
    let widths = [width(0, heads[0]), width(1, heads[1]), width(2, heads[2])];
    let heads = heads.map(str::to_owned);
    for row in std::iter::once(&heads).chain(&rows) {
        for (cell, width) in row.iter().zip(widths) {
            text.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(&row[3]);
        text.push('\n');
    }
    text
}

fn row(ability: &Ability) -> [String; 4] {
    let how = if ability.status == Status::Untried { "" } else { ability.how.words() };
    // The text of a server may contain any character; a line stays a line.
    let plain = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.into() };
    let evidence = ability.evidence.chars().map(plain).collect();
    [ability.name.clone(), short(ability), how.to_owned(), evidence]
}

/// Status and value in a few words: `1000 messages`, `granted less: 1`, `refused`.
pub fn short(ability: &Ability) -> String {
    let unit = ability.unit.as_deref().map_or(String::new(), |unit| format!(" {unit}"));
    let value = match &ability.value {
        Some(Value::Flag(_)) | None => None,
        Some(value) => Some(format!("{value}{unit}")),
    };
    match (ability.status, value) {
        (Status::Yes, Some(value)) => value,
        // A limit that was found is one, and nothing that was granted.
        (Status::Less, Some(value)) if ability.unit.is_some() => format!("at most {value}"),
        (Status::NoAnswer, Some(value)) => format!("no answer above {value}"),
        (status, Some(value)) => format!("{}: {value}", status.words()),
        (status, None) => status.words().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abilities::How;

    #[test]
    fn a_line_says_what_is_there() {
        let mut ability = Ability {
            name: "queue_offline".to_owned(),
            status: Status::Less,
            value: Some(Value::Number(1000)),
            unit: Some("messages".to_owned()),
            how: How::FoundBySearch,
            evidence: "it said \"no\"\n".to_owned(),
        };
        assert_eq!(short(&ability), "at most 1000 messages");
        assert_eq!(row(&ability)[3], "it said \"no\"\\n");
        ability.unit = None;
        assert_eq!(short(&ability), "granted less: 1000");
        ability.value = None;
        ability.status = Status::NoAnswer;
        assert_eq!(short(&ability), "no answer");
        ability.status = Status::Yes;
        assert_eq!(short(&ability), "yes");
    }
}
