//! An mqtt client, publisher or subscriber, against any broker.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_model::load::Pattern;
use weigh_model::protocol::Role;
use weigh_protocols::mqtt::Mqtt;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let version = if script.choice & 1 == 0 { "3.1.1" } else { "5" };
    let qos = ["0", "1", "2", "1"][usize::from(script.choice >> 1 & 3)];
    let role = if script.choice & 8 == 0 { Role::Producer } else { Role::Consumer };
    let alias = if script.choice & 16 == 0 { "false" } else { "true" };
    let given = [("version", version), ("qos", qos), ("topic_alias", alias)];
    script.run_client(&Mqtt, "mqtt://u:p@h:1", Pattern::Deliver, role, &given);
});
