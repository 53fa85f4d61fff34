//! The readings that messages are made of by default: a small hydroponic installation, simulated.
//! Nothing in the file was measured. `data/README.md` says so to its readers.

use std::fmt::Write;
use std::path::Path;

use anyhow::Context;
use weigh_stats::random::Random;

/// Writes the data set below `root`.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    let path = root.join(FILE);
    let text = generate();
    std::fs::write(&path, &text).with_context(|| format!("writing {}", path.display()))?;
    println!("{}: {} lines, {} bytes", path.display(), text.lines().count(), text.len());
    Ok(())
}

/// All lines of the data set, one JSON object each. The same on every machine: the model uses
/// only additions, multiplications and divisions, which IEEE 754 rounds alike everywhere.
fn generate() -> String {
    let mut random = Random::new(SEED);
    let mut air = Air { wander_celsius: 0.0, temperature_celsius: 0.0, humidity_percent: 0.0 };
    let mut tanks: Vec<Tank> = (0..TANKS).map(|_| Tank::new(&mut random)).collect();
    let mut lines = String::new();
    for round in 0..ROUNDS {
        let hour = (START_HOUR + f64::from(round) * STEP_HOURS) % 24.0;
        air.step(hour, &mut random);
        for (index, tank) in tanks.iter_mut().enumerate() {
            tank.step(hour, &air);
            tank.line(index + 1, &air, &mut random, &mut lines);
        }
    }
    lines
}

/// The air of the house, the same for every tank.
struct Air {
    wander_celsius: f64,
    temperature_celsius: f64,
    humidity_percent: f64,
}

impl Air {
    /// A daily wave, warmest at three in the afternoon, and a slow random wander about it.
    /// Humidity falls as the air warms, because the water in it stays about the same.
    fn step(&mut self, hour: f64, random: &mut Random) {
        self.wander_celsius = 0.95 * self.wander_celsius + 0.15 * noise(random);
        self.temperature_celsius =
            AIR_MEAN_CELSIUS + AIR_SWING_CELSIUS * wave((hour - 9.0) / 24.0) + self.wander_celsius;
        let warmer = self.temperature_celsius - AIR_MEAN_CELSIUS;
        let humidity = HUMIDITY_MEAN_PERCENT - HUMIDITY_PER_CELSIUS * warmer + noise(random);
        self.humidity_percent = humidity.clamp(35.0, 95.0);
    }
}

/// One tank of nutrient solution with the plants that drink from it.
struct Tank {
    level_percent: f64,
    /// Dissolved salts, as conductivity times level.
    salts: f64,
    ph: f64,
    temperature_celsius: f64,
    /// How much more or less than the others these plants drink.
    vigour: f64,
}

impl Tank {
    fn new(random: &mut Random) -> Tank {
        let level_percent = 75.0 + 20.0 * random.next_f64();
        let ec = EC_LOW + (EC_HIGH - EC_LOW) * random.next_f64();
        Tank {
            level_percent,
            salts: ec * level_percent,
            ph: PH_LOW + (PH_HIGH - PH_LOW) * random.next_f64(),
            temperature_celsius: AIR_MEAN_CELSIUS - 1.0 + 2.0 * random.next_f64(),
            vigour: 0.8 + 0.4 * random.next_f64(),
        }
    }

    fn ec(&self) -> f64 {
        self.salts / self.level_percent
    }

    /// Moves the tank one step on: the plants drink, then the controllers act.
    fn step(&mut self, hour: f64, air: &Air) {
        let towards_air = air.temperature_celsius - self.temperature_celsius;
        self.temperature_celsius += towards_air * STEP_HOURS / WATER_LAG_HOURS;
        let daylight = wave((hour - 6.0) / 24.0).max(0.0);
        let thirst = DRINK_NIGHT_PERCENT_PER_HOUR
            + (DRINK_NOON_PERCENT_PER_HOUR - DRINK_NIGHT_PERCENT_PER_HOUR) * daylight;
        let drunk = thirst * self.vigour * STEP_HOURS;
        self.salts -= drunk * self.ec() * UPTAKE_RATIO;
        self.level_percent -= drunk;
        self.ph += PH_DRIFT_PER_HOUR * (0.5 + daylight) * self.vigour * STEP_HOURS;
        self.control();
    }

    /// Refills from the tap, doses nutrients, doses acid: each only past its threshold, so that
    /// the readings show steps.
    fn control(&mut self) {
        if self.level_percent < LEVEL_LOW_PERCENT {
            self.salts += (LEVEL_FULL_PERCENT - self.level_percent) * TAP_EC;
            self.level_percent = LEVEL_FULL_PERCENT;
        }
        if self.ec() < EC_LOW {
            self.salts = EC_HIGH * self.level_percent;
        }
        if self.ph > PH_HIGH {
            self.ph = PH_LOW;
        }
    }

    /// Appends what the probes read, with their noise and their resolution.
    fn line(&self, id: usize, air: &Air, random: &mut Random, out: &mut String) {
        let ph = self.ph + 0.01 * noise(random);
        let ec = self.ec() + 0.005 * noise(random);
        let tds = ec * 1000.0 * TDS_PER_EC;
        let water = self.temperature_celsius + 0.05 * noise(random);
        let level = self.level_percent + 0.3 * noise(random);
        writeln!(
            out,
            "{{\"id\":{id},\"ph\":{ph:.2},\"ec\":{ec:.2},\"tds\":{tds:.0},\"tw\":{water:.1},\
             \"ta\":{:.0},\"rh\":{:.0},\"lv\":{level:.0}}}",
            air.temperature_celsius, air.humidity_percent
        )
        .expect("a String takes everything");
    }
}

/// A sine of `turns`, near enough: Bhaskara's rational approximation (7th century), which needs
/// no library function and so has the same bits everywhere. Off by less than 0.002.
fn wave(turns: f64) -> f64 {
    let turns = turns - turns.floor();
    let (half, sign) = if turns < 0.5 { (turns, 1.0) } else { (turns - 0.5, -1.0) };
    let product = 2.0 * half * (1.0 - 2.0 * half);
    sign * 16.0 * product / (5.0 - 4.0 * product)
}

/// About standard normal: the sum of twelve uniform numbers less six (mean 0, variance 1).
fn noise(random: &mut Random) -> f64 {
    (0..12).map(|_| random.next_f64()).sum::<f64>() - 6.0
}

const FILE: &str = "data/hydroponics.jsonl";
const SEED: u64 = 20_240_229;
const TANKS: u32 = 4;
/// Readings of every tank: 42 hours at ten minutes.
const ROUNDS: u32 = 252;
const STEP_HOURS: f64 = 1.0 / 6.0;
const START_HOUR: f64 = 6.0;

/// The bounds between which growers hold pH and conductivity (mS/cm) lie within 5.5 to 6.5 and
/// 1.5 to 2.5: Oklahoma State University Extension. Ours are narrower so
/// that several doses fall into two days: an assumption.
const PH_LOW: f64 = 5.80;
const PH_HIGH: f64 = 6.30;
const EC_LOW: f64 = 1.50;
const EC_HIGH: f64 = 1.90;

/// Parts per million shown by a meter for each uS/cm on the "500" (sodium chloride) scale, a
/// convention of the makers; the others in use go up to 0.7.
const TDS_PER_EC: f64 = 0.5;

// All that follows are plausible assumptions, not measurements.
const PH_DRIFT_PER_HOUR: f64 = 0.025;
const TAP_EC: f64 = 0.30;
/// Salts taken up with a litre of water, against what a litre of the solution holds.
const UPTAKE_RATIO: f64 = 1.6;
const LEVEL_LOW_PERCENT: f64 = 70.0;
const LEVEL_FULL_PERCENT: f64 = 95.0;
const DRINK_NIGHT_PERCENT_PER_HOUR: f64 = 0.4;
const DRINK_NOON_PERCENT_PER_HOUR: f64 = 2.2;
const AIR_MEAN_CELSIUS: f64 = 23.0;
const AIR_SWING_CELSIUS: f64 = 4.5;
const HUMIDITY_MEAN_PERCENT: f64 = 64.0;
const HUMIDITY_PER_CELSIUS: f64 = 2.6;
const WATER_LAG_HOURS: f64 = 6.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checked_in_file_is_what_the_model_gives() {
        let checked_in = include_str!("../../data/hydroponics.jsonl");
        assert!(checked_in == generate(), "run `cargo xtask dataset` and commit {FILE}");
    }

    #[test]
    fn every_line_is_json_of_64_to_74_bytes_and_plausible() {
        let text = generate();
        assert_eq!(text.lines().count(), (TANKS * ROUNDS) as usize);
        for line in text.lines() {
            assert!((64..=74).contains(&line.len()), "{} bytes: {line}", line.len());
            let reading: serde_json::Value = serde_json::from_str(line).expect(line);
            let value = |key: &str| reading[key].as_f64().expect(line);
            assert!((5.5..=6.5).contains(&value("ph")), "{line}");
            assert!((1.4..=2.0).contains(&value("ec")), "{line}");
            assert!((value("tds") / value("ec") / 1000.0 - TDS_PER_EC).abs() < 0.003, "{line}");
            assert!((15.0..=32.0).contains(&value("tw")), "{line}");
            assert!((60.0..=99.0).contains(&value("lv")), "{line}");
        }
    }

    /// What makes the set worth having: doses, refills, and water that lags behind the air.
    #[test]
    fn the_dynamics_are_there() {
        let readings: Vec<serde_json::Value> =
            generate().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let first: Vec<_> = readings.iter().filter(|reading| reading["id"] == 1).collect();
        let series = |key: &str| -> Vec<f64> {
            first.iter().map(|reading| reading[key].as_f64().unwrap()).collect()
        };
        let rises = |values: &[f64], step: f64| {
            values.windows(2).filter(|pair| pair[1] - pair[0] > step).count()
        };
        assert!(rises(&series("lv"), 10.0) >= 1, "no refill");
        assert!(rises(&series("ec"), 0.2) >= 1, "no nutrient dose");
        let falling: Vec<f64> = series("ph").iter().map(|ph| -ph).collect();
        assert!(rises(&falling, 0.3) >= 1, "no acid dose");
        let swing = |values: Vec<f64>| {
            values.iter().copied().fold(f64::MIN, f64::max)
                - values.iter().copied().fold(f64::MAX, f64::min)
        };
        assert!(swing(series("tw")) < swing(series("ta")), "water swings no less than air");
    }
}
