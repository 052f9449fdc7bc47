use super::programs::Program;
use super::*;
use crate::scratch::Scratch;

/// A machine with two NBD devices, the first in use, and programs that are shell scripts.
struct Machine {
    scratch: Scratch,
    host: Attachments,
}

impl Machine {
    fn new(name: &str) -> Machine {
        let scratch = Scratch::new(&format!("attach-{name}"));
        let mut host = Attachments::in_directory(scratch.path().join("state"));
        host.sys = Sys { proc: "/proc".into(), ..Sys::below(scratch.path()) };
        host.programs = Programs::within([scratch.path().join("bin"), "/bin".into(), "/usr/bin".into()]);
        host.within = Duration::from_millis(500);
        let machine = Machine { scratch, host };
        for device in ["nbd0", "nbd1", "nbd10", "sda"] {
            machine.attribute(device, "size", "0");
        }
        machine.attribute("nbd0", "pid", "1");
        machine
    }

    fn attribute(&self, device: &str, name: &str, value: &str) {
        self.scratch.file(&format!("sys/class/block/{device}/{name}"), value);
    }

    fn with_kernel_nbd(&self) {
        fs::create_dir_all(self.host.sys.sys.join("module/nbd")).unwrap();
    }

    fn script(&self, name: &str, text: &str) {
        let root = self.scratch.path().display();
        self.scratch.script(&format!("bin/{name}"), &format!("root={root}\n{text}"));
    }

    /// Installs a client that prints its arguments and connects the second device.
    fn with_client(&self) {
        self.with_kernel_nbd();
        self.script(
            "nbd-client",
            "echo \"$@\" >> $root/said; cd $root/sys/class/block/nbd1; echo 2048 > size; echo 4242 > pid",
        );
    }

    fn said(&self) -> String {
        fs::read_to_string(self.scratch.path().join("said")).unwrap_or_default()
    }

    fn files(&self) -> usize {
        fs::read_dir(&self.host.state_dir).map_or(0, Iterator::count)
    }
}

fn export(method: Method) -> Export {
    Export { method, ..Export::new("nbd+unix:///a%20disk?socket=/run/d.sock", "disk0") }
}

#[test]
fn names_are_such_as_files_can_have() {
    for good in ["a", "disk0", "my-disk_2.raw", &"x".repeat(64)] {
        check_name(good).unwrap();
    }
    for bad in ["", ".", "..", "-d", "a/b", "a b", "ä", "a\n", &"x".repeat(65)] {
        assert!(matches!(check_name(bad), Err(AttachError::Name { .. })), "{bad:?}");
    }
}

#[test]
fn nothing_is_begun_with_what_cannot_work() {
    let machine = Machine::new("bad");
    let uri = Export { uri: "--help".into(), ..export(Method::Auto) };
    assert!(matches!(machine.host.attach(&uri), Err(AttachError::Uri { .. })));
    let sectors = Export { sector_size: 520, ..export(Method::Auto) };
    let e = machine.host.attach(&sectors).unwrap_err().to_string();
    assert_eq!(e, "expected sectors of 512, 1024, 2048 or 4096 bytes, found 520");
    let name = Export { name: "../x".into(), ..export(Method::Auto) };
    assert!(matches!(machine.host.attach(&name), Err(AttachError::Name { .. })));
    assert_eq!(machine.files(), 0);
}

#[test]
fn a_missing_program_is_named_before_anything_is_begun() {
    let mut machine = Machine::new("missing");
    machine.host.programs = Programs::within([machine.scratch.path().join("bin")]);
    match machine.host.attach(&export(Method::Auto)).unwrap_err() {
        AttachError::Program(ProgramError::Missing { program }) => assert_eq!(program, Program::NbdFuse),
        e => panic!("{e}"),
    }
    assert!(matches!(machine.host.attach(&export(Method::Kernel)), Err(AttachError::NoKernelNbd)));
    machine.with_kernel_nbd();
    match machine.host.attach(&export(Method::Kernel)).unwrap_err() {
        AttachError::Program(ProgramError::Missing { program }) => assert_eq!(program, Program::NbdClient),
        e => panic!("{e}"),
    }
    assert_eq!(machine.files(), 0);
}

#[test]
fn the_kernels_nbd_is_used_where_there_is_one_and_a_free_device_taken() {
    let machine = Machine::new("kernel");
    machine.with_client();
    machine.attribute("nbd1", "queue/scheduler", "fifo");
    machine.attribute("nbd1", "queue/rotational", "0");
    let attached = machine.host.attach(&export(Method::Auto)).unwrap();
    assert_eq!(attached.device, Some(machine.host.sys.dev.join("nbd1")));
    assert_eq!(
        attached.means,
        Means::Kernel { boot: process::boot(&Sys::default()).unwrap(), pid: Some("4242".into()) }
    );
    assert_eq!(attached.queue.len(), 2);
    assert!(attached.warnings.is_empty());
    let device = machine.host.sys.dev.join("nbd1");
    assert_eq!(machine.said().trim(), format!("-unix /run/d.sock {} -block-size 512 -name a disk", device.display()));
    let listed: Vec<_> = machine.host.list().unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(listed, [Listed { attached: attached.clone(), status: Status::Working }]);
    assert!(matches!(machine.host.attach(&export(Method::Auto)), Err(AttachError::Taken { .. })));
    // Disconnected and connected again by another process: detaching leaves the device and removes
    // the record.
    machine.attribute("nbd1", "pid", "77");
    assert!(matches!(machine.host.status(&attached).unwrap(), Status::Broken { .. }));
    assert_eq!(machine.host.detach("disk0").unwrap().unwrap().attached, attached);
    assert_eq!(machine.host.detach("disk0").unwrap(), None);
    assert!(!machine.said().contains("-d"));
    assert_eq!(machine.files(), 0);
}

#[test]
fn a_client_that_fails_leaves_nothing_and_its_message_is_reported() {
    let machine = Machine::new("client-fails");
    machine.with_kernel_nbd();
    machine.script("nbd-client", "echo Negotiation failed >&2; exit 1");
    let e = machine.host.attach(&export(Method::Kernel)).unwrap_err().to_string();
    assert_eq!(e, "nbd-client failed with exit status: 1: Negotiation failed");
    assert_eq!(machine.files(), 0);
}

#[test]
fn a_device_that_another_process_takes_first_is_passed_over() {
    let machine = Machine::new("quicker");
    machine.with_kernel_nbd();
    machine.script(
        "nbd-client",
        "cd $root/sys/class/block; if [ ! -e nbd1/pid ]; then echo 9 > nbd1/pid; exit 1; fi
         echo 2048 > nbd10/size; echo 10 > nbd10/pid",
    );
    let attached = machine.host.attach(&export(Method::Kernel)).unwrap();
    assert_eq!(attached.device, Some(machine.host.sys.dev.join("nbd10")));
    let other = Export { name: "disk1".into(), ..export(Method::Kernel) };
    assert!(matches!(machine.host.attach(&other), Err(AttachError::NoFreeDevice { found: 3 })));
}

#[test]
fn an_address_that_nbd_client_cannot_use_is_said_to_be_so() {
    let machine = Machine::new("tls");
    machine.with_client();
    let tls = Export { uri: "nbds://host/disk".into(), ..export(Method::Kernel) };
    let e = machine.host.attach(&tls).unwrap_err().to_string();
    assert_eq!(e, "expected an NBD URI that nbd-client can use (nbd:// or nbd+unix://), found \"nbds://host/disk\"");
}

#[test]
fn an_nbdfuse_that_ends_at_once_leaves_nothing_and_its_message_is_reported() {
    let machine = Machine::new("fuse-fails");
    for program in ["losetup", "fusermount3"] {
        machine.script(program, "echo $0 \"$@\" >> $root/said");
    }
    machine.script("nbdfuse", "echo nbd_connect_uri: connect: Connection refused >&2; exit 1");
    let e = machine.host.attach(&export(Method::Fuse)).unwrap_err().to_string();
    assert_eq!(e, "nbdfuse ended with exit status: 1: nbd_connect_uri: connect: Connection refused");
    assert_eq!((machine.files(), machine.said().as_str()), (0, ""));
}

#[test]
fn an_nbdfuse_that_never_serves_is_ended() {
    let machine = Machine::new("fuse-hangs");
    for program in ["losetup", "fusermount3"] {
        machine.script(program, "");
    }
    machine.script("nbdfuse", "echo $$ > $root/number; echo trying; exec sleep 100");
    match machine.host.attach(&export(Method::Fuse)).unwrap_err() {
        AttachError::NotReady { said, .. } => assert_eq!(said, "trying"),
        e => panic!("{e}"),
    }
    let number = fs::read_to_string(machine.scratch.path().join("number")).unwrap().trim().parse().unwrap();
    assert_eq!(Process::of(&Sys::default(), number).unwrap(), None);
    assert_eq!(machine.files(), 0);
}

#[test]
fn an_attachment_that_was_begun_and_not_recorded_further_is_taken_away() {
    let machine = Machine::new("half");
    let directory = machine.host.state_dir.join("attach-disk0");
    machine.scratch.file("state/attach-disk0/disk", "");
    let attached = Attached {
        name: "disk0".into(),
        uri: "nbd://host".into(),
        device: None,
        means: Means::Fuse { directory, server: None },
        queue: Vec::new(),
        warnings: Vec::new(),
    };
    state::write_new(&machine.host.state_dir.join("attach-disk0.json"), &attached).unwrap();
    assert_eq!(machine.host.list().unwrap().remove(0).unwrap().status, Status::Half);
    assert_eq!(machine.host.detach("disk0").unwrap().unwrap().attached, attached);
    assert_eq!(machine.files(), 0);
}

#[test]
fn a_state_file_that_cannot_be_read_does_not_hide_the_others() {
    let machine = Machine::new("unreadable");
    machine.with_client();
    machine.scratch.file("state/attach-a.json", "{}");
    machine.host.attach(&export(Method::Kernel)).unwrap();
    let listed = machine.host.list().unwrap();
    assert!(listed[0].is_err() && listed[1].is_ok());
    assert!(matches!(machine.host.detach("a"), Err(AttachError::State(_))));
    assert_eq!(machine.host.detach("b").unwrap(), None);
    machine.attribute("nbd1", "pid", "77");
    assert!(machine.host.detach("disk0").unwrap().is_some());
}
