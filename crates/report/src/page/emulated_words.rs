//! What figures are that another tool would have shown. Each begins by saying so: an emulation is
//! not what happened.

use weigh_model::Emulation;

/// What the metric `name` is, if it is one of an emulation.
pub(crate) fn definition(name: &str) -> Option<&'static str> {
    Emulation::of_metric(name)?;
    WORDS.iter().find(|(known, _)| *known == name).map(|(_, what)| *what)
}

const WORDS: &[(&str, &str)] = &[
    (
        "htop_cpu_percent.mean",
        "Emulated, as a person reads it off htop: the share of the target's cores that anybody \
         used from one look to the next 1.5 s later (`/proc/stat`, clock ticks), the mean of all \
         looks that hold some of the run, the last one after its end included.",
    ),
    (
        "htop_cpu_percent.max",
        "Emulated, as a person reads it off htop: the highest share of the target's cores that \
         anybody used from one look to the next 1.5 s later, of all looks that hold any of it.",
    ),
    (
        "autocannon_time_s",
        "Emulated, as autocannon would print it: it looks once a second whether it is done, so its \
         time is a whole number of seconds. Its own start, some hundredths more, is left out.",
    ),
    (
        "autocannon_per_s",
        "Emulated, as autocannon would print it: the mean of its counts of whole seconds, the last \
         one however little of it was used.",
    ),
    (
        "mqtt_stresser_receive_ratio",
        "Emulated, as mqtt-stresser would print it: received by published, of clients that \
         received something.",
    ),
    (
        "mqtt_stresser_publish_per_s",
        "Emulated, as mqtt-stresser would print it: by client its messages over the time from the \
         first to the last handed over (confirmed, where that is waited for); the median client.",
    ),
    (
        "mqtt_stresser_receive_per_s",
        "Emulated, as mqtt-stresser would print it: by client all that came back over the time \
         from the end of publishing to the last of it, whatever came before; the median client.",
    ),
    (
        "mqtt_stresser_publish_slowest_per_s",
        "Emulated, as mqtt-stresser would print it: publishing of the slowest client.",
    ),
    (
        "mqtt_stresser_publish_fastest_per_s",
        "Emulated, as mqtt-stresser would print it: publishing of the fastest client.",
    ),
    (
        "mqtt_stresser_receive_slowest_per_s",
        "Emulated, as mqtt-stresser would print it: receiving of the slowest client, from the end \
         of publishing.",
    ),
    (
        "mqtt_stresser_receive_fastest_per_s",
        "Emulated, as mqtt-stresser would print it: receiving of the fastest client, from the end \
         of publishing.",
    ),
    (
        "mqtt_stresser_completed_clients",
        "Emulated, as mqtt-stresser would print it: clients that got back all they published.",
    ),
    (
        "sum_of_times_per_s",
        "Emulated arithmetic: messages divided by the sum of all their service times. With N under \
         way at once it is N times too small.",
    ),
    (
        "ramp_average_per_s",
        "Emulated, as JMeter's aggregate report would tell it: samples over the time from the \
         first one's beginning to the last one's end, the ramp included.",
    ),
    (
        "ramp_average_time_ns.mean",
        "Emulated, as JMeter's aggregate report would tell it: the mean time of all samples, \
         errors and the ramp included.",
    ),
    (
        "ramp_average_time_ns.p50",
        "Emulated, as JMeter's aggregate report would tell it: the median time of all samples, \
         errors and the ramp included.",
    ),
    (
        "ramp_average_time_ns.p90",
        "Emulated, as JMeter's aggregate report would tell it: the time that 90 % of all samples \
         do not exceed, errors and the ramp included.",
    ),
    (
        "ramp_average_time_ns.max",
        "Emulated, as JMeter's aggregate report would tell it: the longest of all samples, errors \
         and the ramp included.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_emulated_figure_says_that_it_is_one() {
        for name in Emulation::ALL.iter().flat_map(|own| own.metrics()) {
            let what = definition(name).unwrap_or_else(|| panic!("{name} is not defined"));
            assert!(what.starts_with("Emulated"), "{name}: {what}");
        }
        assert_eq!(definition("target_cpu_percent.mean"), None);
    }
}
