//! Queue settings of an attached device. All are best effort, because the device works without
//! them.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use crate::attach::{Attached, Export};
use crate::sys::{self, Sys};
use crate::tuning::{self, Restored, Setting};

/// Sets the queue: requests are ordered by the server, so the kernel's scheduler is turned off.
pub(super) fn set(sys: &Sys, device: &Path, export: &Export, attached: &mut Attached) {
    let rotational = if export.rotational { "1" } else { "0" };
    for (name, ours) in [("scheduler", "none"), ("rotational", rotational)] {
        let path = queue_of(sys, device).join(name);
        let set = || -> Result<Option<Setting>, String> {
            let before = sys::text_if_there(&path).map_err(|e| e.to_string())?;
            let Some(before) = before.and_then(|text| tuning::chosen(&text)).filter(|before| before != ours) else {
                return Ok(None);
            };
            let file = open(&path).map_err(|e| format!("cannot open {}: {e}", path.display()))?;
            tuning::set(&file, &path, ours).map_err(|e| e.to_string())?;
            Ok(Some(Setting { name: name.to_string(), before, ours: ours.to_string() }))
        };
        match set() {
            Ok(setting) => attached.queue.extend(setting),
            Err(why) => attached.warnings.push(why),
        }
    }
}

/// Restores the previous settings for the device's next user.
pub(super) fn put_back(sys: &Sys, device: &Path, settings: &[Setting]) {
    let queue = queue_of(sys, device);
    for setting in settings.iter().rev() {
        if let Ok(file) = open(&queue.join(&setting.name)) {
            let _ = tuning::put_back(setting, &file, &queue, &mut Restored::default());
        }
    }
}

fn queue_of(sys: &Sys, device: &Path) -> std::path::PathBuf {
    sys.block(&device.file_name().unwrap_or_default().to_string_lossy()).join("queue")
}

fn open(path: &Path) -> io::Result<std::fs::File> {
    OpenOptions::new().read(true).write(true).open(path)
}
