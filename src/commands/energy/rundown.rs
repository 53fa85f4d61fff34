//! `weigh energy rundown`: runs a battery down with sessions, and evaluates the discharges
//! afterwards.

use std::path::{Path, PathBuf};
use std::time::SystemTime;
use weigh_model::numbers::count;

use clap::Args;
use weigh_model::battery::Battery;
use weigh_model::modelled::{EnergyAsked, Processor};
use weigh_model::plan::Plan;
use weigh_model::units::{parse_duration, parse_size};
use weigh_model::{Arrival, Nanos};
use weigh_observe::boot;
use weigh_report::journal::rfc3339;
use weigh_runner::discharges::entry::{Begun, Counts, EndReason, SCHEMA};
use weigh_runner::discharges::{Archive, ArchiveError, DischargeLog, LogError, Report, Start};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::pinning::{CoreSet, Pinning};

use crate::numbers::rundown as rundown_text;
use crate::planning::conduct::{password_of_environment, secrets_of};
use crate::planning::plan_file::PlanFile;
use crate::show::output;
use crate::show::terminal::{Lines, width};
use weigh_runner::case::build::Build;
use weigh_runner::case::check::check_trial;
use weigh_runner::case::known::Known;
use weigh_runner::case::{Case, decide};
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::interrupts::Interrupts;
use weigh_runner::preflight;
use weigh_runner::probes::battery::Power;
use weigh_runner::rundown;
use weigh_runner::runner::check_user;
use weigh_runner::trial::identity::Trials;

/// Flags of `weigh energy rundown`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Rundown {
    /// Plan file; one case of it is run down, the next one in turn
    #[arg(value_name = "PLAN.toml", required_unless_present = "read")]
    plan: Option<PathBuf>,
    /// Evaluate the discharges of a folder, or show one of them [default: the folder of --log]
    #[arg(
        long,
        value_name = "FILE|DIR",
        num_args = 0..=1,
        conflicts_with_all = ["plan", "no_gauge", "lasts", "log_max", "data", "user",
            "i_may_load_this"]
    )]
    #[expect(clippy::option_option, reason = "not asked, asked, asked for a place")]
    read: Option<Option<PathBuf>>,
    /// Battery by its label, such as 2000mAh@5V [default: energy.battery of the plan]
    #[arg(long, value_name = "CHARGE@VOLTAGE")]
    battery: Option<Battery>,
    /// Folder of the discharges
    #[arg(long, value_name = "DIR", default_value = "rundown")]
    log: PathBuf,
    /// Largest size of the log of a discharge; a third of it holds about six hours
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "12MiB")]
    log_max: u64,
    /// Confirm that a battery unknown to the kernel, such as a power bank, powers this machine
    #[arg(long)]
    no_gauge: bool,
    /// Stop after this time, for practice; such a discharge is not evaluated
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    lasts: Option<Nanos>,
    /// Print a JSON document instead of the table (with --read)
    #[arg(long, requires = "read")]
    json: bool,
    /// Folder whose targets/*.toml replace built-in targets of the same name
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// User name at targets given by URL; the password comes from WEIGH_PASSWORD
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Confirm that you are authorised to load-test remote hosts
    #[arg(long)]
    i_may_load_this: bool,
}

impl Rundown {
    /// Runs a battery down, or reads the log of a discharge.
    ///
    /// # Errors
    /// A command without a plan, a plan that is wrong, a log that cannot be read or written, and a
    /// run of the plan that fails.
    pub fn run(self) -> Result<Exit, Stop> {
        match (&self.read, &self.plan) {
            (Some(place), _) => self.tell(place.as_deref().unwrap_or(&self.log)),
            (None, Some(plan)) => self.run_down(plan),
            (None, None) => {
                Err(Stop::usage("the plan is missing\nhelp: type weigh energy rundown PLAN.toml"))
            }
        }
    }

    fn tell(&self, place: &Path) -> Result<Exit, Stop> {
        let archive = Archive::open(place, &this_start()).map_err(Stop::usage)?;
        let report = Report::of(&archive, self.battery).map_err(Stop::usage)?;
        if self.json {
            let text = serde_json::to_string_pretty(&report);
            let text = text.map_err(|error| Stop::new(Exit::Internal, error))?;
            output::put_document(&(text + "\n"))?;
        } else {
            output::put(&rundown_text::render(&report, width()))?;
        }
        Ok(Exit::Done)
    }

    fn run_down(&self, plan: &Path) -> Result<Exit, Stop> {
        eprintln!("weigh: {}; checking the battery and the machine first", plan.display());
        let catalogue = Catalogue::load(self.data.as_deref()).map_err(Stop::usage)?;
        let (plan, cases) = self.cases(plan, &catalogue)?;
        let power = Power::of_a_battery(self.no_gauge)?;
        let lanes: Vec<String> = cases.iter().map(Case::title).collect();
        let now = this_start();
        let archive = Archive::for_another(&self.log, (&plan, &lanes), &now).map_err(not_read)?;
        let place = archive.next_lane(lanes.len());
        let case = &cases[place];
        let shards = preflight::shards(&cases[place..=place], None);
        preflight::examine(&catalogue, &cases[place..=place], shards)?;
        let trial = Trials::new(&plan, &cases).trial(place, case, 0);
        let confirms = check_trial(&case.lane, &trial, &case.material, shards)?;
        let counts = counts(case, confirms);
        let begun = self.begun((&plan, &lanes), (place, counts), &power, now)?;
        let pinning = Pinning::divide(&CoreSet::allowed()?, 1, shards as usize);
        let interrupts = Interrupts::listen(Box::new(Lines))?;
        let log = DischargeLog::create(&self.log, begun, self.log_max).map_err(not_logged)?;
        let folder = log.folder().to_owned();
        eprintln!(
            "weigh: {} of {} lanes, {}, records into {} until the power fails; then type weigh \
             energy rundown --read {}",
            place + 1,
            lanes.len(),
            lanes[place],
            folder.display(),
            self.log.display()
        );
        if let Some(reason) = power.no_gauge() {
            eprintln!("weigh: the battery gauge is not read: {reason}");
        }
        let (plan, cases, catalogue, interrupts) = (&plan, &cases, &catalogue, &*interrupts);
        let running = rundown::Rundown {
            plan,
            cases,
            place,
            catalogue,
            pinning,
            shards,
            lasts: self.lasts,
            power,
            interrupts,
            watcher: &Lines,
            program: &std::env::current_exe()?,
        };
        let ended = running.run(log)?;
        let sessions = counts.of(&ended.standing);
        output::put(&format!("{} sessions; log: {}\n", count(sessions), folder.display()))?;
        Ok(exit(ended.reason))
    }

    /// Returns the plan and its cases, after checking that each can be run down.
    fn cases(&self, plan: &Path, catalogue: &Catalogue) -> Result<(Plan, Vec<Case>), Stop> {
        let file = PlanFile::read(plan)?;
        let known = Known::new(catalogue, &Lines);
        let resolved = file.resolve(file.draft(&known)?)?;
        let by_url = known.into_credentials();
        let password = password_of_environment().unwrap_or_default();
        let user = self.user.as_deref().map(|user| (user, password));
        let secrets = secrets_of(user, by_url, resolved.secrets);
        let cases = decide(&resolved.plan, catalogue, &secrets)?;
        Build::OWN.check(&resolved.plan, &cases)?;
        check_user(&secrets, &cases)?;
        preflight::may_load(&cases, self.i_may_load_this)?;
        cases.iter().try_for_each(check)?;
        let observe = &resolved.plan.observe;
        if !observe.target.is_empty() {
            return Err(Stop::usage(
                "observe.target: a rundown records the battery and observes no target\nhelp: \
                 leave it out",
            ));
        }
        if !observe.emulate.is_empty() {
            return Err(Stop::usage(
                "observe.emulate: no tool has figures for a rundown\nhelp: leave it out",
            ));
        }
        if observe.asks_for_energy() || observe.messages {
            return Err(Stop::usage(
                "observe: in a rundown the battery is the meter, and its log has only sums\nhelp: \
                 leave observe.meter, observe.idle and observe.messages out",
            ));
        }
        if let Some(asked) = &resolved.plan.energy {
            let unused = unused(asked);
            eprintln!(
                "weigh: {unused}: ignored, because a rundown measures and these keys are \
                       for models"
            );
        }
        Ok((resolved.plan, cases))
    }

    fn begun(
        &self,
        (plan, lanes): (&Plan, &[String]),
        (place, counts): (usize, Counts),
        power: &Power,
        now: Start,
    ) -> Result<Begun, Stop> {
        let boot = now.boot.ok_or_else(|| {
            Stop::usage(
                "/proc/sys/kernel/random/boot_id: cannot be read, so a power failure could not be \
                 recognised afterwards\nhelp: mount /proc",
            )
        })?;
        Ok(Begun {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: rfc3339(SystemTime::now()),
            boot,
            machine: now.machine,
            part: 1,
            lane: lanes[place].clone(),
            lanes: lanes.to_vec(),
            plan: plan.clone(),
            counts,
            battery: self.battery.or_else(|| plan.energy.as_ref()?.battery),
            gauge_full_uah: power.full_uah(),
            no_gauge: power.no_gauge().map(str::to_owned),
        })
    }
}

/// Returns the identity of this boot of this machine.
fn this_start() -> Start {
    // A board without a machine ID is identified by its boot ID alone.
    let machine_id = std::fs::read_to_string("/etc/machine-id").ok();
    Start::new(boot::id(), machine_id.as_deref())
}

/// Returns the keys of `[energy]` in a plan that a rundown does not use.
fn unused(asked: &EnergyAsked) -> String {
    let keys = [
        ("energy.device", true),
        ("energy.radio", asked.radio.is_some()),
        ("energy.every", asked.every.is_some()),
        ("energy.cpu", asked.cpu != Processor::default()),
    ];
    let given = keys.iter().filter(|key| key.1).map(|key| key.0);
    given.collect::<Vec<_>>().join(", ")
}

/// Refuses a load with an end of its own, and emulated links.
fn check(case: &Case) -> Result<(), Stop> {
    let arrival = &case.load.arrival;
    if matches!(arrival, Arrival::Burst | Arrival::Trace(_) | Arrival::Ramp(_) | Arrival::Steps(_))
    {
        return Err(Stop::usage(format!(
            "load.arrival: {arrival} has an end, and a rundown continues until the power \
             fails\nhelp: give closed, constant, poisson or periodic"
        )));
    }
    if case.has_hosts || case.has_relay {
        return Err(Stop::usage(
            "path, wire and relay: a rundown measures the real link that the battery \
             powers\nhelp: leave path, observe.wire, observe.pcap and target.relay out",
        ));
    }
    Ok(())
}

/// Returns which count is that of finished sessions.
fn counts(case: &Case, confirms: bool) -> Counts {
    match confirms {
        _ if case.load.delivers() => Counts::Delivered,
        true => Counts::Acknowledged,
        false => Counts::Sent,
    }
}

fn not_read(error: ArchiveError) -> Stop {
    match error {
        ArchiveError::Unreadable { .. } => Stop::new(Exit::Record, error),
        other => Stop::usage(other),
    }
}

fn not_logged(error: LogError) -> Stop {
    match error {
        LogError::TooSmall { .. } => Stop::usage(error),
        _ => Stop::new(Exit::Record, error),
    }
}

/// Returns the exit code: a discharge that a charger made invalid is a finding; an ended one is
/// not.
fn exit(reason: EndReason) -> Exit {
    match reason {
        EndReason::TimeOver => Exit::Done,
        EndReason::Interrupted => Exit::Interrupted,
        EndReason::Terminated => Exit::Terminated,
        EndReason::Mains => Exit::Finding,
        EndReason::Full => Exit::Record,
        EndReason::Unreached => Exit::Target,
        EndReason::Failed => Exit::Internal,
    }
}

const AFTER_HELP: &str = "\
Charge the battery, unplug it, type weigh energy rundown PLAN.toml, and wait until the machine shuts
down. Repeat that five times for every lane of the plan; weigh picks the lane, so that they take
turns. A power cut loses at most the last second. docs/guide/battery-rundown.md has the procedure.";
