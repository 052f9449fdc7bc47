//! The four drives of DiskSim's validation, by their parameter files: buses slower than the media,
//! no queue, watermarks, skipped tracks. The code was not written for them.
//!
//! The files are not part of this project. They are looked for under `$HEADTIME_DATA/disksim`, else
//! under `../shared/data/disksim` beside the workspace; without them the test says so and passes.

#![allow(clippy::disallowed_methods)] // reads parameter files

use std::path::{Path, PathBuf};

use crate::common::{angles, device, wrong};
use headtime_disk::{Geometry, Model, profile};
use headtime_probe::watch::Unwatched;
use headtime_probe::{Options, characterize};

fn folder() -> Option<PathBuf> {
    let root = match std::env::var_os("HEADTIME_DATA") {
        Some(data) => PathBuf::from(data),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let folder = root.join("disksim");
    if !folder.is_dir() {
        println!("skipped: no DiskSim files (set HEADTIME_DATA to the folder that holds disksim/)");
        return None;
    }
    Some(folder)
}

#[test]
fn drives_of_disksims_files_are_predicted_by_the_profiles_that_are_found() {
    let Some(folder) = folder() else { return };
    let read = |p: &str| std::fs::read_to_string(p).map_err(|e| e.to_string());
    for name in ["atlas10k", "atlas_III", "cheetah9LP", "hp_c2247a"] {
        for kind in ["parv", "diskspecs"] {
            let path = folder.join(format!("{name}.{kind}"));
            let truth = profile::load(&path.to_string_lossy(), &read).unwrap_or_else(|e| panic!("{e}")).profile;
            let found = characterize(&mut device(&truth, 3), &mut Unwatched, &Options::default()).expect("a disk");
            let model = Model::new(&truth).expect("a model");
            let geometry = Geometry::new(&found.profile.geometry).expect("a geometry");
            let (wrong, off) = (wrong(&geometry, &model.geometry), angles(&geometry, &model));
            let verified = found.findings.iter().find(|f| f.what == "verified").expect("it is");
            println!("{name}.{kind}: {}; {wrong} tracks wrong; angles {:.1} us off", verified.value, off[999]);
            assert!(found.good, "{name}.{kind}: {verified:?}");
            assert!(off[998] < 10.0, "{name}.{kind}: {} us", off[998]);
            // The Atlas 10K's head order is not observable; on the Cheetah 9LP some hundred tracks
            // have several bad sectors.
            match name {
                "atlas_III" | "hp_c2247a" => assert_eq!(wrong, 0, "{name}.{kind}"),
                "cheetah9LP" => assert!(wrong < 100, "{name}.{kind}: {wrong}"),
                _ => {}
            }
        }
    }
}
