//! Whole profiles of drives, found without looking.

use headtime_disk::drive::DriveConfig;
use headtime_disk::profile::builtin;
use headtime_disk::time::Dur;
use headtime_probe::device::Device;
use headtime_probe::sampler::Unwatched;
use headtime_probe::virtual_drive::VirtualDrive;
use headtime_probe::{Options, characterize};

#[test]
fn explore() {
    for name in std::env::var("DRIVES").unwrap_or("cheetah36es".into()).split(',') {
        let profile = builtin(name).expect("a built-in drive");
        let config = DriveConfig { seed: 3, ..DriveConfig::default() };
        let mut device = VirtualDrive::new(&profile, config, Dur::from_us(20)).expect("a drive that works");
        let found = characterize(&mut device, &mut Unwatched, &Options::default());
        println!("{name}: {:.1} s", device.now().0 as f64 / 1e9);
        match found {
            Ok(found) => found.findings.iter().for_each(|f| println!("  {}: {} ({})", f.what, f.value, f.sure)),
            Err(e) => println!("  {e}"),
        }
    }
}
