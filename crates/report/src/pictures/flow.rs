//! Where the messages of a cell ended: from scheduled to delivered, late, or lost and the cause.

use serde_json::{Value, json};
use weigh_model::ledger::Ledger;

use super::picture::{Kind, Picture};
use crate::figures::{count, share};
use crate::summary::{Matrix, Summary};

/// A picture for every cell.
pub(crate) fn pictures(summary: &Summary, matrix: &Matrix) -> Vec<Picture> {
    let cells = summary.cells.iter().enumerate();
    let flowing = cells.filter(|(_, cell)| cell.ledger.scheduled > 0);
    flowing.map(|(index, cell)| picture(index, &cell.ledger, matrix)).collect()
}

fn picture(cell: usize, ledger: &Ledger, matrix: &Matrix) -> Picture {
    let mut flow = Flow::default();
    flow.node("scheduled", 0, "$quiet", "right");
    flow.link("scheduled", "sent", 1, "$quiet", ledger.sent);
    flow.link("scheduled", "not sent", 1, "$c7", ledger.not_sent);
    for (cause, number) in &ledger.not_sent_causes {
        flow.link("not sent", &format!("unsent: {}", cause.words()), 2, "$c7", *number);
    }
    match ledger.delivered {
        Some(delivered) => flow.link("sent", "delivered", 2, "$c2", delivered),
        None => flow.link("sent", "unconfirmed", 2, "$c4", ledger.sent),
    }
    flow.link("sent", "late", 2, "$c4", ledger.late);
    flow.link("sent", "lost", 2, "$c1", ledger.lost.unwrap_or(0));
    for (cause, number) in &ledger.causes {
        flow.link("lost", &cause.words(), 3, "$c1", *number);
    }
    let leaves = flow.nodes.iter().filter(|node| node["depth"] != json!(0)).count();
    Picture {
        name: format!("flow-{:03}", cell + 1),
        kind: Kind::Flow,
        subject: cell.to_string(),
        part: String::new(),
        title: format!("Where the messages of {} ended", matrix.labels[cell]),
        note: note(ledger),
        height: (90 + 34 * leaves as u32).min(330),
        about: json!({ "total": ledger.scheduled }),
        option: json!({
            "tooltip": { "trigger": "item", "formatter": "@flow" },
            "series": [{
                "type": "sankey", "top": 8, "left": 2, "right": 130, "bottom": 12,
                "nodeWidth": 12, "nodeGap": 26, "draggable": false,
                "emphasis": { "focus": "adjacency" },
                "lineStyle": { "color": "target", "opacity": 0.28, "curveness": 0.5 },
                "itemStyle": { "borderWidth": 0 },
                "label": {
                    "formatter": "@node", "color": "$ink", "fontSize": 12, "lineHeight": 15,
                    "rich": { "n": {
                        "fontWeight": 600, "fontSize": 12, "color": "$ink", "lineHeight": 15,
                    } },
                },
                "data": flow.nodes, "links": flow.links,
            }],
        }),
    }
}

fn note(ledger: &Ledger) -> String {
    let mut text = match ledger.delivered {
        Some(delivered) => format!(
            "{} of {} sent were delivered ({}).",
            count(delivered),
            count(ledger.sent),
            share(delivered, ledger.sent)
        ),
        None => format!("{} sent, without confirmation or subscriber.", count(ledger.sent)),
    };
    for (number, what) in [
        (ledger.duplicates, "arrived more than once"),
        (ledger.reordered, "arrived after a later one"),
        (ledger.corrupt, "arrived damaged"),
        (ledger.foreign, "without a Weighbridge mark arrived"),
        (ledger.acked_not_delivered, "were confirmed and never delivered"),
    ] {
        if number > 0 {
            text += &format!(" {} {what}.", count(number));
        }
    }
    text + " Each message is counted once, by its identity; sums over the repetitions."
}

#[derive(Default)]
struct Flow {
    nodes: Vec<Value>,
    links: Vec<Value>,
}

impl Flow {
    fn node(&mut self, name: &str, depth: u32, colour: &str, side: &str) {
        if !self.nodes.iter().any(|node| node["name"] == name) {
            self.nodes.push(json!({
                "name": name, "depth": depth, "itemStyle": { "color": colour },
                "label": { "position": side },
            }));
        }
    }

    fn link(&mut self, from: &str, to: &str, depth: u32, colour: &str, number: u64) {
        if number > 0 {
            self.node(to, depth, colour, "right");
            self.links.push(json!({ "source": from, "target": to, "value": number }));
        }
    }
}
